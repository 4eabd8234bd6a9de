"""`bench latency`: from the submit of an `echo` to its first byte of output, on an idle server.

The clock starts before the request is sent and stops when the task's log has a byte; the log is looked at without a
pause. In between are HTTP, the kernel, a durable commit, the engine, its supervisor, and the start of a process. The
reference is what a bare start of the same command takes here, in the same minutes.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Final

from bench.report import Metric, Result, median
from bench.server import running_server
from muster.engines.local.layout import log_path
from muster.model.spec import Spec
from muster.sdk.client import Client
from muster.sdk.home import Home
from muster.units import Resources

ROUNDS: Final = 60
SPEC: Final = Spec(("echo", "hello"), ask=Resources(cpu_milli=100))
PATIENCE_S: Final = 30.0


def run(seed: int) -> Result:  # noqa: ARG001 - nothing here is random
    """Take turns between a job and a bare start."""
    with running_server() as path, Client(Home(path)) as client:
        _start(client, Home(path))
        rounds = [(_start(client, Home(path)), _start_bare()) for _ in range(ROUNDS)]
    started, bare = [each[0] for each in rounds], [each[1] for each in rounds]
    metrics = {"start_p50_ms": Metric(median(started), "ms", 10, at_least=False)}
    reference = {
        "start_p90_ms": sorted(started)[int(0.9 * ROUNDS)],
        "start_least_ms": min(started),
        "bare_p50_ms": median(bare),
    }
    return Result("latency", metrics, reference)


def _start(client: Client, home: Home) -> float:
    begin = time.perf_counter()
    job = client.submit(SPEC).job
    log = log_path(home.engine_root, job, 0, 1)
    while not _has_bytes(log):
        if time.perf_counter() - begin > PATIENCE_S:
            raise RuntimeError(f"job {job} wrote nothing")
    took_ms = 1000 * (time.perf_counter() - begin)
    client.wait(job)
    return took_ms


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _start_bare() -> float:
    begin = time.perf_counter()
    subprocess.run(SPEC.command, stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - begin)
