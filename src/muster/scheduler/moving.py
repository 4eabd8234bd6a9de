"""moving: where a gang that holds places could be instead.

It is tried on a copy of all places, in which the gang is gone and only those nodes are open that it may go to: so what
is found is free now, or its own, and the quota is asked as if it had stopped already. Nobody is taken for it. Why
somebody moves is said elsewhere; what is found here becomes its claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import ACTIVE, Lease, Queued
from muster.scheduler.booked import only
from muster.scheduler.fit import find_gang, widest_room
from muster.scheduler.herds import MARGIN_MS
from muster.scheduler.within import NOWHERE, pools_for
from muster.world.widths import places_of
from muster.world.world import World

MOVED: Final = "its new place"


def find_elsewhere(world: World, job: Job, slots: Sequence[int]) -> list[Lease] | None:
    """Places for all of a gang on some of the nodes, as if it held none."""
    spec, twin = job.spec, _without(world, job)
    with only(twin.fleet, slots):
        pools = pools_for(twin, spec)
        return None if pools == NOWHERE else find_gang(twin.fleet, spec.ask, spec.places, spec.needs, pools)


def count_elsewhere(world: World, job: Job, slots: Sequence[int]) -> int:
    """How many tasks of a gang would find room together there, whatever its quota says."""
    spec, twin = job.spec, _without(world, job)
    with only(twin.fleet, slots):
        return widest_room(twin.fleet, spec.ask, spec.places, spec.needs)


def claim_elsewhere(job: Job, leases: Sequence[Lease], now: int, grace_ms: int = 0) -> fact.Claimed:
    """The claim on its new places of a gang that is told to stop now: for as long as it may take to be gone, and who is
    there still. Whoever moves keeps its ticket: it is as old as it was."""
    columns = ([x.slot for x in leases], [x.tasks for x in leases], [x.devices for x in leases])
    until = now + max(grace_ms, job.spec.grace_ms) + MARGIN_MS
    ticket = job.phase.run.ticket if isinstance(job.phase, ACTIVE) else 0
    return fact.Claimed(job.id, *columns, until, MOVED, ticket=ticket)


def claim_tasks(job: Job, moves: Iterable[tuple[int, int, Lease]], now: int, grace_ms: int = 0) -> fact.Claimed:
    """The same for tasks of an array: each a task, the ticket that it has and keeps, and its new place."""
    movers, tickets, leases = map(list, zip(*sorted(moves), strict=True))
    plain = claim_elsewhere(job, leases, now, grace_ms)
    return replace(plain, ticket=max(tickets), movers=movers, tickets=tickets)


def why_immovable(job: Job) -> str:
    """Why a job cannot be moved, in words; nothing if it can."""
    needs = job.spec.needs
    reasons = {
        "it waits and holds no place": isinstance(job.phase, Queued),
        "it is held, so it would not start again": job.held,
        "it has several groups": bool(needs.groups),
        "its place is a booking's": bool(needs.booking),
        "it minds who is beside it": needs.has_company,
    }
    return next((word for word, is_so in reasons.items() if is_so), "")


def _without(world: World, job: Job) -> World:
    """All places, as if a gang had none."""
    twin, spec, leases = world.fork_places(), job.spec, places_of(job)
    for lease in leases:
        twin.fleet.vacate(lease.slot, job.id, spec.ask, lease.tasks, lease.devices)
    for site, tasks in twin.sites.spread(leases):
        twin.ledger.charge(spec.tenant, site, spec.ask, -tasks)
    return twin
