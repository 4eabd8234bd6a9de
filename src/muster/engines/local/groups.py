"""Control groups (version 2): a group of its own for a task that asked for memory, where this machine lets us make one.

The system then holds the task and all its descendants to what it asked for: no more memory, a share of the CPUs, so
many processes. A place for groups is looked for once; on a machine that gives us none, `ceilings` looks by itself. It
knows files and processes, nothing of runs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

CONTROLLERS: Final = "+memory +pids +cpu"
PIDS_MAX: Final = 32_768
WEIGHT_PER_CPU: Final = 100
WEIGHTS: Final = (1, 10_000)
VARIABLE: Final = "MUSTER_CGROUP"
"""Where groups are to be made, if an admin has delegated a place to us."""


class Groups:
    """Groups below one directory that is ours. What an earlier keeper left there goes, but for who is still in it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        for path in place.iterdir():
            if path.is_dir():
                _remove(path)

    def enter(self, name: str, pid: int, memory_bytes: int, cpu_milli: int) -> bool:
        """Put a process, with all that it will start, into a group of its own; whether that could be done."""
        group = self._place / name
        weight = min(max(cpu_milli * WEIGHT_PER_CPU // 1000, WEIGHTS[0]), WEIGHTS[1])
        try:
            group.mkdir(exist_ok=True)
            _write(group / "memory.max", str(memory_bytes))
            with contextlib.suppress(OSError):  # a kernel without swap accounting, or without weights
                _write(group / "memory.swap.max", "0")
                _write(group / "memory.oom.group", "1")
                _write(group / "pids.max", str(PIDS_MAX))
                if cpu_milli:
                    _write(group / "cpu.weight", str(weight))
            _write(group / "cgroup.procs", str(pid))
        except OSError:
            _remove(group)
            return False
        return True

    def leave(self, name: str) -> bool:
        """A run is over: remove its group; whether the system killed anything in it for want of memory."""
        group = self._place / name
        was_short = _count_kills(group) > 0
        with contextlib.suppress(OSError):
            _write(group / "cgroup.kill", "1")
        _remove(group)
        return was_short


def find_groups(own: str, name: str, system: Path = Path("/")) -> Groups | None:
    """A place for groups, if there is one where memory can be bounded. `own` is what an admin said, or nothing."""
    for parent in [Path(own)] if own else _candidates(system):
        place = parent / name
        with contextlib.suppress(OSError):
            if _bounds_memory(parent):
                place.mkdir(exist_ok=True)
                if _bounds_memory(place):
                    return Groups(place)
                _remove(place)
    return None


def _bounds_memory(group: Path) -> bool:
    """Whether memory can be bounded in the groups below this one."""
    if "memory" not in (group / "cgroup.controllers").read_text().split():
        return False
    control = group / "cgroup.subtree_control"
    if "memory" not in control.read_text().split():
        _write(control, CONTROLLERS)  # refused where processes are, but for the top
    return "memory" in control.read_text().split()


def _candidates(system: Path) -> Iterator[Path]:
    """Our own group, and the top of the tree, which only root may write."""
    try:
        mounts = [line.split() for line in (system / "proc/self/mounts").read_text().splitlines()]
        lines = (system / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    tops = [system / words[1].lstrip("/") for words in mounts if len(words) > 2 and words[2] == "cgroup2"]
    owns = [line[4:].strip("/") for line in lines if line.startswith("0::/")]
    for top in tops[:1]:
        yield from (top / own for own in owns if own and (top / own).is_dir())
        yield top


def _count_kills(group: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in (group / "memory.events").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0


def _remove(group: Path) -> None:
    with contextlib.suppress(OSError):  # somebody is still in it: the next keeper clears it away
        group.rmdir()


def _write(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
