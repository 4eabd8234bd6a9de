"""How far a follower is behind under load: real leader, real follower, real journal, submits by several clients.

The follower itself measures each entry from the leader's `now` to the end of the fold, so a figure contains the
kernel, the commit with its sync, the message and the reading back.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from bench.server import running_server
from muster.model.spec import Spec
from muster.sdk.client import Client
from muster.sdk.home import Home
from muster.units import Resources

CLIENTS: Final = 4
SUBMITS_EACH: Final = 250


def lag_p99_ms() -> float:
    """The 99th percentile over the last 1,000 entries, after a load of submits whose jobs wait and some that run."""
    with running_server() as home:
        threads = [threading.Thread(target=_submit_many, args=(home,)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with Client(Home(home)) as client:
            return float(client.health().lag_ms)


def _submit_many(home: Path) -> None:
    spec = Spec(("true",), ask=Resources(cpu_milli=500))
    with Client(Home(home)) as client:
        for _ in range(SUBMITS_EACH):
            client.submit(spec)
