"""The cycle: what starts now. It reads like a table of contents and costs what changed, not what exists.

    1  gather    the shapes that are worth a try
    2  choose    the lowest job id among their heads: first come, first served
    3  fit       a shape that does not fit sleeps; what could run behind it is not held up
    4  quota     a line that is over its tenant's quota wherever there is room is parked; the next one is tried
    5  place     on a draft, all of a gang or none of it
    6  commit    one fact for gangs in a row, one for each range of an array

Nothing is released inside a cycle, so a shape that failed once need not be tried again in it.
"""

from __future__ import annotations

import heapq
from typing import Final

from muster.model.fact import Fact
from muster.model.job import Job
from muster.model.phase import Lease
from muster.scheduler.fit import find_gang, find_tasks
from muster.scheduler.reasons import quota_room
from muster.scheduler.within import EVERYWHERE, pools_on, pools_within
from muster.world.draft import Draft
from muster.world.queue import Line, Queue, Shape
from muster.world.sites import Site
from muster.world.world import World

STARTS_MAX: Final = 4096
"""How many placements one cycle makes at most; what is left over wakes the next cycle."""


def run_cycle(world: World, now: int, cause: str) -> list[Fact]:
    """Place what can start now, and return the facts; the world already holds them."""
    queue, fleet = world.queue, world.fleet
    heads = _gather(queue)
    with Draft(world, now) as draft:
        starts = 0
        while heads and starts < STARTS_MAX:
            _, line = heapq.heappop(heads)
            leases = find_gang(fleet, line.shape.ask, line.shape.gang, line.shape.needs)
            if leases is None:
                queue.sleep(line.shape)
                continue
            pools = pools_within(world, line.tenant, line.shape)
            if pools is not EVERYWHERE:
                leases = find_gang(fleet, line.shape.ask, line.shape.gang, line.shape.needs, pools)
            if leases is None:
                queue.park(line)
            else:
                _place(world, draft, world.jobs[line.head()], leases, cause)
                starts += 1
            _stand(queue, heads, line.shape)
        return draft.commit(cause)


def _gather(queue: Queue) -> list[tuple[int, Line]]:
    """The first head of every awake shape."""
    heads: list[tuple[int, Line]] = []
    for shape in list(queue.awake.values()):
        _stand(queue, heads, shape)
    return heads


def _stand(queue: Queue, heads: list[tuple[int, Line]], shape: Shape) -> None:
    """A shape stands with its lowest id; one whose every line is parked goes to sleep, one that is served is gone."""
    first = shape.find_first()
    if first is not None:
        heapq.heappush(heads, first)
    elif shape.key in queue.awake:
        queue.sleep(shape)


def _place(world: World, draft: Draft, job: Job, leases: list[Lease], cause: str) -> None:
    if job.spec.array:
        _place_tasks(world, draft, job, world.site_of(leases[0].slot), cause)
    else:
        draft.place(job, leases)


def _place_tasks(world: World, draft: Draft, job: Job, site: Site, cause: str) -> None:
    """One run of an array's waiting tasks, on one site; it stays first in its line until it has none left."""
    spec, pools = job.spec, pools_on(world, job.spec, site)
    first, count = world.arrays[job.id].get_queued(quota_room(world, job, site))
    draft.place_tasks(job, first, find_tasks(world.fleet, spec.ask, count, spec.needs, pools), cause)
