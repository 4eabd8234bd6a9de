"""repair: a gang that lost a node keeps the places that are left to it, and is the first to get others instead.

What is left is a claim on fewer places than the gang has tasks. As long as it stands, the gang is asked before
everybody else, and starts as soon as all of it fits: on its own places and whatever else is free. A claim ends by
itself after a while, so that two broken gangs never wait for each other for ever; the lower number is served first.

A run that bears tasks joining and leaving goes on without those that it lost, and mends: as soon as there are places
for as many as it lacks of what it needs, where the others are, it gets them before anybody else is asked. If there are
none in a short while, it is begun anew like any other.

Spares come before all of that: a run that mends has them as places at once, and a broken gang that is whole with them
starts again without waiting.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from muster.model import fact
from muster.model.claim import Claim
from muster.model.job import Job, Resize
from muster.model.partition import devices_in
from muster.model.phase import ACTIVE, RESIZED, Lease, Running, TaskPhase, Why, columns_of
from muster.scheduler.growing import find_more, may_vary
from muster.scheduler.placing.fit import find_gang
from muster.scheduler.placing.within import NOWHERE, pools_for
from muster.units import MINUTE_MS
from muster.world.claiming import charge_claim, claimed_on, slots_of
from muster.world.fleet import Fleet
from muster.world.widths import LEFT as LEFT_RANK
from muster.world.widths import RANKS_MAX, least_part, spares_of, width_of
from muster.world.world import World

MEND_MS: Final = 2 * MINUTE_MS
"""How long a run goes on without the ranks that it lost, at most, before it is begun anew."""
REPAIR_MS: Final = 10 * MINUTE_MS
"""How long a broken gang keeps what is left of its places."""
LEFT: Final = "what is left of it"
INSTEAD: Final = "instead of what it lost"


def plan_repair(world: World, job: Job, why: Why, now: int) -> fact.Claimed | None:
    """What a gang keeps whose run is over since something of it was lost, or since it is to have another width: of the
    least that it needs, what is left; and its spares, with which it may be whole. Who keeps all of it for another width
    is as old as before. Asked as long as it holds its leases."""
    ranks = [lease for lease in least_part(job) if is_left(world.fleet, lease)]
    left = [*ranks, *(lease for lease in spares_of(job) if is_left(world.fleet, lease))]
    is_single = job.spec.gang == 1 and not job.spec.spares
    if not left or job.held or job.spec.needs.groups or (is_single and why == Why.LOST):
        return None
    columns = columns_of(left)
    keeps_all = why in RESIZED and sum(lease.tasks for lease in ranks) == job.spec.gang
    ticket = job.phase.run.ticket if keeps_all and isinstance(job.phase, ACTIVE) else 0
    return fact.Claimed(job.id, *columns, now + REPAIR_MS, LEFT, ticket=ticket)


def is_left(fleet: Fleet, lease: Lease) -> bool:
    """Whether a place is still there, and nobody's who comes first."""
    missing = fleet.lacks.get(lease.slot)
    return fleet.is_listed(lease.slot) and (missing is None or not missing.devices & devices_in(lease.devices))


def is_partial(job: Job, claim: Claim) -> bool:
    """Whether a claim is for less than the whole gang."""
    return not job.spec.array and sum([lease.tasks for lease in claim.leases]) < job.spec.gang


def looks_anew(job: Job, claim: Claim) -> bool:
    """Whether a gang has to find its places anew: it kept a part of them, or somebody whom it minds may have come."""
    return is_partial(job, claim) or (not job.spec.array and job.spec.needs.has_company)


def find_repair(world: World, job: Job) -> list[Lease] | None:
    """Places for all of a broken gang: its own and whatever is free."""
    spec = job.spec
    with without_claim(world, job):
        pools = pools_for(world, spec)
        return None if pools == NOWHERE else find_gang(world.fleet, spec.ask, spec.gang, spec.needs, pools)


def can_mend(world: World, job: Job, first: int, count: int) -> bool:
    """Whether a run goes on without ranks that it lost: it bears that tasks leave and join, is up, nothing else of it
    is over or to leave, and somebody is left."""
    spec, ranks = job.spec, world.ranks.get(job.id, b"")
    if not (spec.in_place and spec.gang_most and isinstance(job.phase, Running)) or job.held:
        return False
    if not may_vary(world, spec) or world.widths.resizes.get(job.id, Resize(0)).to:
        return False
    live = ranks.count(TaskPhase.RUNNING) + ranks.count(TaskPhase.STARTING)
    has_ranks = len(ranks) + spec.gang_most <= RANKS_MAX
    return has_ranks and live == width_of(job) and count < live and LEFT_RANK not in ranks[first : first + count]


def count_usable(job: Job) -> int:
    """How many spares of a run take the places of ranks that it lacks."""
    return 0 if job.held else min(job.spec.gang - width_of(job), sum(lease.tasks for lease in spares_of(job)))


def find_replacement(world: World, job: Job) -> list[Lease] | None:
    """Places for all that a run lacks of what it needs, where the others are; or None."""
    lacks = job.spec.gang - width_of(job)
    found = [] if job.held else find_more(world, job, lacks, borrows=job.spec.evictable)
    return found if sum(lease.tasks for lease in found) == lacks else None


def mends_until(world: World, job: int) -> int:
    """Until when a run waits for other places than those that it lost."""
    return world.widths.resizes[job].at + MEND_MS


@contextlib.contextmanager
def without_claim(world: World, job: Job) -> Iterator[None]:
    """As if a job claimed nothing."""
    claim, fleet = world.claims.get(job.id), world.fleet
    kept = {slot: fleet.claimed[slot] for slot in slots_of(claim)} if claim is not None else {}
    for slot, claimed in claimed_on(world, kept, but=job.id).items():
        fleet.set_claimed(slot, claimed)
    if claim is not None:
        charge_claim(world, job.id, -1)
    try:
        yield
    finally:
        if claim is not None:
            charge_claim(world, job.id, 1)
        for slot, claimed in kept.items():
            fleet.set_claimed(slot, claimed)
