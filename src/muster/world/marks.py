"""How far the tasks of an array said that they are: columns, which there are from the first word of one of them on.

A mark is that of a try that runs: what stops, ends or waits again has none, so nothing here outlives the run that said
it but where the next one could resume. Which of them count, and what time is worth, is decided elsewhere.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TypeAlias

from muster.model.goodput import Mark
from muster.model.instruction import NOT_SAVED
from muster.model.ranges import Ranges, tasks_in
from muster.world.compiled import Words, column_of, compiled, count_filled, find_filled, words_of

Stretch: TypeAlias = tuple[int, int]
"""From and to when."""
MarkRow: TypeAlias = tuple[int, Mark, int, tuple[Stretch, ...]]
"""A task, its mark, since when it is at what it does now, and what it did before that and since its last checkpoint."""


class Marks:
    """Columns by task, 0 of those that said nothing: the step; step and instant of the last checkpoint; whether one is
    being written; and `since` when, if not since the task is up, it does what it does now: works, or writes. `carries`
    are stretches of work before that of which no checkpoint is written yet. At which step its next try could `resume`
    outlives a try."""

    __slots__ = ("carries", "resume", "saved_at", "saved_step", "since", "step", "writes")

    def __init__(self, count: int) -> None:
        self.step, self.saved_step, self.saved_at, self.since = (array("q", bytes(8 * count)) for _ in range(4))
        self.writes = bytearray(count)
        self.resume = array("q", [NOT_SAVED]) * count
        self.carries: dict[int, tuple[Stretch, ...]] = {}

    @property
    def saved(self) -> int:
        """How many tasks that run have a checkpoint."""
        return count_filled(self.saved_at)

    def get(self, task: int) -> Mark:
        """The mark of one task."""
        return Mark(self.step[task], self.saved_step[task], self.saved_at[task], bool(self.writes[task]))

    def save(self, ranges: Ranges, step: int, at: int) -> None:
        """Tasks are checkpointed."""
        for column in (self.step, self.saved_step, self.resume):
            _fill(words_of(column), words_of(ranges), step)
        for column in (self.saved_at, self.since):
            _fill(words_of(column), words_of(ranges), at)
        self._forget(ranges)

    def tell(self, ranges: Ranges, step: int) -> None:
        """Tasks are so far."""
        _fill(words_of(self.step), words_of(ranges), step)

    def find_turning(self, ranges: Ranges, writes: bool) -> list[int]:
        """Those of some tasks that begin to write a checkpoint, or cease to."""
        return [task for task in tasks_in(ranges) if self.writes[task] != writes]

    def turn(self, tasks: Iterable[int], writes: bool, at: int) -> None:
        """Tasks begin to write a checkpoint, or cease to."""
        for task in tasks:
            self.writes[task], self.since[task] = writes, at

    def clear(self, ranges: Ranges) -> None:
        """Tasks do not run any more, or have just begun to."""
        for column in (self.step, self.saved_step, self.saved_at, self.since):
            _fill(words_of(column), words_of(ranges), 0)
        self._forget(ranges)

    def _forget(self, ranges: Ranges) -> None:
        _fill(column_of(self.writes), words_of(ranges), 0)
        for task in tasks_in(ranges) if self.carries else ():
            self.carries.pop(task, None)

    def resumes(self, first: int, count: int) -> list[int]:
        """At which steps tasks from `first` on could resume; nothing if none of them can."""
        found = self.resume[first : first + count].tolist()
        return found if max(found) != NOT_SAVED else []

    def rows(self) -> list[MarkRow]:
        """All that there is to know, of those that said anything."""
        told = sorted({*find_filled(self.step, 1), *find_filled(self.since, 1)})
        return [(task, self.get(task), self.since[task], self.carries.get(task, ())) for task in told]

    def restore(self, rows: Iterable[MarkRow]) -> None:
        """What `rows` gave."""
        for task, mark, since, carried in rows:
            self.step[task], self.saved_step[task], self.saved_at[task] = mark.step, mark.saved_step, mark.saved_at
            self.writes[task], self.since[task] = mark.is_writing, since
            if carried:
                self.carries[task] = carried

    def fork(self) -> Marks:
        """An independent copy."""
        twin = Marks(0)
        for column in ("step", "saved_step", "saved_at", "since", "writes", "resume"):
            setattr(twin, column, getattr(self, column)[:])
        twin.carries = self.carries.copy()
        return twin


@compiled
def _fill(column: Words, ranges: Words, value: int) -> None:
    """Write one word for all tasks of ranges."""
    for place in range(0, len(ranges), 2):
        for task in range(ranges[place], ranges[place] + ranges[place + 1]):
            column[task] = value
