"""Reasons for waiting, with numbers. Computed on read from the world as it is, by the same arithmetic as the cycle.

Nothing is stored: a follower answers `why` from its own world, and the answer cannot be stale by more than its lag.
"""

from __future__ import annotations

from typing import Final

import msgspec

from muster.model.budget import show_device_time
from muster.model.claim import Claim
from muster.model.job import Job
from muster.model.node import LEVELS
from muster.model.overlay import SCALE, UNITS
from muster.model.phase import TERMINAL, Running, Stopping, TaskPhase
from muster.model.reason import JOBS_ELSEWHERE, OWN_TASKS, RULED_OUT, Code, Reason
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.model.tenant import name_line
from muster.policy.protection import may_take, recent, takes_again_at
from muster.scheduler.booked import find_booking_reason, only
from muster.scheduler.claims import count_leavers
from muster.scheduler.cycle import run_cycle
from muster.scheduler.placing.fit import Pools, blank_of, find_pools, widest_capacity, widest_room, widest_unrationed
from muster.scheduler.placing.masks import keys_of
from muster.scheduler.placing.pieces import explain_slots
from muster.scheduler.placing.rations import Rations, zone_of
from muster.scheduler.placing.screen import count_shut
from muster.scheduler.placing.within import EVERYWHERE, join_pools, places_of, pools_for
from muster.scheduler.position import find_position
from muster.scheduler.repair import is_partial
from muster.scheduler.shadows import Shadow, may_overtake
from muster.scheduler.stage import leaving
from muster.scheduler.timeshare import find_wake
from muster.units import INSTANT_MAX, Resources, show_instant, show_resources
from muster.world.claiming import is_moving
from muster.world.fleet import Fleet
from muster.world.promises import find_deficit, owed_by
from muster.world.quota import Bound
from muster.world.world import World

LABEL_VALUES_MAX: Final = 64
"""How many values a label may have on the fleet's nodes for an ask to mention it."""

OTHERS_SHOWN: Final = 8
"""How many of the jobs that one waits for are named."""

_OF_THE_WHOLE: Final = ("within", "near", "spread", "slice", "slice_tasks", "shape", "groups")
"""What is asked of all tasks of a gang together."""


class Waiting(msgspec.Struct, frozen=True):
    """Why a job waits: the dominant reason, its place in the order (0 if it is in no line), and the first few who are
    ahead."""

    reason: Reason
    position: int
    ahead: list[int]
    ahead_total: Resources


def explain(world: World, job: Job) -> Waiting | None:
    """Why a job, or part of an array, waits; None if nothing of it does."""
    if job.held and world.is_waiting(job):
        return Waiting(Reason(Code.HELD, "job", needed=job.id), 0, [], Resources())
    claim = world.claims.get(job.id)
    if claim is not None:
        return Waiting(_claim_reason(world, job, claim), 0, [], Resources())
    if job.stands_back or (job.waits and not world.is_waiting(job)):
        return Waiting(_others_reason(job), 0, [], Resources())
    position = find_position(world, job)
    if position is None:
        return _find_throttled(world, job)
    reason = (find_booking_reason(world, job) if world.bookings else None) or _dominant_reason(world, job)
    return Waiting(reason, position.place, position.ahead, position.ahead_total)


def _claim_reason(world: World, job: Job, claim: Claim) -> Reason:
    """What a job with a claim waits for: who is on its places, or, if they are free, whoever gives back what it lacks
    of its quota or of a budget; if it moves, itself; if it is to be repaired, a node."""
    if is_partial(job, claim):
        missing = job.spec.gang - sum(lease.tasks for lease in claim.leases)
        return Reason(Code.REPAIRED, "tasks", needed=missing, available=claim.until)
    if is_moving(world, job):
        tasks = len(claim.movers) or claim.width
        return Reason(Code.CLAIMED, OWN_TASKS, needed=tasks, available=claim.until)
    leavers = count_leavers(world, claim, world.now)
    if claim.gain:
        account = f"gain {show_device_time(claim.gain)}, cost {show_device_time(claim.cost)}"
        return Reason(Code.MOVED_FOR, "jobs", needed=leavers, available=claim.until, detail=account)
    if leavers:
        return Reason(Code.CLAIMED, "jobs", needed=leavers, available=claim.until)
    elsewhere = len({seat.job for seat in leaving(world, world.now)})
    return Reason(Code.CLAIMED, JOBS_ELSEWHERE, needed=elsewhere, available=claim.until)


def _find_throttled(world: World, job: Job) -> Waiting | None:
    """Whether tasks of an array wait only since as many of it are at it as may be."""
    tasks = world.arrays.get(job.id) if job.spec.at_most else None
    if tasks is None or not tasks.counts[TaskPhase.BLOCKED]:
        return None
    blocked, most = tasks.counts[TaskPhase.BLOCKED], job.spec.at_most
    return Waiting(Reason(Code.AT_ITS_MOST, "tasks", blocked, most, detail=str(job.id)), 0, [], Resources())


