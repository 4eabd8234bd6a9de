"""repair: a gang that lost a node keeps the places that are left to it, and is the first to get others instead.

What is left is a claim on fewer places than the gang has tasks. As long as it stands, the gang is asked before
everybody else, and starts as soon as all of it fits: on its own places and whatever else is free. A claim ends by
itself after a while, so that two broken gangs never wait for each other for ever; the lower number is served first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from muster.model import fact
from muster.model.claim import Claim
from muster.model.job import Job
from muster.model.partition import devices_in
from muster.model.phase import Lease, Why
from muster.scheduler.fit import find_gang
from muster.scheduler.within import NOWHERE, pools_for
from muster.units import MINUTE_MS
from muster.world.claiming import charge_claim, claimed_on, slots_of
from muster.world.fleet import Fleet
from muster.world.widths import least_part
from muster.world.world import World

REPAIR_MS: Final = 10 * MINUTE_MS
"""How long a broken gang keeps what is left of its places."""
LEFT: Final = "what is left of it"


def plan_repair(world: World, job: Job, why: Why, now: int) -> fact.Claimed | None:
    """What a gang keeps whose run is over since something of it was lost, or since it is to have another width: of the
    least that it needs, what is left. Asked as long as it holds its leases."""
    left = [lease for lease in least_part(job) if is_left(world.fleet, lease)]
    if not left or job.held or job.spec.needs.groups or (job.spec.gang == 1 and why == Why.LOST):
        return None
    columns = ([x.slot for x in left], [x.tasks for x in left], [x.devices for x in left])
    return fact.Claimed(job.id, *columns, now + REPAIR_MS, LEFT)


def is_left(fleet: Fleet, lease: Lease) -> bool:
    """Whether a place is still there, and nobody's who comes first."""
    missing = fleet.lacks.get(lease.slot)
    return fleet.is_listed(lease.slot) and (missing is None or not missing.devices & devices_in(lease.devices))


def is_partial(job: Job, claim: Claim) -> bool:
    """Whether a claim is for less than the whole gang."""
    return not job.spec.array and sum(lease.tasks for lease in claim.leases) < job.spec.gang


def looks_anew(job: Job, claim: Claim) -> bool:
    """Whether a gang has to find its places anew: it kept a part of them, or somebody whom it minds may have come."""
    return is_partial(job, claim) or (not job.spec.array and job.spec.needs.has_company)


def find_repair(world: World, job: Job) -> list[Lease] | None:
    """Places for all of a broken gang: its own and whatever is free."""
    spec = job.spec
    with without_claim(world, job):
        pools = pools_for(world, spec)
        return None if pools == NOWHERE else find_gang(world.fleet, spec.ask, spec.gang, spec.needs, pools)


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
