"""The cycle: what starts now. It reads like a table of contents and costs what changed, not what exists.

    1  gather    the shapes that are worth a try
    2  choose    the lowest job id among their heads: first come, first served
    3  quota     a line that is over its tenant's quota is parked; the next one is tried
    4  fit       a shape that does not fit sleeps; what could run behind it is not held up
    5  place     on a draft, all of a gang or none of it
    6  commit    one fact for all gangs, one for each range of an array

Nothing is released inside a cycle, so a shape that failed once need not be tried again in it.
"""

from __future__ import annotations

import heapq
from typing import Final

from muster.model.fact import Fact
from muster.model.job import Job
from muster.scheduler.fit import find_gang, find_tasks
from muster.scheduler.reasons import quota_room
from muster.world.draft import Draft
from muster.world.queue import Line, Shape, ShapeKey
from muster.world.world import World

STARTS_MAX: Final = 4096
"""How many placements one cycle makes at most; what is left over wakes the next cycle."""


def run_cycle(world: World, now: int, cause: str) -> list[Fact]:
    """Place what can start now, and return the facts; the world already holds them."""
    candidates = _gather(world)
    with Draft(world, now) as draft:
        starts = 0
        while candidates and starts < STARTS_MAX:
            shape = world.queue.awake.get(heapq.heappop(candidates)[1])
            first = shape.find_first() if shape is not None else None
            if shape is None or first is None:
                continue
            starts += _try_line(world, draft, shape, first[1], cause)
            _offer_again(world, candidates, shape)
        return draft.commit(cause)


def is_due(world: World) -> bool:
    """Whether a cycle could change anything."""
    return bool(world.queue.awake)


def _gather(world: World) -> list[tuple[int, ShapeKey]]:
    """The heads of all awake shapes; a shape whose every line is parked goes to sleep."""
    heads: list[tuple[int, ShapeKey]] = []
    for shape in list(world.queue.awake.values()):
        first = shape.find_first()
        if first is None:
            world.queue.sleep(shape)
        else:
            heads.append((first[0], shape.key))
    heapq.heapify(heads)
    return heads


def _try_line(world: World, draft: Draft, shape: Shape, line: Line, cause: str) -> int:
    """Try the head of a line: 1 if something was placed, else 0 and the line is parked or the shape asleep."""
    job = world.jobs[line.head()]
    if not world.is_within_quota(line.tenant, shape):
        world.queue.park(line)
        return 0
    placed = _place_array(world, draft, job, cause) if job.spec.array else _place_gang(world, draft, job)
    if not placed:
        world.queue.sleep(shape)
    return int(placed)


def _place_gang(world: World, draft: Draft, job: Job) -> bool:
    leases = find_gang(world.fleet, job.spec.ask, job.spec.gang)
    if leases is None:
        return False
    draft.place(job, leases)
    return True


def _place_array(world: World, draft: Draft, job: Job, cause: str) -> bool:
    """One run of waiting tasks; the array stays first in its line until it has none left."""
    run = world.arrays[job.id].find_queued(quota_room(world, job))
    if run is None:
        return False
    leases = find_tasks(world.fleet, job.spec.ask, run[1])
    if not leases:
        return False
    draft.place_tasks(job, run[0], leases, cause)
    return True


def _offer_again(world: World, candidates: list[tuple[int, ShapeKey]], shape: Shape) -> None:
    """A shape that is still awake stands again with its next head; one that has none left goes to sleep."""
    if shape.key not in world.queue.awake:
        return
    first = shape.find_first()
    if first is None:
        world.queue.sleep(shape)
    else:
        heapq.heappush(candidates, (first[0], shape.key))
