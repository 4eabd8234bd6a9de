"""`tiers` and `tier set`: what they send and what they say. No server and no socket."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.cli.main import run_command
from muster.sdk.transport import Reply, Request, Transport
from muster.units import DAY_MS, MINUTE_MS
from muster.wire.views import JobPage, TierView

TIERS = (TierView("critical", 100, DAY_MS), TierView("batch", 400, 7 * DAY_MS))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """What a server with two tiers is asked."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    asked: list[Request] = []

    def answer(_: Transport, request: Request) -> Reply:
        asked.append(request)
        value: object = JobPage([], seq=5) if request.path.startswith("/v1/jobs") else TIERS
        return Reply(200, {"muster-seq": "5"}, msgspec.json.encode(value))

    monkeypatch.setattr(Transport, "_try", answer)
    return asked


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_command(list(arguments)) == 0
    return capsys.readouterr().out


def test_tiers_are_listed(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "tiers").splitlines()
    assert [line.split()[:2] for line in lines] == [["TIER", "RANK"], ["critical", "100"], ["batch", "400"]]
    assert told(capsys, "tiers", "-o", "name") == "critical\nbatch\n"
    assert msgspec.json.decode(told(capsys, "tiers", "-o", "json"))[1]["rank"] == 400
    assert {request.path for request in seen} == {"/v1/tiers"}


def test_a_tier_is_set(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    words = told(capsys, "tiers", "set", "batch", "--rank", "400", "--due-after", "7d")
    assert words == "tier batch has rank 400; a job is due after 7d\n"
    assert (seen[0].method, seen[0].path) == ("PUT", "/v1/tiers/batch")
    plain = {"shadows": 1, "min_run_ms": 0, "evictions_max": None, "emergency": False, "sharing": None}
    assert msgspec.json.decode(seen[0].body) == {"rank": 400, "longest_wait_ms": 7 * DAY_MS, **plain}


def test_a_tier_is_set_with_protections(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    protections = ("--min-run", "30m", "--evictions", "3", "--emergency")
    told(capsys, "tiers", "set", "alarm", "--rank", "1", "--due-after", "1h", *protections)
    body = msgspec.json.decode(seen[0].body)
    assert (body["min_run_ms"], body["evictions_max"], body["emergency"]) == (30 * MINUTE_MS, 3, True)


def test_run_hands_on_tier_and_priority() -> None:
    from muster.cli.run import run

    options = {option.name: option.default for option in run.params}
    assert (options["tier"], options["priority"]) == ("standard", 0)
