"""`bench kueue-generator`: the baseline load of Kueue's own performance tests through the durable service.

5 cohorts of 6 queues; each queue owns 20 units and may borrow 100. Into each come 350 small workloads (1 unit, 0.2 s,
every 0.1 s), 100 medium (5 units, 0.5 s, every 0.5 s) and 50 large (20 units, 1 s, every 1.2 s), the larger with the
higher priority: 15,000 in all. A unit is a CPU of one large node, as there are no nodes in that test either. Tasks only
take time; everything else is real: HTTP, leader, follower, a journal with fsync on. No schedule ends before the area
bound; the goal leaves a seventh above it. Kueue's own figure (351 s) includes a real API server, so it is told as a
reference and not as a race.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bench.report import Metric, Result
from muster.model.tenant import CPU, Line, Tenant
from muster.sdk.client import Client
from muster.sdk.exchange import Connection
from muster.sdk.home import Home

COHORTS: Final = 5
QUEUES: Final = 6
OWN: Final = 20
BORROW: Final = 100
PATIENCE_S: Final = 60.0


class Kind(NamedTuple):
    """One kind of workload: how many per queue, of which size, how long, how important, and how often one comes."""

    name: str
    pieces: int
    units: int
    lasts_ms: int
    priority: int
    every_s: float


KINDS: Final = (
    Kind("small", 350, 1, 200, 50, 0.1),
    Kind("medium", 100, 5, 500, 100, 0.5),
    Kind("large", 50, 20, 1000, 200, 1.2),
)
BOUND_S: Final = sum(kind.pieces * kind.units * kind.lasts_ms for kind in KINDS) / 1000 / OWN


def run(seed: int) -> Result:  # noqa: ARG001 - the load is fixed
    """Submit on time, and wait for the last one."""
    with _timed_server() as home:
        with Client(home) as client:
            _set_tenants(client)
        begin = time.perf_counter()
        _submit_all(home, begin)
        submitted_s = time.perf_counter() - begin
        with Client(home) as client:
            _await_end(client)
            wall_s = time.perf_counter() - begin
            failed = len(client.list(state="over", phase="failed", limit=1000).jobs)
    metrics = {"wall_s": Metric(wall_s, "s", 75, at_least=False)}
    reference = {
        "area_bound_s": BOUND_S,
        "kueue_s": 351.1,
        "submitted_s": submitted_s,
        "workloads": sum(kind.pieces for kind in KINDS) * COHORTS * QUEUES,
        "failed": failed,
    }
    return Result("kueue-generator", metrics, reference)


def _set_tenants(client: Client) -> None:
    for cohort in range(COHORTS):
        whole = Line(CPU, guaranteed=OWN * QUEUES * 1000)
        client.set_tenant(f"cohort-{cohort}", Tenant(lines=(whole,)))
        for queue in range(QUEUES):
            line = Line(CPU, guaranteed=OWN * 1000, limit=(OWN + BORROW) * 1000)
            client.set_tenant(f"queue-{cohort}-{queue}", Tenant(parent=f"cohort-{cohort}", lines=(line,)))


def _submit_all(home: Home, begin: float) -> None:
    """Every workload when it comes; those of one moment go together."""
    address = home.find_address()
    assert address is not None
    link = Connection(address, 60)
    headers = {"Authorization": f"Bearer {home.read_token()}"}
    for at_s, kinds in _moments():
        time.sleep(max(0.0, begin + at_s - time.perf_counter()))
        specs = [_spec(kind, cohort, queue) for kind in kinds for cohort in range(COHORTS) for queue in range(QUEUES)]
        body = msgspec.json.encode({"jobs": [{"spec": spec} for spec in specs]})
        answer = link.exchange("POST", "/v1/jobs/bulk", headers, body)
        assert answer.status == 200, answer
        assert b"problem" not in answer.body, answer.body[:500]
    link.close()


def _moments() -> list[tuple[float, list[Kind]]]:
    moments: dict[float, list[Kind]] = {}
    for kind in KINDS:
        for number in range(kind.pieces):
            moments.setdefault(round(number * kind.every_s, 3), []).append(kind)
    return sorted(moments.items())


def _spec(kind: Kind, cohort: int, queue: int) -> dict[str, object]:
    return {
        "command": ["sleep", str(kind.lasts_ms)],
        "name": kind.name,
        "tenant": f"queue-{cohort}-{queue}",
        "priority": kind.priority,
        "ask": {"cpu_milli": 1000 * kind.units},
        "grace_ms": 0,
        "limit_ms": 60_000,
    }


def _await_end(client: Client) -> None:
    give_up_at = time.perf_counter() + 4 * BOUND_S
    while client.list(state="live", limit=1).jobs:
        if time.perf_counter() > give_up_at:
            raise RuntimeError("workloads are left over")
        time.sleep(0.05)


@contextmanager
def _timed_server() -> Iterator[Home]:
    """A leader whose tasks only take time, and a real follower."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        home = Home(Path(name))
        cpus = str(COHORTS * QUEUES * OWN)
        leader = subprocess.Popen([sys.executable, "-m", "bench.timed_leader", name, cpus], stderr=subprocess.DEVNULL)
        follower = subprocess.Popen(
            [sys.executable, "-m", "muster.app", "follower", "--home", name],
            env=os.environ | {"MUSTER_HOME": name},
            stderr=subprocess.DEVNULL,
        )
        try:
            _await_ready(home)
            yield home
        finally:
            for process in (follower, leader):
                process.terminate()
                process.wait()


def _await_ready(home: Home) -> None:
    give_up_at = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < give_up_at:
        if home.find_address() is not None:
            with Client(home, patience_s=PATIENCE_S) as client:
                if client.health().leader:
                    return
        time.sleep(0.1)
    raise RuntimeError("the server does not come up")
