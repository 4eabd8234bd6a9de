"""`bench status`: how long reads take beside 64 writers, with 100,000 jobs in the system.

Writers submit in a closed loop, as fast as answers come; four readers ask beside them for one job, for a page of a
tenant's jobs, for what runs, and for the nodes. The reference is the same readers without writers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bench import clients
from bench.clients import Plan, Tally
from bench.crowd import fill
from bench.report import Metric, Result
from bench.server import muster, running_server
from bench.submit import CLIENTS, HOG, submits
from muster.sdk.home import Home

JOBS: Final = 100_000
SECONDS: Final = 6.0
READERS: Final = 4


def run(seed: int) -> Result:  # noqa: ARG001 - nothing here is random
    """Fill, read alone, read beside writers."""
    with running_server("gpus=8,cpus=64,memory=64Gi") as path:
        muster(*HOG, home=path)
        fill(Home(path), JOBS)
        alone = _read(path)
        writing = clients.send(_writes(path))
        beside = _read(path)
        written = clients.read(writing)
    metrics = {"read_p99_ms": Metric(beside.percentile(0.99), "ms", 50, at_least=False)}
    reference = {
        "read_p50_ms": beside.percentile(0.5),
        "alone_p50_ms": alone.percentile(0.5),
        "alone_p99_ms": alone.percentile(0.99),
        "reads_per_s": beside.per_s,
        "submits_per_s": written.per_s,
        "refused": beside.refused + written.refused,
    }
    return Result("status", metrics, reference)


def _read(path: Path) -> Tally:
    home = Home(path)
    address, token = home.find_address(), home.read_token()
    assert address is not None
    targets = ["/v1/jobs/77777", "/v1/jobs?tenant=tenant-7&limit=100", "/v1/jobs?phase=running", "/v1/nodes"]
    asked = [clients.get(target, token) for target in targets]
    return clients.run(Plan(address.host, address.port, asked * READERS, READERS, SECONDS - 2, per_s=100))


def _writes(path: Path) -> Plan:
    home = Home(path)
    address, token = home.find_address(), home.read_token()
    assert address is not None
    return Plan(address.host, address.port, submits(token, 100_000, os.urandom(8).hex()), CLIENTS, SECONDS)
