"""claims: who gets the places that were freed for it. Served before anybody else is asked.

A claim is served when all its places are free: the job is placed there and nowhere else. One that cannot be served any
more (its node is gone or barred, the quota has no room, nobody leaves who is in the way) is given up, and the job waits
like everybody. It decides nothing about whose places they were. A claim on what is left of a broken gang's places is
served when the whole gang fits: see `muster.scheduler.repair`. One of somebody who moves is served when its old run is
over; one of tasks that move when the last of them is gone, each in the place that was kept for it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from itertools import chain
from typing import Final

from muster.model import fact
from muster.model.claim import Claim
from muster.model.errors import InvariantError
from muster.model.job import Job
from muster.model.node import Lack
from muster.model.partition import devices_in
from muster.model.phase import Lease
from muster.scheduler.older import only_older
from muster.scheduler.placing.rations import Rations
from muster.scheduler.repair import find_repair, is_partial, looks_anew, without_claim
from muster.scheduler.sparing import part_nodes
from muster.scheduler.stage import is_leaving, leaving
from muster.units import Resources
from muster.world.apply import apply
from muster.world.claiming import charge_claim, claimed_on, is_moving, slots_of
from muster.world.draft import Draft
from muster.world.quota import Standing
from muster.world.widths import split_leases
from muster.world.world import World

SERVED: Final = "served"


class Outlook(enum.Enum):
    """What is to be done about a claim."""

    READY = SERVED
    WAITS = ""
    NODE_CLOSED = "a node of it is closed or booked"
    NO_QUOTA = "no quota is left for it"
    NO_BUDGET = "an overlay has no budget left for it"
    BLOCKED = "what holds its place stays"
    STARTED = "the job started elsewhere"


def serve_claims(world: World, draft: Draft, now: int) -> list[fact.Fact]:
    """Serve whoever can be served, and give up what never will; the facts that come before those of the draft."""
    dropped: list[fact.Fact] = []
    for number in sorted(world.claims):
        claim, job = world.claims[number], world.jobs[number]
        outlook = look_at(world, job, claim, now)
        if outlook != Outlook.WAITS:
            dropped += _drop(world, number, outlook, now)
        if outlook == Outlook.READY:
            _place(world, draft, job, claim)
    return dropped


def drop_outlived(world: World, now: int) -> list[fact.Fact]:
    """Give up the claims of those who found a place elsewhere."""
    jobs = [world.jobs[number] for number in sorted(world.claims)]
    outlived = [job.id for job in jobs if not (world.is_waiting(job) or is_moving(world, job))]
    return [item for number in outlived for item in _drop(world, number, Outlook.STARTED, now)]


def has_ready(world: World, now: int) -> bool:
    """Whether any claim could be served, or has to be given up, right now."""
    claims = world.claims.items()
    return any(look_at(world, world.jobs[number], claim, now) != Outlook.WAITS for number, claim in claims)


def look_at(world: World, job: Job, claim: Claim, now: int) -> Outlook:
    """How a claim stands. Every one is looked at in every cycle, and mostly somebody is still there."""
    for lease in claim.leases:
        if not world.fleet.is_listed(lease.slot):
            return Outlook.NODE_CLOSED
    if is_moving(world, job):
        return Outlook.WAITS
    if looks_anew(job, claim):
        return Outlook.WAITS if find_repair(world, job) is None else Outlook.READY
    if not _has_places(world, job, claim):
        return Outlook.WAITS if any(_leavers(world, claim, now)) else Outlook.BLOCKED
    if world.fleet.overlays.by_name and not _has_budget(world, job, claim):
        return Outlook.NO_BUDGET if next(leaving(world, now), None) is None else Outlook.WAITS
    if _has_quota(world, job, claim):
        return Outlook.READY
    return Outlook.NO_QUOTA if next(leaving(world, now), None) is None else Outlook.WAITS


def count_leavers(world: World, claim: Claim, now: int) -> int:
    """How many are about to be gone from the nodes of a claim."""
    return len(dict.fromkeys(_leavers(world, claim, now)))


def _leavers(world: World, claim: Claim, now: int) -> Iterator[int]:
    """Who sits on the nodes of a claim and is about to be gone."""
    for lease in claim.leases:
        for number in world.fleet.holders.get(lease.slot, ()):
            if is_leaving(world, world.jobs[number], now):
                yield number


def _has_places(world: World, job: Job, claim: Claim) -> bool:
    """Whether all of a claim is free, but for what others claim."""
    here: dict[int, list[tuple[Resources, Lease]]] = {}
    for ask, leases in job.spec.parts(claim.leases):
        for lease in leases:
            if not world.fleet.is_vacant(lease.slot, ask, lease.tasks, lease.devices):
                return False
            here.setdefault(lease.slot, []).append((ask, lease))
    others = claimed_on(world, slots_of(claim), but=job.id)
    return all(_has_place(world, slot, wanted, others[slot]) for slot, wanted in here.items())


def _has_place(world: World, slot: int, wanted: list[tuple[Resources, Lease]], others: Lack) -> bool:
    """Whether the leases of a claim on one node are free together, but for what others claim. Of a device there is room
    for all who claim a share of it, once those are gone who stand in the way, and whoever is first leaves the others
    theirs."""
    fleet, shown = world.fleet, list[tuple[Resources, Lease]]()
    kept, devices = fleet.claimed[slot], others.devices
    for ask, lease in wanted:
        if ask.gpu_milli:
            devices &= ~devices_in(lease.devices) | _claimed_whole(world, slot)
    fleet.set_claimed(slot, Lack(devices, others.amount))
    for ask, lease in wanted:
        if not fleet.has_room(slot, ask, lease.tasks, lease.devices):
            break
        fleet.show(slot, ask, lease.tasks, lease.devices)
        shown.append((ask, lease))
    for ask, lease in shown:
        fleet.show(slot, ask, -lease.tasks, lease.devices)
    fleet.set_claimed(slot, kept)
    return len(shown) == len(wanted)


def _claimed_whole(world: World, slot: int) -> int:
    """The devices of a node that are claimed by somebody who wants all of them."""
    found = 0
    for number in world.claimants.get(slot, ()):
        if not world.jobs[number].spec.ask.gpu_milli:
            found |= sum(devices_in(lease.devices) for lease in world.claims[number].leases if lease.slot == slot)
    return found


def _has_quota(world: World, job: Job, claim: Claim) -> bool:
    """Whether all that is claimed may lie on each site that it would lie on, beside whatever is older than the claim:
    whoever came later counted on it. Together, they have to be within the limits."""
    spec, quotas = job.spec, world.quotas
    ask, tasks = spec.asked_by(claim.width)
    worst = Standing.BORROWING if spec.evictable else Standing.INSIDE
    sites = {world.site_of(lease.slot) for lease in claim.leases}
    charge_claim(world, job.id, -1)  # it need not stand beside itself
    has_quota = all(quotas.standing(spec.tenant, site, ask, tasks) <= worst for site in sites)
    if not has_quota and all(quotas.has_limits_left(spec.tenant, site, ask, tasks) for site in sites):
        with only_older(world, claim.ticket):
            has_quota = all(quotas.standing(spec.tenant, site, ask, tasks) <= worst for site in sites)
    charge_claim(world, job.id, 1)
    return has_quota


def _has_budget(world: World, job: Job, claim: Claim) -> bool:
    """Whether every overlay that its places are behind has room for all of them."""
    parts = [(ask, lease) for ask, leases in job.spec.parts(claim.leases) for lease in leases]
    with without_claim(world, job):
        return Rations(world.fleet).has_room_at(parts)


def ticket_of(world: World, job: Job) -> int:
    """The ticket by which a gang starts that found a place elsewhere: that of its claim, if it has one; else 0."""
    return _age_of(job, world.claims[job.id]) if job.id in world.claims else 0


def _age_of(job: Job, claim: Claim) -> int:
    """A gang is as old as its claim, unless that was for less than all of it."""
    return 0 if is_partial(job, claim) else claim.ticket


def _drop(world: World, number: int, outlook: Outlook, now: int) -> list[fact.Fact]:
    item = fact.ClaimDropped(number, cause=outlook.value)
    apply(world, item, now)
    return [item]


def _place(world: World, draft: Draft, job: Job, claim: Claim) -> None:
    if claim.movers:
        _place_movers(world, draft, job, claim)
    elif job.spec.array:
        _place_tasks(world, draft, job, claim)
    else:
        leases = find_repair(world, job) if looks_anew(job, claim) else list(claim.leases)
        if leases is None:
            raise InvariantError("what is ready to be served fits", f"job {job.id}")
        spares = sum(lease.tasks for lease in leases) - job.spec.gang
        if spares > 0:
            leases = list(chain(*part_nodes(leases, spares, job.spec.ask)))
        draft.place(job, leases, _age_of(job, claim))


def _place_tasks(world: World, draft: Draft, job: Job, claim: Claim) -> None:
    """One run of waiting tasks after the other, as many as were claimed for and still wait."""
    tasks, leases = world.arrays[job.id], list(claim.leases)
    while leases and (run := tasks.find_queued(sum(lease.tasks for lease in leases))) is not None:
        first, count = run
        here, leases = split_leases(leases, count, job.spec.ask)
        draft.place_tasks(job, first, here, claim.ticket)


def _place_movers(world: World, draft: Draft, job: Job, claim: Claim) -> None:
    """Each task that moves in its own place, and as old as it was; neighbours that are alike in that go together."""
    epochs, moves = world.arrays[job.id].epoch, list(zip(claim.movers, claim.tickets, claim.leases, strict=True))
    while moves:
        task, ticket, _ = moves[0]
        alike = ((task + at, ticket, epochs[task]) == (*move[:2], epochs[move[0]]) for at, move in enumerate(moves))
        count = next((at for at, is_alike in enumerate(alike) if not is_alike), len(moves))
        draft.place_tasks(job, task, [lease for _, _, lease in moves[:count]], ticket)
        moves = moves[count:]
