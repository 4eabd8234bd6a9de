"""Ceilings: no task has more memory than its job asked for, so that nobody pays for another's leak.

Where the system lets us, each such task has a control group and the system itself holds it (`groups`). Elsewhere its
whole family is looked at every second and ended if it has more: pages that it shares with others are counted in parts,
so that loaders which share one data set count it once. A task that asked for no memory has no ceiling.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from muster.engines.local.groups import Groups
from muster.engines.local.layout import Key
from muster.engines.local.processes import find_family
from muster.units import show_bytes

LOOK_S: Final = 1.0
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Ceiling(NamedTuple):
    """What one run may have. `is_held`: the system holds it."""

    pid: int
    memory_bytes: int
    is_held: bool


class Ceilings:
    """The ceilings of a keeper's living runs."""

    def __init__(self, groups: Groups | None) -> None:
        self._groups = groups
        self._known: dict[Key, Ceiling] = {}
        self._over: dict[Key, str] = {}
        self.look_at: float | None = None

    def add(self, key: Key, pid: int, memory_bytes: int, cpu_milli: int, now: float) -> None:
        """A run has begun; without an ask for memory there is nothing to hold it to."""
        if not memory_bytes:
            return
        is_held = self._groups is not None and self._groups.enter(key.name, pid, memory_bytes, cpu_milli)
        self._known[key] = Ceiling(pid, memory_bytes, is_held)
        if not is_held and self.look_at is None:
            self.look_at = now + LOOK_S

    def look(self, now: float) -> list[Key]:
        """Whoever is above its ceiling, if it is time to look."""
        if self.look_at is None or now < self.look_at:
            return []
        watched = {key: ceiling for key, ceiling in self._known.items() if not ceiling.is_held}
        self.look_at = now + LOOK_S if watched else None
        families = find_family({ceiling.pid for ceiling in watched.values()})
        for key, (pid, most, _) in watched.items():
            pids = [pid, *(process.pid for process in families[pid])]
            if sum(_resident(pids)) > most and (used := sum(_shares(pids))) > most:
                self._over[key] = _word(most, f"it had {show_bytes(used)}")
        return [key for key in watched if key in self._over]

    def remove(self, key: Key) -> str:
        """A run is over; a word if it was for want of memory."""
        ceiling = self._known.pop(key, None)
        if ceiling is None:
            return ""
        if ceiling.is_held and self._groups is not None and self._groups.leave(key.name):
            return _word(ceiling.memory_bytes, "the system ended it")
        return self._over.pop(key, "")


def _word(most: int, what: str) -> str:
    return f"out of memory: {what}, and asked for {show_bytes(most)} [M334]"


def _resident(pids: Iterable[int]) -> Iterator[int]:
    """What processes have in memory, each by itself: never less than what they have together."""
    for pid in pids:
        try:
            yield int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue


def _shares(pids: Iterable[int]) -> Iterator[int]:
    """The same with each shared page divided among those who share it; costs a walk over all their pages."""
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
        except OSError:
            continue
        yield from (int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
