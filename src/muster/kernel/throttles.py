"""Throttles: of an array that says so, only so many tasks are at it at once. Those wait in their line or hold a place;
the others are blocked, and follow in the order of their numbers as tasks end.

A task that is lost or tried again stays among those that are at it. If fewer may be at it from now on, what runs goes
on, and of those that wait the last are blocked again. Where anything starts is no question here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from muster.kernel.afters import find_met, move_spans
from muster.kernel.turn import Turn
from muster.model import fact
from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.world.tasks import spans_of
from muster.world.world import World

STRETCH: Final = 4096
"""How many tasks are looked at in one go for some that may follow."""


def throttle_all(turn: Turn) -> None:
    """Let tasks follow those that ended in this turn, or block those that are too many."""
    for number in _find_touched(turn):
        job, tasks = turn.world.jobs[number], turn.world.arrays[number]
        room = job.spec.at_most - tasks.holding - tasks.counts[TaskPhase.QUEUED]
        cause = f"at most {job.spec.at_most} at once"
        if room > 0:
            move_spans(turn, job, _find_next(turn.world, job, room), TaskPhase.QUEUED, cause)
        elif room < 0:
            waiting = reversed(list(spans_of(tasks.phase, (TaskPhase.QUEUED,), 0, len(tasks))))
            move_spans(turn, job, sorted(_last_of(waiting, -room)), TaskPhase.BLOCKED, cause)


def _find_touched(turn: Turn) -> list[int]:
    """The arrays with a throttle of which a task ended in this turn, or the like of one."""
    world, found = turn.world, dict[int, None]()
    for item in turn.facts:
        if isinstance(item, fact.AfterMet):
            found.update(dict.fromkeys(item.jobs))
        elif isinstance(item, fact.TasksEnded | fact.ArrayCancelled | fact.Scaled | fact.Accepted):
            found.update(dict.fromkeys((item.job, *world.successors.get(item.job, ()))))
    return sorted(number for number in found if number in world.widths.throttled)


def _find_next(world: World, job: Job, most: int) -> list[tuple[int, int]]:
    """The first so many blocked tasks that may follow, as spans."""
    phases, found = world.arrays[job.id].phase, list[tuple[int, int]]()
    first = phases.find(TaskPhase.BLOCKED)
    while first >= 0 and most:
        for begin, count in find_met(world, job, [(first, min(STRETCH, len(phases) - first))]):
            found += [(begin, min(count, most))] if most else []
            most -= min(count, most)
        first = phases.find(TaskPhase.BLOCKED, first + STRETCH)
    return found


def _last_of(spans: Iterator[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """The last so many tasks of spans that come from the end on."""
    for first, count in spans:
        cut = min(count, most)
        if cut:
            yield first + count - cut, cut
        most -= cut
