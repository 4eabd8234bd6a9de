"""The tasks of an array as columns: one byte of phase each, so that a range of ten thousand moves in one slice.

A range is never an object per task, and a thousand ranges are gone through in compiled code, so that tasks which end in
whatever order cost little more than neighbours. Runs of tasks that look alike are found by searching the bytes, so
nothing here remembers in which order they came to look so.
"""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from muster.model.errors import InvariantError
from muster.model.phase import STOPS, Lease, TaskPhase, Why
from muster.model.ranges import Ranges, as_ranges, ranges_of, tasks_in
from muster.world.compiled import Words, blank_words, column_of, compiled, sort_rows, words_of
from muster.world.marks import Marks
from muster.world.seating import LEASE

NOWHERE: Final = -1
GOING_ON: Final = (TaskPhase.STARTING, TaskPhase.RUNNING)
HOLDING: Final = (*GOING_ON, TaskPhase.STOPPING)
LIVE: Final = (TaskPhase.QUEUED, TaskPhase.BLOCKED, *HOLDING)

AGE: Final = 5
"""Words of an age."""
ENDING: Final = 1 + LEASE
"""Words of an ending: when, and a lease."""
AGES_APART: Final = 64
"""How many ages further back one is looked for that is the same: more would cost more than they save."""

STARTING, STOPPING = int(TaskPhase.STARTING), int(TaskPhase.STOPPING)
WRITING: Final = len(TaskPhase)
"""In an age, for a phase: of those that run, these write a checkpoint."""
_NONE: Final = column_of(bytearray())
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


class Age(NamedTuple):
    """Tasks that are in one phase since one instant; after an earlier try, or not; on one node, if that is told."""

    phase: int
    is_again: int
    since: int
    slot: int
    tasks: int


