"""The tasks of an array as columns: one byte of phase each, so that a range of ten thousand moves in one slice.

A range is never an object per task. Runs of tasks that look alike are found by searching the bytes, so nothing here
remembers in which order they came to look so.
"""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Final

from muster.model.errors import InvariantError
from muster.model.phase import Lease, TaskPhase
from muster.world.compiled import Words, column_of, compiled, words_of
from muster.world.seating import LEASE, rows_of

NOWHERE: Final = -1
HOLDING: Final = (TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.STOPPING)
LIVE: Final = (TaskPhase.QUEUED, TaskPhase.BLOCKED, *HOLDING)

_NOT_QUEUED: Final = re.compile(rb"[^\x00]")


def spans_of(
    phases: bytes | bytearray, wanted: tuple[TaskPhase, ...], first: int, end: int
) -> Iterator[tuple[int, int]]:
    """The maximal runs (first, count) of tasks in [first, end) whose phase is one of `wanted`."""
    window = phases[first:end]
    if window and window.count(window[0]) == len(window):  # mostly they are all alike
        if window[0] in wanted:
            yield first, len(window)
        return
    for match in _pattern_of(wanted).finditer(window):
        yield first + match.start(), match.end() - match.start()


@functools.cache
def _pattern_of(wanted: tuple[TaskPhase, ...]) -> re.Pattern[bytes]:
    return re.compile(b"[" + b"".join(re.escape(bytes([phase])) for phase in wanted) + b"]+")


class Tasks:
    """Columns by task index: phase, epoch of the latest try, slot and devices it holds, and how often it failed. Of
    those that hold places, also when each came into its phase, and the number of its ticket; 0 of those that do not."""

    __slots__ = ("counts", "devices", "epoch", "failures", "phase", "search_from", "since", "slot", "ticket")

    def __init__(self, count: int, phase: TaskPhase = TaskPhase.QUEUED) -> None:
        self.phase = bytearray([phase]) * count
        self.failures = bytearray(count)
        self.epoch = array("i", bytes(4 * count))
        self.slot = array("i", [NOWHERE]) * count
        self.devices = array("q", bytes(8 * count))
        self.since = array("q", bytes(8 * count))
        self.ticket = array("q", bytes(8 * count))
        self.counts = [count if each == phase else 0 for each in TaskPhase]
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

    def same_epochs(self, first: int, count: int) -> Iterator[tuple[int, int]]:
        """The runs (first, count) in a range of tasks that share an epoch."""
        while count:
            width = self.same_epoch(first, count)
            yield first, width
            first, count = first + width, count - width

    def set_phase(self, first: int, count: int, phase: TaskPhase) -> None:
        """Move a range to one phase and keep the counts in step."""
        counts, old = self.counts, self.phase[first : first + count]
        left = count
        while left:  # mostly they are all alike
            found = old.count(known := old[0])
            counts[known] -= found
            left -= found
            if left:
                old = old.replace(bytes([known]), b"")
        counts[phase] += count
        self.phase[first : first + count] = bytes([phase]) * count
        if phase == TaskPhase.QUEUED:
            self.search_from = min(self.search_from, first)

    def give(self, first: int, count: int, at: int, ticket: int) -> None:
        """Note since when a range holds places, and by which ticket."""
        self.since[first : first + count] = array("q", [at]) * count
        self.ticket[first : first + count] = array("q", [ticket]) * count

    def seat(self, first: int, leases: Sequence[Lease], gpus: int) -> None:
        """Note where tasks sit, from `first` on, and raise their epochs. The devices of a node are dealt to the tasks
        there, lowest bits first; with no whole one each, all share one."""
        columns = (column_of(self.slot), words_of(self.devices), column_of(self.epoch))
        _deal(words_of(rows_of(leases)), first, gpus, *columns)

    def leases(self, first: int, count: int, shared: bool = False) -> list[Lease]:
        """What a range holds: a lease per run of tasks that sit on one node; where devices are shared, on one
        device."""
        rows = array("q", bytes(8 * LEASE * count))
        found = _gather(column_of(self.slot), words_of(self.devices), first, count, shared, words_of(rows))
        flat = rows[: LEASE * found].tolist()
        return list(map(Lease, flat[::LEASE], flat[1::LEASE], flat[2::LEASE]))

    def seats(self, first: int, count: int, shared: bool = False) -> Iterator[tuple[int, int, Lease]]:
        """The same, with the range that each lease is of: (first, count, lease)."""
        for lease in self.leases(first, count, shared):
            yield first, lease.tasks, lease
            first += lease.tasks

    def stretches(self, first: int, count: int) -> Iterator[tuple[int, int, int]]:
        """The runs (first, count, since) of tasks that came into their phase at one instant."""
        end = first + count
        while first < end:
            since, window = self.since[first], self.since[first:end]
            same = len(window) if window == array("q", [since]) * len(window) else _count_equal(words_of(window))
            yield first, same, since
            first += same

    def set_since(self, first: int, count: int, at: int) -> None:
        """Note when a range came into its phase."""
        self.since[first : first + count] = array("q", [at]) * count

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


@compiled
def _deal(rows: Words, first: int, gpus: int, slots: Words, devices: Words, epochs: Words) -> None:
    """Write where tasks sit, from `first` on, by leases."""
    task = first
    for at in range(0, len(rows), LEASE):
        left = rows[at + 2]
        for _ in range(rows[at + 1]):
            mine = 0 if gpus else left
            for _ in range(gpus):
                low = left & -left
                mine |= low
                left ^= low
            slots[task], devices[task] = rows[at], mine
            epochs[task] += 1
            task += 1


@compiled
def _gather(slots: Words, devices: Words, first: int, count: int, shared: bool, rows: Words) -> int:
    """Write the leases of a range; how many there are."""
    found, known = 0, 0
    for task in range(first, first + count):
        at = LEASE * found
        if found and slots[task] == rows[at - LEASE] and not (shared and devices[task] != known):
            rows[at - 2] += 1
            rows[at - 1] |= devices[task]
        else:
            rows[at], rows[at + 1], rows[at + 2] = slots[task], 1, devices[task]
            found += 1
        known = devices[task]
    return found


@compiled
def _count_equal(words: Words) -> int:
    """How many words are as the first one, up to the first that is not."""
    for place in range(len(words)):
        if words[place] != words[0]:
            return place
    return len(words)
