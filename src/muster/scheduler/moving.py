"""moving: where a gang that holds places could be instead, or some tasks of an array.

It is tried on a copy of all places, in which they are gone and only those nodes are open that they may go to: so what
is found is free now, or their own, and the quota is asked as if they had stopped already. Nobody is taken for it. Why
somebody moves is said elsewhere; what is found here becomes its claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import ACTIVE, Lease, Queued, Spread, TaskPhase, columns_of
from muster.model.ranges import ranges_of
from muster.scheduler.booked import only
from muster.scheduler.placing.fit import find_gang, find_tasks, widest_room
from muster.scheduler.placing.within import NOWHERE, pools_for, quota_room
from muster.scheduler.placing.within import places_of as places_on
from muster.scheduler.taking.herds import MARGIN_MS
from muster.world.widths import places_of, split_leases
from muster.world.world import World

MOVED: Final = "its new place"


def find_elsewhere(world: World, job: Job, slots: Sequence[int]) -> list[Lease] | None:
    """Places for all of a gang on some of the nodes, as if it held none."""
    spec, twin = job.spec, _without(world, job, places_of(job))
    with only(twin.fleet, slots):
        pools = pools_for(twin, spec)
        return None if pools == NOWHERE else find_gang(twin.fleet, spec.ask, spec.places, spec.needs, pools)


def count_elsewhere(world: World, job: Job, slots: Sequence[int]) -> int:
    """How many tasks of a gang would find room together there, whatever its quota says."""
    spec, twin = job.spec, _without(world, job, places_of(job))
    with only(twin.fleet, slots):
        return widest_room(twin.fleet, spec.ask, spec.places, spec.needs)


def find_tasks_elsewhere(world: World, job: Job, movers: Sequence[int], slots: Sequence[int]) -> list[Lease]:
    """Places for tasks of an array on some of the nodes, as if they held none: one for each, or for as many as there is
    room for, and quota."""
    spec, tasks = job.spec, world.arrays[job.id]
    twin = _without(world, job, tasks.leases(ranges_of(movers), shared=spec.ask.gpu_milli > 0))
    found = list[Lease]()
    with only(twin.fleet, slots):
        for site, pools in places_on(twin, twin.fleet, spec.ask, spec.needs):
            most = min(len(movers) - len(found), quota_room(twin, job, site, borrows=True))
            leases = find_tasks(twin.fleet, spec.ask, most, spec.needs, pools) if most and pools else []
            for lease in leases:
                twin.fleet.occupy(lease.slot, job.id, spec.ask, lease.tasks, lease.devices)
                twin.ledger.charge(spec.tenant, site, spec.ask, lease.tasks)
            while leases:
                one, leases = split_leases(leases, 1, spec.ask)
                found += one
    return found


def claim_elsewhere(job: Job, leases: Sequence[Lease], now: int, grace_ms: int = 0) -> fact.Claimed:
    """The claim on its new places of a gang that is told to stop now: for as long as it may take to be gone, and who is
    there still. Whoever moves keeps its ticket: it is as old as it was."""
    columns = columns_of(leases)
    until = now + max(grace_ms, job.spec.grace_ms) + MARGIN_MS
    ticket = job.phase.run.ticket if isinstance(job.phase, ACTIVE) else 0
    return fact.Claimed(job.id, *columns, until, MOVED, ticket=ticket)


def claim_tasks(job: Job, moves: Iterable[tuple[int, int, Lease]], now: int, grace_ms: int = 0) -> fact.Claimed:
    """The same for tasks of an array: each a task, the ticket that it has and keeps, and its new place."""
    movers, tickets, leases = map(list, zip(*sorted(moves), strict=True))
    plain = claim_elsewhere(job, leases, now, grace_ms)
    return replace(plain, ticket=max(tickets), movers=movers, tickets=tickets)


def why_immovable(job: Job) -> str:
    """Why a job cannot be moved, in words; nothing if it can. Asked of everybody who runs, once a minute."""
    needs = job.spec.needs
    if isinstance(job.phase, Queued):
        return "it waits and holds no place"
    if job.held:
        return "it is held, so it would not start again"
    if job.waits:
        return "it waits for other jobs"
    if needs.booking:
        return "its place is a booking's"
    return "it minds who is beside it" if needs.has_company else ""


def why_tasks_stay(world: World, job: Job) -> str:
    """Why no tasks of an array can be moved now, in words; nothing if they can. If more are at it than may be, whoever
    comes to wait is blocked."""
    tasks, is_over = world.arrays[job.id], isinstance(job.phase, Spread) and job.phase.cancelled
    is_full = 0 < job.spec.at_most < tasks.holding + tasks.counts[TaskPhase.QUEUED]
    reasons = {
        "it is cancelled": is_over,
        "places are kept for some of its tasks already": job.id in world.claims,
        "more of its tasks are at it than may be at once": is_full,
        "it waits and holds no place": not (tasks.counts[TaskPhase.STARTING] or tasks.counts[TaskPhase.RUNNING]),
    }
    return next((word for word, is_so in reasons.items() if is_so), "")


def _without(world: World, job: Job, leases: Sequence[Lease]) -> World:
    """All places, as if a job had none of these."""
    twin, spec = world.fork_places(), job.spec
    for ask, part in spec.parts(leases):
        for lease in part:
            twin.fleet.vacate(lease.slot, job.id, ask, lease.tasks, lease.devices)
    for site, ask, tasks in twin.sites.share(spec, leases):
        twin.ledger.charge(spec.tenant, site, ask, -tasks)
    return twin