def find_lateness(job: Job, now: int, starts_at: int = 0) -> Reason | None:
    """Whether a job is past its due time, or will be if it takes as long as it is expected to, or else as its limit
    lets it: from now or from when it began, or from when it may start, if that is known. None if it is in time as far
    as anybody knows, or need not be."""
    due_at, phase = job.spec.due_at, job.phase
    if due_at is None or isinstance(phase, TERMINAL):
        return None
    if now > due_at:
        return Reason(Code.IS_LATE, "due_at", needed=due_at, available=now)
    began = phase.since if isinstance(phase, Running) else max(now, starts_at)
    run_ms, how = job.spec.limit_ms or 0, "its whole limit"
    if job.spec.expect_ms is not None and (job.spec.limit_ms is None or job.spec.expect_ms < run_ms):
        run_ms, how = job.spec.expect_ms, "as long as it expects"
    end = min(now if isinstance(phase, Stopping) else max(now, began + run_ms), INSTANT_MAX)
    return Reason(Code.MAY_BE_LATE, "due_at", needed=due_at, available=end, detail=how) if end > due_at else None


def find_shortfall(world: World, job: Job, now: int) -> Reason | None:
    """Whether a job will miss some of what its tier promises, whatever happens; None if it may have all of it still."""
    tier = world.tiers.get(job.spec.tier)
    if tier is None or tier.promise is None or not (missed := find_deficit(job, tier, now)):
        return None
    return Reason(Code.BEHIND_PROMISE, "promise", needed=owed_by(tier.promise, job, now), available=missed)


def never_fits(world: World, spec: Spec) -> Reason | None:
    """Why no moment can ever come at which a gang, or a task of an array, starts: fleet or quota are too small."""
    key = (spec.tenant, spec.ask, spec.gang, spec.spares, spec.needs, spec.evictable)
    found: tuple[Reason | None] | None = world.quotas.recall(key)
    if found is None:
        found = (_find_never(world, spec),)
        world.quotas.remember(key, found)
    return found[0]


def find_shadows(world: World) -> list[Shadow]:
    """The shadows that a cycle would cast now, in its order."""
    twin, found = world.fork(), list[Shadow]()
    twin.queue.wake_all()
    run_cycle(twin, world.now, "", found)
    return found


def find_fine_label(world: World, needs: Needs) -> Reason | None:
    """A label that is different on nearly every node must not make every node a pool."""
    for key in sorted(keys_of(needs) - world.fleet.mentioned):
        values = {dict(traits.labels).get(key) for traits in world.fleet.traits}
        if len(values) > LABEL_VALUES_MAX:
            return Reason(Code.LABEL_TOO_FINE, f"label {key}", needed=len(values), available=LABEL_VALUES_MAX)
    return None


def _find_never(world: World, spec: Spec) -> Reason | None:
    contradiction = _find_contradiction(spec.needs) if spec.needs.has_company else ""
    if contradiction:
        return Reason(Code.NEVER_FITS, "tasks", spec.places, 0, detail=contradiction)
    room = widest_capacity(world.fleet, spec.ask, spec.places, spec.needs)
    if room < spec.places:
        blank = blank_of(world.fleet, spec.needs)
        reason = find_overlay_reason(blank, spec, EVERYWHERE, Code.NEVER_WITHIN_OVERLAY)
        if reason is not None:
            return reason
        for group in spec.needs.groups:
            alone = widest_capacity(world.fleet, group.ask, group.tasks, _without_groups(spec.needs))
            if alone < group.tasks:
                return Reason(Code.NEVER_FITS, "tasks", group.tasks, alone, detail=f"group {group.name}")
        detail = _ruling_out(world.fleet, spec)
        too_much = _find_too_much(world.fleet, spec) if not room and not detail else None
        return too_much or Reason(Code.NEVER_FITS, tasks_of(spec.ask), spec.places, room, detail)
    bound = _find_lasting_bound(world, spec)
    return None if bound is None else quota_reason(bound.code, bound)


def _find_lasting_bound(world: World, spec: Spec) -> Bound | None:
    """What the quota has against a gang on the first site where it has something, unless the others have the room."""
    places = places_of(world, blank_of(world.fleet, spec.needs), spec.ask, spec.needs)
    bounds = [world.quotas.find_lasting_bound(spec, site) for site, _ in places]
    first = next((bound for bound in bounds if bound is not None), None)
    pools = join_pools(places, [bound is None for bound in bounds])
    room = widest_capacity(world.fleet, spec.ask, spec.places, spec.needs, pools)
    return first if room < spec.places else None