class Tasks:
    """Columns by task index: phase, epoch of the latest try, slot and devices it holds, and how often it failed. Of
    those that hold places, also when each came into its phase, and the number of its ticket; 0 of those that do not. Of
    those that are stopping, why, by its place in `STOPS`; 0 of the others. There are `marks` once one of them said how
    far it is. Of the few that were `moved` so that others fit and are not over, when: the latest times."""

    __slots__ = (
        "counts", "devices", "epoch", "failures", "marks", "moved", "phase", "search_from", "since", "slot", "ticket",
        "why",
    )  # fmt: skip

    def __init__(self, count: int, phase: TaskPhase = TaskPhase.QUEUED) -> None:
        self.phase = bytearray([phase]) * count
        self.failures, self.why = bytearray(count), bytearray(count)
        self.epoch = array("i", bytes(4 * count))
        self.slot = array("i", [NOWHERE]) * count
        self.devices = array("q", bytes(8 * count))
        self.since = array("q", bytes(8 * count))
        self.ticket = array("q", bytes(8 * count))
        self.counts = [count if each == phase else 0 for each in TaskPhase]
        self.marks: Marks | None = None
        self.moved: dict[int, tuple[int, ...]] = {}
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

    def know_marks(self) -> Marks:
        """How far tasks said that they are; from the first word on it is kept."""
        if self.marks is None:
            self.marks = Marks(len(self))
        return self.marks

    @property
    def saved_at(self) -> array[int]:
        """A column of when tasks that run were last checkpointed; of those that never were, an instant before or at
        that at which they came into their phase."""
        return self.since if self.marks is None else self.marks.saved_at

    def find_queued(self, most: int, but: Sequence[int] = ()) -> tuple[int, int] | None:
        """The first run of waiting tasks with one epoch, at most `most` long; without some that go upwards."""
        first = self.phase.find(TaskPhase.QUEUED, self.search_from)
        if first < 0:
            return None
        self.search_from = first
        while first in but:
            first = self.phase.find(TaskPhase.QUEUED, first + 1)
            if first < 0:
                return None
        most = next((task - first for task in but if first < task < first + most), most)
        other = _NOT_QUEUED.search(self.phase, first, first + most)
        end = other.start() if other else min(first + most, len(self.phase))
        return first, self.same_epoch(first, end - first)

    def get_queued(self, most: int, but: Sequence[int] = ()) -> tuple[int, int]:
        """The same, for a caller who knows that some task waits."""
        run = self.find_queued(most, but)
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

    def find_runs(self, ranges: Ranges, wanted: tuple[TaskPhase, ...], epoch: int) -> Ranges:
        """The runs of tasks, each task once and upwards, whose phase is one of `wanted` and whose try is this one."""
        if len(ranges) > 2:
            ranges = sort_rows(ranges, 2, (0,))
        runs = array("q", bytes(16 * min(sum(ranges[1::2]), len(self))))
        mask = sum(1 << phase for phase in wanted)
        found = _sift(column_of(self.phase), column_of(self.epoch), words_of(ranges), mask, epoch, words_of(runs))
        return runs[: 2 * found]

    def find_on(self, slot: int, count: int) -> Ranges:
        """The runs of tasks, upwards, that hold a place on a node: so many tasks."""
        runs = array("q", bytes(16 * count))
        return runs[: 2 * _sift_slot(column_of(self.slot), slot, words_of(runs))]

    def find_older(self, since: int) -> Ranges:
        """The runs of tasks, upwards, that run since then or longer."""
        runs = array("q", bytes(16 * self.counts[TaskPhase.RUNNING]))
        found = _sift_older(column_of(self.phase), words_of(self.since), int(TaskPhase.RUNNING), since, words_of(runs))
        return runs[: 2 * found]

    def ages(self, ranges: Ranges, with_slots: bool, marks: Marks | None = None) -> list[Age]:
        """What tasks are at, and since when; those of several nodes together, unless it matters where they are. With
        their marks, what they work at, or write, since when."""
        rows = array("q", bytes(8 * AGE * sum(ranges[1::2])))
        since = words_of(self.since)
        said = (since, _NONE) if marks is None else (words_of(marks.since), column_of(marks.writes))
        columns = (column_of(self.phase), column_of(self.epoch), since, column_of(self.slot))
        found = _tell_ages(*columns, *said, words_of(ranges), with_slots, words_of(rows))
        flat = rows[: AGE * found].tolist()
        return list(map(Age, flat[::AGE], flat[1::AGE], flat[2::AGE], flat[3::AGE], flat[4::AGE]))

    def enter(self, ranges: Ranges, phase: TaskPhase, at: int, why: Why = Why.DRAIN) -> None:
        """Move tasks that keep their places to another phase; those that are to stop, for a reason."""
        if self.marks is not None:
            self.marks.clear(ranges)
        tally = blank_words(len(TaskPhase))  # and a plain int: what a member is takes longer to find out than the rest
        _enter(column_of(self.phase), words_of(self.since), words_of(ranges), int(phase), at, tally)
        self._recount(ranges, tally, phase)
        if phase == TaskPhase.STOPPING:
            self._note_why(ranges, STOPS.index(why))

    def leave(self, ranges: Ranges, phase: TaskPhase) -> None:
        """Move tasks that held places to a phase in which they sit nowhere."""
        if self.counts[TaskPhase.STOPPING]:
            self._note_why(ranges, 0)
        if self.marks is not None:
            self.marks.clear(ranges)
        if self.moved and phase not in LIVE:
            self._forget_moves(ranges)
        tally = blank_words(len(TaskPhase))
        _enter(column_of(self.phase), words_of(self.since), words_of(ranges), int(phase), 0, tally)
        _unseat(column_of(self.slot), words_of(self.devices), words_of(self.ticket), words_of(ranges))
        self._recount(ranges, tally, phase)

    def _forget_moves(self, ranges: Ranges) -> None:
        for task in tasks_in(ranges):
            self.moved.pop(task, None)

    def _note_why(self, ranges: Ranges, why: int) -> None:
        for first, count in zip(ranges[::2], ranges[1::2], strict=True):
            self.why[first : first + count] = bytes([why]) * count

    def whys_of(self, ranges: Ranges) -> list[tuple[Why, Ranges]]:
        """Tasks that are stopping by why they are; mostly it is the same for all."""
        spans = list(zip(ranges[::2], ranges[1::2], strict=True))
        known = b"".join(self.why[first : first + count] for first, count in spans)
        kinds = [kind for kind in range(len(STOPS)) if kind in known]
        if len(kinds) == 1:
            return [(STOPS[kinds[0]], ranges)]
        tasks = list(tasks_in(ranges))
        return [(STOPS[kind], ranges_of(task for task in tasks if self.why[task] == kind)) for kind in kinds]

    def _recount(self, ranges: Ranges, tally: Words, phase: TaskPhase) -> None:
        for known, moved in enumerate(tally.tolist()):
            self.counts[known] -= moved
            self.counts[phase] += moved
        if phase == TaskPhase.QUEUED:
            self.search_from = min(self.search_from, *ranges[::2])

    def give(self, first: int, count: int, at: int, ticket: int) -> None:
        """Note since when a range holds places, and by which ticket."""
        self.since[first : first + count] = array("q", [at]) * count
        self.ticket[first : first + count] = array("q", [ticket]) * count

    def seat(self, first: int, rows: array[int], gpus: int) -> None:
        """Note where tasks sit, from `first` on, by leases as words, and raise their epochs. The devices of a node are
        dealt to the tasks there, lowest bits first; with no whole one each, all share one."""
        columns = (column_of(self.slot), words_of(self.devices), column_of(self.epoch))
        _deal(words_of(rows), first, gpus, *columns)

    def leases(self, ranges: Ranges, shared: bool = False) -> list[Lease]:
        """What ranges hold: a lease per run of tasks that sit on one node; where devices are shared, on one device."""
        rows = array("q", bytes(8 * LEASE * sum(ranges[1::2])))
        found = _gather(column_of(self.slot), words_of(self.devices), words_of(ranges), shared, words_of(rows))
        flat = rows[: LEASE * found].tolist()
        return list(map(Lease, flat[::LEASE], flat[1::LEASE], flat[2::LEASE]))

    def seats(self, first: int, count: int, shared: bool = False) -> Iterator[tuple[int, int, Lease]]:
        """The same of one range, with the part of it that each lease is of: (first, count, lease)."""
        for lease in self.leases(as_ranges(first, count), shared):
            yield first, lease.tasks, lease
            first += lease.tasks

    def endings(self, limit_ms: int, shared: bool) -> Iterator[tuple[int, Lease]]:
        """When tasks will have given their places back, at the latest, and which: by their limit from when they are up,
        or from when they got them if they are not; those that were told to stop may at any moment. In order."""
        rows = array("q", bytes(8 * ENDING * self.holding))
        columns = (column_of(self.phase), words_of(self.since), column_of(self.slot), words_of(self.devices))
        found = _tell_endings(*columns, limit_ms, shared, words_of(rows)) if rows else 0
        flat = sort_rows(rows[: ENDING * found], ENDING, (0, 1)).tolist() if found else []
        leases = map(Lease, flat[1::ENDING], flat[2::ENDING], flat[3::ENDING])
        return zip(flat[::ENDING], leases, strict=True)

    def fork(self) -> Tasks:
        """An independent copy: a memcpy for each column."""
        twin = Tasks.__new__(Tasks)
        for column in ("phase", "failures", "epoch", "slot", "devices", "since", "ticket", "why", "counts"):
            setattr(twin, column, getattr(self, column)[:])
        twin.search_from = self.search_from
        twin.marks, twin.moved = None if self.marks is None else self.marks.fork(), self.moved.copy()
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
def _gather(slots: Words, devices: Words, ranges: Words, shared: bool, rows: Words) -> int:
    """Write the leases of ranges; how many there are."""
    found, known = 0, 0
    for place in range(0, len(ranges), 2):
        for task in range(ranges[place], ranges[place] + ranges[place + 1]):
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
def _tell_endings(
    phases: Words, since: Words, slots: Words, devices: Words, limit: int, shared: bool, rows: Words
) -> int:
    """Write what tasks that hold places will give back, and when; how many rows there are."""
    found, known = 0, 0
    for task in range(len(phases)):
        if not STARTING <= phases[task] <= STOPPING:
            continue
        end = since[task] if phases[task] == STOPPING else since[task] + limit
        at = ENDING * found
        is_same = found and rows[at - ENDING] == end and rows[at - ENDING + 1] == slots[task]
        if is_same and not (shared and devices[task] != known):
            rows[at - 2] += 1
            rows[at - 1] |= devices[task]
        else:
            rows[at], rows[at + 1], rows[at + 2], rows[at + 3] = end, slots[task], 1, devices[task]
            found += 1
        known = devices[task]
    return found


