"""growing: who gets more places than it needs, once everybody who waits has been served.

An elastic gang starts with the least that it needs, and at the same instant gets what is left over, up to the most that
it may have. Later it gets more in place, if it bears that; or its run is begun anew, if that makes it at least half as
wide again. Neither happens again before a while has passed since the run began or last got another width, nor a wider
start so soon after it was made to shrink: so nobody flaps, and the instants are those of the world.

What is given here is held on the weakest terms: anybody who waits and is within its quota may have it back. So nobody
who grows ever stands in the way of somebody who waits.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from muster.model import fact
from muster.model.job import Job, Resize
from muster.model.node import LEVELS, Level
from muster.model.phase import Lease, Running, Starting, TaskPhase, Why, columns_of
from muster.model.spec import Spec
from muster.scheduler.placing.fit import TASKS_MAX, find_tasks
from muster.scheduler.placing.within import places_of
from muster.units import INSTANT_MAX, MINUTE_MS, Resources
from muster.world.fleet import Fleet
from muster.world.widths import RANKS_MAX, leases_of, split_leases, width_of
from muster.world.world import World

IN_PLACE_MS: Final = MINUTE_MS
"""How long a run that bears it in place has one width before it grows."""
RESTART_MS: Final = 10 * MINUTE_MS
"""How long another run has one width before it is begun anew with more, or after it was made to shrink."""

ROOM: Final = "room for"


Means: TypeAlias = tuple[str, int, Resources]
"""A tenant, a site by number, and an ask: for those alike in this there is quota for one task more, or for none."""


class Reach(NamedTuple):
    """Where a run may get more places, but for the quota: those alike in this find the same."""

    site: int
    flavors: tuple[str, ...]
    domain: tuple[object, ...]
    shape: tuple[object, ...]


def in_order(world: World, now: int, fresh: Container[int]) -> list[int]:
    """The elastic gangs that may get more places now, as the walk would meet their tenants. Those of a kind of which
    nobody finds a place are not looked at: most of the time the fleet is full."""
    latest = now - IN_PLACE_MS  # of those who have places since later, only who just got them may have more
    narrow: list[int] = []
    for (ask, needs), runs in world.widths.narrow.items():
        if find_tasks(world.fleet, ask, 1, needs):
            narrow += [number for number, since in runs.items() if since <= latest or number in fresh]
    jobs = [job for number in narrow if may_grow(world, job := world.jobs[number], now, number in fresh)]
    if not jobs:
        return []
    tenants = world.walk.in_order(dict.fromkeys(sorted({job.spec.tenant for job in jobs})), now)
    place = {name: at for at, name in enumerate(tenants)}
    return [job.id for job in sorted(jobs, key=lambda job: (place[job.spec.tenant], job.id))]


def plan_growth(world: World, now: int, fresh: Container[int]) -> Iterator[fact.Grown | fact.StopAsked]:
    """What makes runs wider, one after the other: each is to be true before the next is asked for. The `fresh` ones
    have just got their places, and no engine knows of it yet."""
    left: dict[Reach, int] = {}  # all that there is; nothing is given back before the last of them was asked
    spent: dict[Means, None] = {}
    for number in in_order(world, now, fresh):
        job = world.jobs[number]
        least, means = _least_more(job), _means_of(world, job)
        if means in spent:
            continue
        reach = _reach_of(world, job)
        if left.get(reach, least) < least:
            continue
        most = _most_more(world, job, job.spec.gang_most - width_of(job))
        if not most:
            spent[means] = None
        if most < least:
            continue
        more = find_beside(world, job.spec, leases_of(job), most)
        found = sum(lease.tasks for lease in more)
        if found < most:
            left[reach] = found
        if found >= least:
            yield _grow_by(job, more, found)


def find_chance(world: World, now: int) -> int:
    """The first instant after now at which time alone lets somebody grow; INSTANT_MAX if there is none."""
    first = INSTANT_MAX
    for job in (world.jobs[number] for runs in world.widths.narrow.values() for number in runs):
        if isinstance(job.phase, Running) and now < (at := _grows_at(world, job)) < first and _can_grow(world, job):
            first = at
    return first


def may_grow(world: World, job: Job, now: int, is_fresh: bool) -> bool:
    """Whether a run may get more places now."""
    if not isinstance(job.phase, Starting):
        return now >= _grows_at(world, job) and _can_grow(world, job)
    resize = world.widths.resizes.get(job.id)
    return is_fresh and (resize is None or now >= resize.at + RESTART_MS) and _can_grow(world, job)


def find_more(world: World, job: Job, most: int, *, borrows: bool = True, apart: bool = False) -> list[Lease]:
    """The places that a run could have besides its own: where it is already, by quota and by what it asks for."""
    most = _most_more(world, job, most, borrows=borrows)
    return find_beside(world, job.spec, leases_of(job), most, apart=apart) if most else []


def _most_more(world: World, job: Job, most: int, *, borrows: bool = True) -> int:
    """How many more places the quota lets a run have."""
    spec, site = job.spec, world.site_of(leases_of(job)[0].slot)
    return world.quotas.headroom(spec.tenant, site, spec.ask, most, evictable=borrows)


def find_beside(world: World, spec: Spec, leases: Sequence[Lease], most: int, *, apart: bool = False) -> list[Lease]:
    """The places that there are besides some others, whatever the quota says: in the same domain, on the same flavors,
    and, if they are to be `apart`, on none of the same nodes."""
    site, level = world.site_of(leases[0].slot), LEVELS[spec.needs.within or "cluster"]
    flavors = {world.fleet.flavor(lease.slot) for lease in leases}
    here = dict(places_of(world, world.fleet, spec.ask, spec.needs)).get(site, ())
    pools = tuple(pool for pool in here if world.fleet.pools[pool].flavor in flavors)
    if not pools:
        return []
    if level >= Level.CLUSTER and not apart:
        return find_tasks(world.fleet, spec.ask, most, spec.needs, pools)
    around = _slots_around(world.fleet, leases[0].slot, level) if level < Level.CLUSTER else None
    if around is not None and not any(_may_hold(world.fleet, slot, spec.ask) for slot in around):
        return []
    found = find_tasks(world.fleet, spec.ask, TASKS_MAX, spec.needs, pools)
    if around is not None:
        found = [lease for lease in found if lease.slot in around]
    slots = {lease.slot for lease in leases} if apart else ()
    return split_leases([lease for lease in found if lease.slot not in slots], most, spec.ask)[0]


def _least_more(job: Job) -> int:
    """How many more places a run has to get, if any: half as many as it has, if it is begun anew for them."""
    return 1 if _bears_more(job) else (width_of(job) + 1) // 2


def _grow_by(job: Job, more: list[Lease], tasks: int) -> fact.Grown | fact.StopAsked:
    cause = f"{ROOM} {tasks} more"
    if _bears_more(job):
        columns = columns_of(more)
        return fact.Grown(job.id, *columns, cause)
    return fact.StopAsked(job.id, Why.RESIZE, cause=cause)


def _bears_more(job: Job) -> bool:
    """Whether a run gets more places without being begun anew."""
    return isinstance(job.phase, Starting) or job.spec.in_place


def _can_grow(world: World, job: Job) -> bool:
    """Whether a run may ever get more: it has less than it may, nothing of it is over or to leave, and its turns are
    its own. What is booked is as wide as the booking has room for it. A guest is not begun anew for it: others count on
    when it said that it would give way."""
    spec = job.spec
    if job.held or not isinstance(job.phase, (Starting, Running)) or job.id in world.widths.mending:
        return False
    if spec.yields and not (spec.in_place or isinstance(job.phase, Starting)):
        return False
    if width_of(job) >= spec.gang_most or not may_vary(world, spec):
        return False
    ranks, resize = world.ranks[job.id], world.widths.resizes.get(job.id, Resize(0))
    settled = TaskPhase.RUNNING if isinstance(job.phase, Running) else TaskPhase.STARTING
    if len(ranks) + spec.gang_most > RANKS_MAX:
        return False
    return not resize.to and ranks.count(settled) == width_of(job)


def may_vary(world: World, spec: Spec) -> bool:
    """Whether runs of a spec may have other widths: not those of a booking, nor those that have turns."""
    return not spec.needs.booking and world.tiers[spec.tier].sharing is None


def _grows_at(world: World, job: Job) -> int:
    since = max(leases_since(job), world.widths.resizes.get(job.id, Resize(0)).at)
    return since + (IN_PLACE_MS if job.spec.in_place else RESTART_MS)


def leases_since(job: Job) -> int:
    """When the run of a gang got its places."""
    return job.phase.run.since if isinstance(job.phase, (Starting, Running)) else INSTANT_MAX


def _means_of(world: World, job: Job) -> Means:
    return job.spec.tenant, world.site_of(leases_of(job)[0].slot).number, job.spec.ask


def _reach_of(world: World, job: Job) -> Reach:
    spec, leases = job.spec, leases_of(job)
    slot, level = leases[0].slot, LEVELS[spec.needs.within or "cluster"]
    flavors = tuple(sorted({world.fleet.flavor(lease.slot) for lease in leases}))
    shape = (spec.ask, spec.needs, spec.tenant if spec.needs.has_company else "")
    return Reach(world.site_of(slot).number, flavors, _domain_of(world, slot, level), shape)


def _slots_around(fleet: Fleet, slot: int, level: Level) -> frozenset[int]:
    """All nodes in the domain of one."""
    if level == Level.NODE:
        return frozenset((slot,))
    return _domains_at(fleet, level)[fleet.traits[slot].place.path(level)]


def _domains_at(fleet: Fleet, level: Level) -> Mapping[tuple[str, ...], frozenset[int]]:
    """The nodes of every domain of a level, remembered for as long as nodes lie as they do."""
    key = ("domains", level)
    found: dict[tuple[str, ...], frozenset[int]] | None = fleet.recall(key)
    if found is None:
        slots: dict[tuple[str, ...], list[int]] = {}
        for slot, traits in enumerate(fleet.traits):
            slots.setdefault(traits.place.path(level), []).append(slot)
        found = fleet.asked[key] = {path: frozenset(members) for path, members in slots.items()}
    return found


def _may_hold(fleet: Fleet, slot: int, ask: Resources) -> bool:
    """Whether one more task could fit on a node, by its plain amounts."""
    free = fleet.find_free(slot)
    return free is not None and ask.gpus <= free[0] and ask.cpu_milli <= free[1] and ask.memory_bytes <= free[2]


def _domain_of(world: World, slot: int, level: Level) -> tuple[object, ...]:
    return (slot,) if level == Level.NODE else world.fleet.traits[slot].place.path(level)
