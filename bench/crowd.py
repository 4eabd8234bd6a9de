"""A server with many jobs in its queue, for benchmarks that ask what a full house costs."""

from __future__ import annotations

import msgspec

from bench.submit import SPEC
from muster.sdk.exchange import Connection
from muster.sdk.home import Home

AT_ONCE = 1000


def fill(home: Home, count: int) -> None:
    """Hand in so many jobs that wait, in bulk: of 50 tenants and a few shapes."""
    address = home.find_address()
    assert address is not None
    link = Connection(address, 60)
    headers = {"Authorization": f"Bearer {home.read_token()}"}
    for first in range(0, count, AT_ONCE):
        body = msgspec.json.encode({"jobs": [{"spec": _spec(number)} for number in range(first, first + AT_ONCE)]})
        answer = link.exchange("POST", "/v1/jobs/bulk", headers, body)
        parts = msgspec.json.decode(answer.body)["jobs"]
        assert answer.status == 200, answer
        assert all("job" in part for part in parts), parts[0]
    link.close()


def _spec(number: int) -> dict[str, object]:
    ask = {"gpus": 1 + number % 8, "cpu_milli": 1000}
    return {**SPEC, "name": f"train-{number}", "tenant": f"tenant-{number % 50}", "ask": ask}
