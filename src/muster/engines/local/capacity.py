"""What this machine has: CPUs we may run on, memory we may use, GPUs that answer, by their ids. Observed, never
configured."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from muster.model.spec import is_name
from muster.units import Resources

NVIDIA_TIMEOUT_S: Final = 5.0


class Machine(NamedTuple):
    """A capacity, and the ids of the GPUs in it; none if they do not all have one."""

    capacity: Resources
    devices: tuple[str, ...] = ()


def discover_machine(system: Path = Path("/")) -> Machine:
    """What this process is allowed to use of the machine. `system` is where /proc and /sys lie."""
    cpus = len(os.sched_getaffinity(0))
    memory = min([_read_memory(system), *_read_memory_limits(system)])
    gpus = _list_gpus()
    named = tuple(gpus) if all(gpus) and len(set(gpus)) == len(gpus) else ()
    return Machine(Resources(gpus=len(gpus), cpu_milli=cpus * 1000, memory_bytes=memory), named)


def discover_capacity(system: Path = Path("/")) -> Resources:
    """How much that is."""
    return discover_machine(system).capacity


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


def _list_gpus() -> list[str]:
    """The ids of the GPUs that answer, in the order of their numbers; one without an id is an empty string."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run(
            [program, "--query-gpu=index,uuid", "--format=csv,noheader"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=NVIDIA_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [line.partition(",") for line in answer.stdout.decode(errors="replace").splitlines()]
    return [name.strip() if is_name(name.strip()) else "" for number, _, name in rows if number.strip().isdigit()]
