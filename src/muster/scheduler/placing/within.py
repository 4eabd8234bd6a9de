"""within: on which pools the quota lets somebody start. A pool lies on one site, and what is held counts by site.

Judged for a whole gang at once, as if all of it lay on that one site: then it is right wherever among the sites that
are left it lands, and whether it may start does not depend on which place is the best one at the moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from muster.model.job import Job
from muster.model.spec import Needs, Spec
from muster.scheduler.placing.fit import Pools, find_pools
from muster.units import Resources
from muster.world.fleet import Fleet
from muster.world.queue import BORROWING, INSIDE, Shape, key_of
from muster.world.quota import Room
from muster.world.sites import Site
from muster.world.world import World

EVERYWHERE: Final = None
NOWHERE: Final = ()
_SITES: Final = "sites"

Places = tuple[tuple[Site, tuple[int, ...]], ...]
"""Sites, each with those of its pools that an ask could use."""


def pools_within(world: World, tenant: str, shape: Shape, worst: int = BORROWING) -> Pools:
    """The pools on which one more gang of a shape would stand no worse than this; what may not be evicted may not
    borrow."""
    if world.bookings and shape.needs.booking in world.bookings:
        return EVERYWHERE
    if not shape.evictable:
        worst = INSIDE
    quotas, sites = world.quotas, world.sites.all
    if len(sites) == 1:
        return EVERYWHERE if quotas.standing(tenant, sites[0], shape.ask, shape.gang) <= worst else NOWHERE
    if not quotas.is_any():
        return EVERYWHERE
    places = places_of(world, world.fleet, shape.ask, shape.needs)
    return join_pools(places, [quotas.standing(tenant, site, shape.ask, shape.gang) <= worst for site, _ in places])


def can_start(world: World, tenant: str, shape: Shape, worst: int, rooms: Sequence[Sequence[Room]]) -> bool:
    """Whether there would be any such pool if so much were left for the tenant on each site, by its number."""
    if world.bookings and shape.needs.booking in world.bookings:
        return True
    if not shape.evictable:
        worst = INSIDE
    quotas, sites = world.quotas, world.sites.all
    if len(sites) > 1:
        sites = [site for site, _ in places_of(world, world.fleet, shape.ask, shape.needs)]
    standings = (quotas.standing_in(rooms[site.number], tenant, site, shape.ask, shape.gang) for site in sites)
    return not sites or any(standing <= worst for standing in standings)


def pools_for(world: World, spec: Spec) -> Pools:
    """Where a gang of a spec, or one task of an array, may start at all."""
    return pools_within(world, spec.tenant, Shape(key_of(spec)))


def pools_on(world: World, spec: Spec, site: Site) -> Pools:
    """The pools of one site that a spec could use."""
    if len(world.sites.all) == 1:
        return EVERYWHERE
    return dict(places_of(world, world.fleet, spec.ask, spec.needs))[site]


def quota_room(world: World, job: Job, site: Site, *, borrows: bool) -> int:
    """How many more tasks of a job its tenant's quota lets start on a site now, at most as many as the job has: inside
    its guarantee, or borrowing what others do not use. What is booked was asked of the quota before."""
    spec = job.spec
    if world.bookings and spec.needs.booking in world.bookings:
        return spec.tasks
    return world.quotas.headroom(spec.tenant, site, spec.ask, spec.tasks, evictable=borrows and spec.evictable)


def join_pools(places: Places, allowed: Sequence[bool]) -> Pools:
    """The pools of all places that are allowed."""
    if all(allowed):
        return EVERYWHERE
    return tuple(sorted(pool for (_, pools), here in zip(places, allowed, strict=True) if here for pool in pools))


def places_of(world: World, fleet: Fleet, ask: Resources, needs: Needs) -> Places:
    """The sites on which an ask could ever lie, by number, with their pools in this fleet: the world's own, or a blank
    of it. Remembered as long as the fleet is laid out as it is."""
    key = (_SITES, ask, needs)
    found: Places | None = fleet.recall(key)
    if found is None:
        found = fleet.asked[key] = _find_places(world, fleet, ask, needs)
    return found


def _find_places(world: World, fleet: Fleet, ask: Resources, needs: Needs) -> Places:
    pools: dict[int, list[int]] = {}
    for number in find_pools(fleet, ask, needs):
        pools.setdefault(world.site_of_pool(fleet.pools[number]).number, []).append(number)
    return tuple((world.sites.all[site], tuple(pools[site])) for site in sorted(pools))
