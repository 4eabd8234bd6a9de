"""The tasks of an array as columns: one byte of phase each, so that a range of ten thousand moves in one slice.

A range is never an object per task. Runs of tasks that look alike are found by searching the bytes, so nothing here
remembers in which order they came to look so.
"""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Iterator
from typing import Final

from muster.model.errors import InvariantError
from muster.model.phase import TaskPhase

NOWHERE: Final = -1
HOLDING: Final = (TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.STOPPING)
LIVE: Final = (TaskPhase.QUEUED, *HOLDING)

_NOT_QUEUED: Final = re.compile(rb"[^\x00]")


def spans_of(
    phases: bytes | bytearray, wanted: tuple[TaskPhase, ...], first: int, end: int
) -> Iterator[tuple[int, int]]:
    """The maximal runs (first, count) of tasks in [first, end) whose phase is one of `wanted`."""
    for match in _pattern_of(wanted).finditer(phases[first:end]):
        yield first + match.start(), match.end() - match.start()


@functools.cache
def _pattern_of(wanted: tuple[TaskPhase, ...]) -> re.Pattern[bytes]:
    return re.compile(b"[" + b"".join(re.escape(bytes([phase])) for phase in wanted) + b"]+")


class Tasks:
    """Columns by task index: phase, epoch of the latest try, slot and devices it holds, and how often it failed. Of
    those that hold places, also when each came into its phase, and the number of its ticket; 0 of those that do not."""

    __slots__ = ("counts", "devices", "epoch", "failures", "phase", "search_from", "since", "slot", "ticket")

    def __init__(self, count: int) -> None:
        self.phase = bytearray(count)
        self.failures = bytearray(count)
        self.epoch = array("i", bytes(4 * count))
        self.slot = array("i", [NOWHERE]) * count
        self.devices = array("q", bytes(8 * count))
        self.since = array("q", bytes(8 * count))
        self.ticket = array("q", bytes(8 * count))
        self.counts = [count, 0, 0, 0, 0, 0, 0]
        self.search_from = 0

    def __len__(self) -> int:
        return len(self.phase)

    @property
    def live(self) -> int:
        """How many tasks are not over."""
        return sum(self.counts[phase] for phase in LIVE)

    @property
    def holding(self) -> int:
        """How many tasks hold a place."""
        return sum(self.counts[phase] for phase in HOLDING)

    def find_queued(self, most: int) -> tuple[int, int] | None:
        """The first run of waiting tasks with one epoch, at most `most` long."""
        first = self.phase.find(TaskPhase.QUEUED, self.search_from)
        if first < 0:
            return None
        self.search_from = first
        other = _NOT_QUEUED.search(self.phase, first, first + most)
        end = other.start() if other else min(first + most, len(self.phase))
        return first, self.same_epoch(first, end - first)

    def get_queued(self, most: int) -> tuple[int, int]:
        """The same, for a caller who knows that some task waits."""
        run = self.find_queued(most)
        if run is None:
            raise InvariantError("an array in the queue has waiting tasks", f"counts {self.counts}")
        return run

    def same_epoch(self, first: int, count: int) -> int:
        """How many tasks from `first` on, of `count`, share the first one's epoch."""
        epoch = self.epoch[first]
        window = self.epoch[first : first + count]
        if window == array("i", [epoch]) * count:
            return count
        return next(index for index, value in enumerate(window) if value != epoch)

    def set_phase(self, first: int, count: int, phase: TaskPhase) -> None:
        """Move a range to one phase and keep the counts in step."""
        counts = self.counts
        old = self.phase[first : first + count]
        for known in TaskPhase:
            found = old.count(known)
            if found:
                counts[known] -= found
        counts[phase] += count
        self.phase[first : first + count] = bytes([phase]) * count
        if phase == TaskPhase.QUEUED:
            self.search_from = min(self.search_from, first)

    def give(self, first: int, count: int, at: int, ticket: int) -> None:
        """Note since when a range holds places, and by which ticket."""
        self.since[first : first + count] = array("q", [at]) * count
        self.ticket[first : first + count] = array("q", [ticket]) * count

    def place(self, first: int, count: int, slot: int) -> None:
        """Note where a range sits and raise its epoch; its devices are set by `share_devices`."""
        self.slot[first : first + count] = array("i", [slot]) * count
        self.epoch[first : first + count] = array("i", [self.epoch[first] + 1]) * count

    def share_devices(self, first: int, count: int, gpus: int, devices: int) -> None:
        """Deal the devices of one node to the tasks there, lowest bits first; with no whole one each, all share one."""
        if not gpus:
            self.devices[first : first + count] = array("q", [devices]) * count
            return
        for task in range(first, first + count):
            mine = 0
            for _ in range(gpus):
                low = devices & -devices
                mine |= low
                devices ^= low
            self.devices[task] = mine

    def seats(self, first: int, count: int, shared: bool = False) -> Iterator[tuple[int, int, int]]:
        """The runs (slot, first, count) of tasks that sit on one node; where devices are shared, on one device."""
        end = first + count
        while first < end:
            slot = self.slot[first]
            stop = first + 1
            while stop < end and self.slot[stop] == slot and not (shared and self.devices[stop] != self.devices[first]):
                stop += 1
            yield slot, first, stop - first
            first = stop

    def set_since(self, first: int, count: int, at: int) -> None:
        """Note when a range came into its phase."""
        self.since[first : first + count] = array("q", [at]) * count

    def held_devices(self, first: int, count: int) -> int:
        """The devices of a range, as one word."""
        held = 0
        for mine in self.devices[first : first + count]:
            held |= mine
        return held

    def clear(self, first: int, count: int, has_devices: bool) -> None:
        """Note that a range sits nowhere."""
        self.slot[first : first + count] = array("i", [NOWHERE]) * count
        self.give(first, count, 0, 0)
        if has_devices:
            self.devices[first : first + count] = array("q", bytes(8 * count))

    def fork(self) -> Tasks:
        """An independent copy: a memcpy for each column."""
        twin = Tasks.__new__(Tasks)
        for column in ("phase", "failures", "epoch", "slot", "devices", "since", "ticket", "counts"):
            setattr(twin, column, getattr(self, column)[:])
        twin.search_from = self.search_from
        return twin
