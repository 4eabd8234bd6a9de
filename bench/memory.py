"""`bench memory`: what the leader holds in memory with 100,000 jobs in its queue, each with a spec of its own.

Resident memory as the kernel counts it, after all jobs are durable. The reference is the same leader with none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from bench.crowd import fill
from bench.report import Metric, Result
from bench.server import muster, pids_of, running_server
from bench.submit import HOG
from muster.sdk.home import Home

JOBS: Final = 100_000


def run(seed: int) -> Result:  # noqa: ARG001 - nothing here is random
    """Fill, and look."""
    with running_server("gpus=8,cpus=64,memory=64Gi") as path:
        muster(*HOG, home=path)
        before = _resident_mb(path)
        fill(Home(path), JOBS)
        after = _resident_mb(path)
    metrics = {"leader_mb": Metric(after["leader"], "MB", 300, at_least=False)}
    reference = {
        "leader_empty_mb": before["leader"],
        "follower_mb": after["follower"],
        "follower_empty_mb": before["follower"],
        "jobs": JOBS,
    }
    return Result("memory", metrics, reference)


def _resident_mb(home: Path) -> dict[str, float]:
    texts = {role: Path(f"/proc/{pid}/status").read_text() for role, pid in pids_of(home).items()}
    found = {role: re.search(r"VmRSS:\s+(\d+) kB", text) for role, text in texts.items()}
    return {role: int(match[1]) / 1024 if match else 0.0 for role, match in found.items()}
