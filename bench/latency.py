"""`bench latency`: from the submit of an `echo` to its first byte of output, on an idle server.

The clock starts before the request is sent and stops when the task's log has a byte, at which it looks every fifth of a
millisecond: who looked without a pause would take one of two cores from those it measures. In between are HTTP, the
kernel, one durable commit, the engine, its supervisor, its keeper, and the start of a process: seven times somebody
hands on to somebody else. The reference is what a bare start of the same command and a bare sync take here, in the same
minutes, and how often the server's processes waited for somebody per job, which does not depend on the load.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import suppress
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
LOOK_S: Final = 0.0002


def run(seed: int) -> Result:  # noqa: ARG001 - nothing here is random
    """Take turns between a job, a bare start and a bare sync."""
    with running_server() as path, Client(Home(path)) as client, tempfile.TemporaryFile(dir=path) as file:
        _start(client, Home(path))
        before = _count_waits(path)
        rounds = [(_start(client, Home(path)), _start_bare(), _sync_bare(file.fileno())) for _ in range(ROUNDS)]
        waits = _count_waits(path) - before
    started, bare, synced = (list(column) for column in zip(*rounds, strict=True))
    metrics = {"start_p50_ms": Metric(median(started), "ms", 10, at_least=False)}
    reference = {
        "start_p90_ms": sorted(started)[int(0.9 * ROUNDS)],
        "start_least_ms": min(started),
        "bare_p50_ms": median(bare),
        "fsync_p50_ms": median(synced),
        "waits_per_job": waits / ROUNDS,
    }
    return Result("latency", metrics, reference)


def _start(client: Client, home: Home) -> float:
    begin = time.perf_counter()
    job = client.submit(SPEC).job
    log = log_path(home.engine_root, job, 0, 1)
    while not _has_bytes(log):
        if time.perf_counter() - begin > PATIENCE_S:
            raise RuntimeError(f"job {job} wrote nothing")
        time.sleep(LOOK_S)
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


def _sync_bare(handle: int) -> float:
    os.write(handle, bytes(4096))
    begin = time.perf_counter()
    os.fdatasync(handle)
    return 1000 * (time.perf_counter() - begin)


def _count_waits(home: Path) -> int:
    """How often the threads of a server, its supervisor and its keepers have waited for anything so far."""
    waits = 0
    for status in Path("/proc").glob("[0-9]*/task/*/status"):
        with suppress(OSError):  # it ended meanwhile
            if str(home).encode() in status.parents[2].joinpath("cmdline").read_bytes():
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
                waits += int(lines["voluntary_ctxt_switches"])
    return waits