def _find_contradiction(needs: Needs) -> str:
    """Whoever is beside somebody is not apart from him, unless the one is meant more narrowly than the other."""
    both = [name for name in needs.apart if name in needs.beside]
    if not both or LEVELS[needs.apart_level] < LEVELS[needs.beside_level]:
        return ""
    return f"{RULED_OUT}apart = {both[0]} on one {needs.apart_level}: it is to be beside it on one {needs.beside_level}"


def _ruling_out(fleet: Fleet, spec: Spec) -> str:
    """The first need without which the gang would fit: that is what rules it out."""
    for field in (name for name in Needs.__struct_fields__ if name != "groups"):
        without = msgspec.structs.replace(spec.needs, **{field: getattr(ANYWHERE, field)})
        if without != spec.needs and widest_capacity(fleet, spec.ask, spec.places, without) >= spec.places:
            return f"{RULED_OUT}{field} = {_shown(getattr(spec.needs, field))}"
    return ""


def _find_too_much(fleet: Fleet, spec: Spec) -> Reason | None:
    """What one task asks for of which no node has as much, beside the most that one has."""
    if spec.needs.groups:
        return None
    for field in ("gpus", "cpu_milli", "memory_bytes"):
        asked, most = getattr(spec.ask, field), max((getattr(kind, field) for kind in fleet.kinds()), default=0)
        if asked > most:
            return Reason(Code.NEVER_FITS, f"{field} per task", asked, most)
    return None


def tasks_of(ask: Resources) -> str:
    """The subject of reasons that count tasks: it says of what size they are."""
    return f"tasks of {show_resources(ask)}"


def _show_company(needs: Needs) -> str:
    words = [f"{field} = {', '.join(getattr(needs, field))}" for field in ("apart", "beside") if getattr(needs, field)]
    return " and ".join(words)


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _others_reason(job: Job) -> Reason:
    """Which jobs are not as far as this one wants them."""
    open_ones = [each for each in job.spec.after if each.job in job.waits]
    detail = ", ".join(map(str, open_ones[:OTHERS_SHOWN])) + (", …" if len(open_ones) > OTHERS_SHOWN else "")
    return Reason(Code.WAITS_FOR_OTHERS, "jobs", open_ones[0].job, len(open_ones), detail)


def _dominant_reason(world: World, job: Job) -> Reason:
    """Quota before room: what the tenant itself could change comes first."""
    spec, fleet = job.spec, world.fleet
    pools = pools_for(world, spec)
    bound = None if pools is EVERYWHERE else _find_bound(world, spec, pools)
    if bound is not None:
        return quota_reason(bound.code, bound)
    details = _find_details(fleet, spec)
    if not may_take(job.took, world.now):
        times, until = len(recent(job.took, world.now)), show_instant(takes_again_at(job.took, world.now))
        details.append(f"it had others stopped {times} times in a day, and has none stopped until {until}")
    room = widest_room(fleet, spec.ask, spec.places, spec.needs, pools or EVERYWHERE)
    tier = world.tiers[spec.tier]
    if room >= spec.places or (tier.shadows and job.accepted_at + tier.longest_wait_ms <= world.now):
        reason = _find_shadow_reason(world, job)
        if reason is not None:
            return reason
    if room >= spec.places and tier.sharing is not None:
        next_look = find_wake(world, world.now) or 0
        detail = f"looked at again by {show_instant(next_look)}" if next_look else ""
        return Reason(Code.NOT_ITS_TURN, spec.tier, next_look, world.now, detail)
    if fleet.overlays.by_name and room < spec.places:
        reason = find_overlay_reason(fleet, spec, pools or EVERYWHERE, Code.OVERLAY_FULL)
        if reason is not None:
            return reason
    if spec.needs.groups:
        return _group_reason(fleet, spec, pools or EVERYWHERE, details)
    if room >= spec.gang and spec.spares:
        return Reason(Code.NO_ROOM_FOR_SPARES, "tasks", spec.places, room, "; ".join(details))
    return Reason(Code.NO_ROOM, tasks_of(spec.ask), needed=spec.places, available=room, detail="; ".join(details))


def _find_details(fleet: Fleet, spec: Spec) -> list[str]:
    """Which nodes nobody can use, or this job cannot for the company that it minds; what of cut devices is free, and
    how many tasks of a box would fit anywhere."""
    closed = sum(not fleet.is_open(slot) for slot in range(len(fleet)))
    details = [f"{closed} of {len(fleet)} nodes closed"] if closed else []
    if spec.needs.has_company:
        shut = count_shut(fleet, spec.needs)
        details += [f"{shut} of {len(fleet)} nodes ruled out by {_show_company(spec.needs)}"] if shut else []
    if spec.needs.partition and spec.ask.gpu_milli:
        details = [*filter(None, [explain_slots(fleet, spec.needs.partition)]), *details]
    if spec.needs.shape:
        apart = widest_room(fleet, spec.ask, spec.places, msgspec.structs.replace(spec.needs, shape=()))
        details = [f"as a box of {'x'.join(map(str, spec.needs.shape))}; {apart} apart from each other", *details]
    return details


