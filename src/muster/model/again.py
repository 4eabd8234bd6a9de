"""Tasks of an array that run again: which ones, by the numbers that their commands know them by.

What is over stays over, so tasks that failed come back as those of a new array. It has as many tasks as there are of
them, and each has two numbers: its *place* among them, by which the world and the engines count, and its *index*, the
number that it had at first, by which its command, its owner and the surfaces know it. Of any other array they are the
same. Nobody writes this down by hand: `muster requeue --failed` does.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from muster.model.reason import Code, Reason

if TYPE_CHECKING:  # a listing of jobs need not load it
    from muster.model.ranges import Span

SPANS_MAX: Final = 10_000
"""How many ranges one array brings back at most; each of its starts carries them."""


class Again(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Tasks `of` an array, as ranges of their indexes: the first of each and how many. There were `total` tasks when
    they were given these."""

    of: int
    tasks: tuple[int, ...]
    total: int

    @property
    def spans(self) -> Iterator[Span]:
        """Its ranges, upwards."""
        return zip(self.tasks[::2], self.tasks[1::2], strict=True)


def find_again_fault(again: Again, tasks: int) -> Reason | None:
    """What is wrong with them by themselves, if an array has so many."""
    if len(again.tasks) > 2 * SPANS_MAX:
        return Reason(Code.TOO_LARGE, "again.tasks", len(again.tasks) // 2, SPANS_MAX)
    end = -1
    for first, count in zip(again.tasks[::2], again.tasks[1::2], strict=False):
        if first <= end or count < 1:
            return Reason(Code.BAD_SPEC, "again.tasks", detail="ranges go upwards, and leave something out between")
        end = first + count
    if len(again.tasks) % 2 or sum(again.tasks[1::2]) != tasks or not 0 < end <= again.total:
        return Reason(Code.BAD_SPEC, "again.tasks", detail=f"they are no {tasks} of {again.total} tasks")
    return None


def indexes_of(again: Again | None, tasks: int) -> Sequence[int]:
    """The index of each of so many tasks, by its place."""
    if again is None:
        return range(tasks)
    found = array("q")
    for first, count in again.spans:
        found.extend(range(first, first + count))
    return found


def find_place(again: Again | None, tasks: int, index: int) -> int | None:
    """The place of the task that has an index; None if there is no such task."""
    begin = 0
    for first, count in ((0, tasks),) if again is None else again.spans:
        if first <= index < first + count:
            return begin + index - first
        begin += count
    return None


def index_spans(again: Again | None, places: Iterable[Span]) -> Iterator[Span]:
    """Ranges of places that go upwards, as ranges of indexes."""
    if again is None:
        yield from places
        return
    known, begin = iter(again.spans), 0
    first, count = next(known)
    for place, width in places:
        while width:
            while place >= begin + count:
                begin += count
                first, count = next(known)
            part = min(width, begin + count - place)
            yield first + place - begin, part
            place, width = place + part, width - part