@compiled
def _lengthen(runs: Words, found: int, task: int) -> int:
    """Put a task behind the last of the runs that were found, or begin another with it; how many there are now."""
    at = 2 * found
    if found and runs[at - 2] + runs[at - 1] == task:
        runs[at - 1] += 1
        return found
    runs[at], runs[at + 1] = task, 1
    return found + 1


@compiled
def _sift(phases: Words, epochs: Words, ranges: Words, wanted: int, epoch: int, runs: Words) -> int:
    """Write the runs of tasks that are wanted, each task once; how many runs there are."""
    found, end = 0, 0
    for place in range(0, len(ranges), 2):
        for task in range(max(end, ranges[place]), ranges[place] + ranges[place + 1]):
            end = task + 1
            if not (wanted >> phases[task] & 1 and epochs[task] == epoch):
                continue
            found = _lengthen(runs, found, task)
    return found


@compiled
def _sift_older(phases: Words, since: Words, phase: int, latest: int, runs: Words) -> int:
    """Write the runs of tasks that are in a phase since an instant or longer; how many runs there are."""
    found = 0
    for task in range(len(phases)):
        if phases[task] != phase or since[task] > latest:
            continue
        found = _lengthen(runs, found, task)
    return found


@compiled
def _sift_slot(slots: Words, slot: int, runs: Words) -> int:
    """Write the runs of tasks that sit on a node; how many runs there are."""
    found = 0
    for task in range(len(slots)):
        if slots[task] == slot:
            found = _lengthen(runs, found, task)
    return found