def find_overlay_reason(fleet: Fleet, spec: Spec, pools: Pools, code: Code) -> Reason | None:
    """The overlay that lacks least for a gang that has room but for budgets; None if it has none anyway."""
    ask, gang, needs, overlays = spec.ask, spec.places, spec.needs, fleet.overlays
    if not overlays.by_name or widest_unrationed(fleet, ask, gang, needs, pools) < gang:
        return None
    rations, usable = Rations(fleet), find_pools(fleet, ask, needs)
    zones = {zone_of(fleet, number) for number in usable if pools is None or number in pools}
    parts = [(group.ask, group.tasks) for group in needs.groups] or [(ask, gang)]
    short = min((each for zone in sorted(zones) for each in rations.shortfalls(zone, parts)), default=None)
    if short is None:
        return None
    overlay = overlays.by_name[short.name]
    scale, unit = SCALE[overlay.resource], UNITS[overlay.resource]
    left = max(0, short.left) // scale
    return Reason(code, short.name, -(-short.needed // scale), left, f"{overlay.budget:,} {unit}")


def _group_reason(fleet: Fleet, spec: Spec, pools: Pools, details: list[str]) -> Reason:
    """The first group that alone has no room; or that each has, and not all of them together."""
    for group in spec.needs.groups:
        room = widest_room(fleet, group.ask, group.tasks, _without_groups(spec.needs), pools)
        if room < group.tasks:
            return Reason(Code.GROUP_NO_ROOM, group.name, group.tasks, room, "; ".join(details))
    details = ["each group would fit alone", *details]
    return Reason(Code.NO_ROOM, "tasks", needed=spec.places, available=0, detail="; ".join(details))


def _without_groups(needs: Needs) -> Needs:
    return msgspec.structs.replace(needs, groups=ANYWHERE.groups)


def _find_shadow_reason(world: World, job: Job) -> Reason | None:
    """The job's own shadow, or the first one on whose places it would stay too long: where it would fit now, or else
    where it would if they were empty. A cycle is run on a fork to see them."""
    spec, shadows = job.spec, find_shadows(world)
    own = next((shadow for shadow in shadows if shadow.job == job.id), None)
    if own is not None:
        return Reason(Code.DUE, "starts by", needed=own.at, available=world.now)
    leaves_at = None if spec.leaves_ms is None else world.now + spec.leaves_ms
    too_soon = [shadow for shadow in shadows if leaves_at is None or not may_overtake(leaves_at, shadow.at)]
    for fleet in (world.fleet, blank_of(world.fleet, spec.needs)) if too_soon else ():
        for shadow in too_soon:
            if _would_stand_in(fleet, spec, shadow):
                return Reason(Code.SHADOWED, "job", needed=shadow.job, available=shadow.at)
    return None


def _would_stand_in(fleet: Fleet, spec: Spec, shadow: Shadow) -> bool:
    """Whether some task of a job would fit on a node of a shadow, wherever the others are."""
    alone = msgspec.structs.replace(spec.needs, **{field: getattr(ANYWHERE, field) for field in _OF_THE_WHOLE})
    asks = [group.ask for group in spec.needs.groups] or [spec.ask]
    with only(fleet, sorted({lease.slot for lease in shadow.leases})):
        return any(widest_room(fleet, ask, 1, alone) for ask in asks)


def _find_bound(world: World, spec: Spec, pools: Pools) -> Bound | None:
    """The quota's part in a gang's waiting, on the site with the most room; None if only room is missing."""
    has_room = widest_room(world.fleet, spec.ask, spec.places, spec.needs) >= spec.places
    if pools and not (has_room and widest_room(world.fleet, spec.ask, spec.places, spec.needs, pools) < spec.places):
        return None
    found: list[tuple[int, int, Bound]] = []
    for site, here in places_of(world, world.fleet, spec.ask, spec.needs):
        bound = world.quotas.find_bound(spec.tenant, site, *spec.whole, evictable=spec.evictable)
        if bound is not None:
            room = widest_room(world.fleet, spec.ask, spec.places, spec.needs, here)
            found.append((-room, site.number, bound))
    binding = min(found)[2]
    return binding if has_room or binding.code != Code.NOTHING_TO_BORROW else None


def quota_reason(code: Code, bound: Bound) -> Reason:
    """What the quota has against somebody, as a reason."""
    subject = name_line(bound.family, bound.scope)
    return Reason(code, subject, bound.needed, max(0, bound.room), bound.tenant)
