"""sparing: which of a gang's places are its spares, and when it gets others for those that it used or lost.

A gang with spares is placed with all of them or not at all. A spare is of use if it is on another node than the ranks,
so places are looked for that let it be; if there are none, it may share a node with some of them. Later a gang that has
fewer than it asked for gets more in the last place of all: of what is left when everybody who waits was asked, and only
where nobody who waits could have a task, so that nobody waits longer for it. It never decides what a spare is used for:
see `muster.scheduler.repair`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from muster.model import fact
from muster.model.job import Job, Resize
from muster.model.phase import Lease, columns_of
from muster.model.spec import Spec
from muster.scheduler.growing import find_beside, find_more
from muster.scheduler.placing.fit import Pools, find_gang, find_pools
from muster.scheduler.placing.rations import Rations
from muster.scheduler.repair import is_left
from muster.units import Resources
from muster.world.arena import POOL
from muster.world.queue import Shape
from muster.world.quota import Standing
from muster.world.widths import spares_of, split_leases
from muster.world.world import World

INSTEAD: Final = "instead of one that it used or lost"
CLOSED: Final = "their nodes are closed or booked"


def set_apart(world: World, job: Job, leases: Sequence[Lease], pools: Pools) -> list[Lease]:
    """Places for all of a gang, its spares last and on nodes of their own: these, or others if only they let them."""
    spec = job.spec
    ranks, spares = part_nodes(leases, spec.spares, spec.ask)
    if not {lease.slot for lease in ranks} & {lease.slot for lease in spares}:
        return [*ranks, *spares]
    alone = find_gang(world.fleet, spec.ask, spec.gang, spec.needs, pools, job.id)
    others = [] if alone is None else find_beside(world, spec, alone, spec.spares, apart=True)
    if alone is None or _count(others) < spec.spares or not _has_budget(world, spec.ask, [*alone, *others]):
        return [*ranks, *spares]
    return [*alone, *others]


def part_nodes(leases: Sequence[Lease], spares: int, ask: Resources) -> tuple[list[Lease], list[Lease]]:
    """Places parted into those of ranks and so many spares: whole nodes for spares, the fullest that are not too many,
    and of those alike the last; if that is not enough, a part of the last node besides."""
    left, taken = spares, dict[int, None]()
    for at in sorted(range(len(leases)), key=lambda at: (-leases[at].tasks, -at)):
        if leases[at].tasks <= left:
            left -= leases[at].tasks
            taken[at] = None
    ranks = [lease for at, lease in enumerate(leases) if at not in taken]
    ranks, rest = split_leases(ranks, _count(ranks) - left, ask)
    return ranks, [*rest, *(lease for at, lease in enumerate(leases) if at in taken)]


def spares_last(spec: Spec, leases: list[Lease]) -> list[Lease]:
    """Places for all of a gang in the order in which it takes them: those of its spares are the last."""
    if not spec.spares:
        return leases
    ranks, spares = part_nodes(leases, spec.spares, spec.ask)
    return [*ranks, *spares]


def plan_drop(world: World, job: Job) -> fact.SparesDropped | None:
    """What lets a gang's spares go that are where nothing could start any more, if there are any."""
    shut = dict.fromkeys(lease.slot for lease in spares_of(job) if not is_left(world.fleet, lease))
    gone = [lease for lease in spares_of(job) if lease.slot in shut]
    return fact.SparesDropped(job.id, [x.slot for x in gone], [x.tasks for x in gone], CLOSED) if gone else None


def plan_refills(world: World) -> Iterator[fact.SparesGiven]:
    """What gives gangs the spares that they lack, the lowest number first; each is to be true before the next is asked
    for."""
    wanted: dict[int, bool] = {}
    for number in sorted(world.widths.lacking):
        job = world.jobs[number]
        if not _may_refill(world, job):
            continue
        lacks = job.spec.spares - _count(spares_of(job))
        found = find_more(world, job, lacks, borrows=job.spec.evictable, apart=True)
        more = [lease for lease in found if not _is_wanted(world, lease.slot, wanted)]
        if more:
            columns = columns_of(more)
            yield fact.SparesGiven(number, *columns, INSTEAD)


def _may_refill(world: World, job: Job) -> bool:
    """Whether a run goes on as it is, and its turns are its own."""
    is_changing = job.id in world.widths.mending or world.widths.resizes.get(job.id, Resize(0)).to
    return not (job.held or is_changing) and world.tiers[job.spec.tier].sharing is None


def _is_wanted(world: World, slot: int, known: dict[int, bool]) -> bool:
    """Whether somebody who waits, and is within its quota, could ever have a task on nodes such as this one: maybe not
    now, but somebody may leave."""
    pool = world.fleet.read(POOL, slot)
    if pool not in known:
        known[pool] = any(_wants(world, shape, pool) for shape in world.queue.shapes.values())
    return known[pool]


def _wants(world: World, shape: Shape, pool: int) -> bool:
    has_quota = any(world.standing_of(line) is not Standing.OVER for line in shape.lines.values())
    return has_quota and pool in find_pools(world.fleet, shape.ask, shape.needs)


def _has_budget(world: World, ask: Resources, leases: Sequence[Lease]) -> bool:
    fleet = world.fleet
    return not fleet.overlays.by_name or Rations(fleet).has_room_at([(ask, lease) for lease in leases])


def _count(leases: Sequence[Lease]) -> int:
    return sum(lease.tasks for lease in leases)