@compiled
def _tell_ages(
    phases: Words, epochs: Words, since: Words, slots: Words, later: Words, writes: Words, ranges: Words,
    with_slots: bool, rows: Words,
) -> int:  # fmt: skip
    """Write the ages of ranges; how many there are. The same one may be there twice, far apart."""
    found = 0
    for place in range(0, len(ranges), 2):
        for task in range(ranges[place], ranges[place] + ranges[place + 1]):
            again, slot = 1 if epochs[task] > 1 else 0, slots[task] if with_slots else 0
            phase = WRITING if len(writes) and writes[task] else phases[task]
            begin = max(since[task], later[task])
            row = found - 1
            while row >= max(0, found - AGES_APART) and not (
                rows[AGE * row + 2] == begin
                and rows[AGE * row] == phase
                and rows[AGE * row + 1] == again
                and rows[AGE * row + 3] == slot
            ):
                row -= 1
            if row >= max(0, found - AGES_APART):
                rows[AGE * row + 4] += 1
                continue
            at = AGE * found
            rows[at], rows[at + 1], rows[at + 2], rows[at + 3], rows[at + 4] = phase, again, begin, slot, 1
            found += 1
    return found


@compiled
def _enter(phases: Words, since: Words, ranges: Words, phase: int, at: int, tally: Words) -> None:
    """Write the phase of ranges and since when they are in it; in the tally, how many were in which one."""
    for place in range(0, len(ranges), 2):
        for task in range(ranges[place], ranges[place] + ranges[place + 1]):
            tally[phases[task]] += 1
            phases[task], since[task] = phase, at


@compiled
def _unseat(slots: Words, devices: Words, tickets: Words, ranges: Words) -> None:
    """Write that ranges sit nowhere."""
    for place in range(0, len(ranges), 2):
        for task in range(ranges[place], ranges[place] + ranges[place + 1]):
            slots[task], devices[task], tickets[task] = NOWHERE, 0, 0
