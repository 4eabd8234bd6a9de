"""What this machine has: CPUs we may run on, memory we may use, GPUs that answer. Observed, never configured."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from muster.units import Resources

NVIDIA_TIMEOUT_S: Final = 5.0


def discover_capacity(system: Path = Path("/")) -> Resources:
    """The machine's capacity, as far as this process is allowed to use it. `system` is where /proc and /sys lie."""
    cpus = len(os.sched_getaffinity(0))
    memory = min([_read_memory(system), *_read_memory_limits(system)])
    return Resources(gpus=_count_gpus(), cpu_milli=cpus * 1000, memory_bytes=memory)


def _read_memory(system: Path) -> int:
    for line in (system / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return 0


def _read_memory_limits(system: Path) -> list[int]:
    """The limits of our control group (version 2) and of all above it."""
    group = _find_group(system)
    if group is None:
        return []
    top = system / "sys/fs/cgroup"
    limits = []
    for part in (group, *group.parents):
        try:
            text = (top / part / "memory.max").read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # otherwise it is `max`
            limits.append(int(text))
    return limits


def _find_group(system: Path) -> Path | None:
    try:
        lines = (system / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    return next((Path(line[4:]) for line in lines if line.startswith("0::/")), None)


def _count_gpus() -> int:
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        answer = subprocess.run(
            [program, "--query-gpu=index", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=NVIDIA_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.strip().isdigit() for line in answer.stdout.decode(errors="replace").splitlines())
