"""again: the failed tasks of an array that nobody runs again yet, as the journal tells it, and the array that will.

The journal knows an array that lives and one that retired long ago alike, and who has brought back what of it: that is
in its story. Only what is over is looked at, so nothing here has to be undone; that nobody was quicker is the kernel's
to say.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from muster.control.story import get_beginning, own_facts
from muster.model.again import SPANS_MAX, index_spans
from muster.model.errors import RejectedError
from muster.model.fact import Accepted, Ended, TasksEnded
from muster.model.phase import TaskPhase
from muster.model.ranges import Span
from muster.model.reason import Code, Reason
from muster.model.spec import Spec, bring_back
from muster.wire.codec import Entry

Reader: TypeAlias = Callable[[int], Awaitable[list[Entry]]]
"""Reads the entries of a job's story."""
_DONE: Final = (TaskPhase.SUCCEEDED, TaskPhase.FAILED)
_RUNS: Final = re.compile(rb"\x01+")


class Failures(NamedTuple):
    """What an array was accepted as, which of its tasks failed and are nobody's, a byte for each index; and the jobs
    that have others of them, by the key that made each."""

    spec: Spec
    left: bytearray
    takers: dict[int, str]

    @property
    def spans(self) -> Iterator[Span]:
        """What is left as ranges."""
        return ((each.start(), each.end() - each.start()) for each in _RUNS.finditer(self.left))


async def find_failures(read: Reader, number: int, entries: Sequence[Entry]) -> Failures:
    """The failures of an array with this story. Whoever is over gave up what it had and did not come to do."""
    spec = get_beginning(entries, number)[1]
    left = _mark(spec, entries, number, (TaskPhase.FAILED,))
    takers = [item for _, item in own_facts(entries, number) if isinstance(item, Accepted) and item.job != number]
    for taker in takers:
        story = await read(taker.job)
        is_over = any(isinstance(item, Ended) for _, item in own_facts(story, taker.job))
        taken = _mark(taker.spec, story, taker.job, _DONE) if is_over else _mark_all(taker.spec)
        left = bytearray(mine & ~theirs & 1 for mine, theirs in zip(left, taken, strict=True))
    return Failures(spec, left, {taker.job: taker.key for taker in takers})


def make_again(found: Failures, number: int, now: int) -> Spec:
    """The array that runs what is left again. If it is scattered too far, the rest is left for another; RejectedError
    if nothing is."""
    spans = tuple(islice(found.spans, SPANS_MAX))
    if not spans:
        raise RejectedError(Reason(Code.NOTHING_FAILED, "job", number, detail=_why_nothing(found)))
    spec = bring_back(found.spec, number, chain(*spans))
    is_past = spec.due_at is not None and spec.due_at <= now
    return replace(spec, due_at=None) if is_past else spec


def _why_nothing(found: Failures) -> str:
    if not found.spec.array:
        return "it is no array; submit it again"
    others = ", ".join(map(str, found.takers))
    return f"what did runs again as job {others}" if others else "none of its tasks did"


def _mark(spec: Spec, entries: Sequence[Entry], number: int, phases: tuple[TaskPhase, ...]) -> bytearray:
    """The tasks that ended so, a byte for each index."""
    marks = bytearray(spec.total)
    for _, item in own_facts(entries, number):
        if isinstance(item, TasksEnded) and item.phase in phases:
            for first, count in index_spans(spec.again, item.spans):
                marks[first : first + count] = b"\1" * count
    return marks


def _mark_all(spec: Spec) -> bytearray:
    marks = bytearray(spec.total)
    for first, count in index_spans(spec.again, [(0, spec.array)]):
        marks[first : first + count] = b"\1" * count
    return marks
