"""Who runs tasks of which array again: each that failed is brought back once, as long as nobody gives it up.

Looked for among the live jobs whenever somebody asks, which is seldom; nothing is kept. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.model.again import Again, find_place, index_spans
from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.world.tasks import spans_of
from muster.world.world import World

_KEPT = tuple(phase for phase in TaskPhase if phase != TaskPhase.CANCELLED)


def find_taken(world: World, of: int) -> Iterator[tuple[int, int, int]]:
    """Tasks of an array that others run again, or ran: (who, first index, count). What was cancelled there is nobody's
    any more."""
    for job in world.jobs.values():
        again = job.spec.again
        if again is not None and again.of == of:
            tasks = world.arrays[job.id]
            for first, count in index_spans(again, spans_of(tasks.phase, _KEPT, 0, len(tasks))):
                yield job.id, first, count


def find_unfailed(world: World, job: Job, again: Again) -> int | None:
    """The index of the first task that is to run again and did not fail in its array; None if all of them did."""
    phases, spec = world.arrays[job.id].phase, job.spec
    for first, count in again.spans:
        place = find_place(spec.again, spec.array, first)
        last = find_place(spec.again, spec.array, first + count - 1)
        if place is None or last != place + count - 1 or phases.count(TaskPhase.FAILED, place, last + 1) != count:
            return first
    return None
