"""Claiming: places that are kept for a job that waits, or moves, as far as the world has to know.

Nobody else gets anything there, and the quota counts them as held. Whose places they were and when the job gets them is
decided elsewhere.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from muster.model.claim import Claim
from muster.model.job import Job
from muster.model.node import NO_LACK, Lack
from muster.model.partition import devices_in
from muster.model.phase import Lease, Stopping, TaskPhase, Why
from muster.world.compiled import words_of
from muster.world.fleet import Fleet
from muster.world.goodput import claimed_milli
from muster.world.lacks import NOTHING, Withheld, move_all, rows_of

if TYPE_CHECKING:  # the world counts claims when a node joins again
    from muster.world.world import World


def put_claim(world: World, job: int, claim: Claim) -> None:
    """Keep places for a job. It replaces the claim that it had."""
    if job in world.claims:
        drop_claim(world, job)
    world.claims[job] = claim
    for slot in slots_of(claim):
        world.claimants[slot] = (*world.claimants.get(slot, ()), job)
    if is_spoken_for(world, job):
        world.dequeue(world.jobs[job])
    charge_claim(world, job, 1)
    for slot, claimed in claimed_on(world, slots_of(claim)).items():
        _set_claimed(world, slot, claimed)


def drop_claim(world: World, job: int) -> None:
    """Keep them no longer: what is free there is anybody's."""
    charge_claim(world, job, -1)
    world.wake_kin(world.jobs[job].spec.tenant)
    if is_spoken_for(world, job):
        world.enqueue(world.jobs[job])
    slots = slots_of(world.claims.pop(job))
    for slot in slots:
        others = tuple(other for other in world.claimants.pop(slot) if other != job)
        if others:
            world.claimants[slot] = others
    for slot, claimed in claimed_on(world, slots).items():
        _set_claimed(world, slot, claimed)
        vector = world.fleet.find_free(slot)
        if vector is not None:
            world.wake_for_room(slot, vector)


def claimed_on(world: World, slots: Iterable[int], but: int = 0) -> dict[int, Lack]:
    """What of some nodes is claimed by anybody, or by anybody but one job: every claim on them is gone through once."""
    found = dict.fromkeys(slots, NO_LACK)
    for job in dict.fromkeys(job for slot in found for job in world.claimants.get(slot, ()) if job != but):
        for ask, leases in world.jobs[job].spec.parts(world.claims[job].leases):
            for lease in leases:
                known = found.get(lease.slot)
                if known is not None:
                    devices = known.devices | devices_in(lease.devices)
                    amount = known.amount.plus(ask.times(lease.tasks))
                    found[lease.slot] = Lack(devices, replace(amount, gpus=devices.bit_count(), gpu_milli=0))
    return found


def _set_claimed(world: World, slot: int, claimed: Lack) -> None:
    """So much of a node is claimed from now on; what of it is free is idle no more, or is again."""
    fleet, goodput, before = world.fleet, world.goodput, claimed_milli(world.fleet, slot)
    fleet.set_claimed(slot, claimed)
    goodput.note_kept(fleet, slot)
    goodput.claim(slot, claimed_milli(fleet, slot) - before, world.budgets.now)


class Lifted(NamedTuple):
    """What was claimed of each node, what was withheld of most of them, and that as rows: see `lift_claims`."""

    claimed: dict[int, Lack]
    withheld: dict[int, Withheld]
    rows: array[int]


def lift_claims(fleet: Fleet) -> Lifted:
    """Let all be free that is claimed and that nobody holds, until it is put back as it was. Nodes that lack something
    are counted anew; of the others what is withheld is known, and is moved at once."""
    words, lifted = fleet.words, Lifted(fleet.claimed.copy(), {}, array("q"))
    for slot in lifted.claimed:
        if slot in fleet.lacks:
            fleet.set_claimed(slot, NO_LACK)
        else:
            withheld = lifted.withheld[slot] = fleet.withheld.pop(slot, NOTHING)
            for row in rows_of(slot, withheld):
                lifted.rows.extend(row)
            del fleet.claimed[slot]
    if lifted.rows:
        move_all(words, words_of(lifted.rows), -1)
    return lifted


def put_claims(fleet: Fleet, lifted: Lifted) -> None:
    """Put back what was lifted; whatever was held or free then is so again."""
    for slot, claimed in lifted.claimed.items():
        if slot in lifted.withheld:
            fleet.claimed[slot], fleet.withheld[slot] = claimed, lifted.withheld[slot]
        else:
            fleet.set_claimed(slot, claimed)
    if lifted.rows:
        move_all(fleet.words, words_of(lifted.rows), 1)


def charge_claim(world: World, job: int, sign: int, leases: Sequence[Lease] | None = None) -> None:
    """Count what a job claims as held (1), or not (-1): all of it, or some leases of it."""
    spec = world.jobs[job].spec
    for site, ask, tasks in world.sites.share(spec, world.claims[job].leases if leases is None else leases):
        world.ledger.charge(spec.tenant, site, ask, sign * tasks)


def is_spoken_for(world: World, job: int) -> bool:
    """Whether a job is an array that claims places for every task of it that waits."""
    tasks = world.arrays.get(job)
    return tasks is not None and 0 < tasks.counts[TaskPhase.QUEUED] == spoken_for(world, job)


def is_moving(world: World, job: Job) -> bool:
    """Whether a job was told to stop so that it goes on elsewhere, or tasks of it were, and they are not gone yet: it
    may claim its new places already."""
    movers = movers_of(world, job.id)
    if movers:
        return any(world.arrays[job.id].phase[task] == TaskPhase.STOPPING for task in movers)
    return isinstance(job.phase, Stopping) and job.phase.why is Why.MIGRATE


def movers_of(world: World, job: int) -> tuple[int, ...]:
    """The tasks of an array that move: each has a place that is kept for it and for no other."""
    return world.claims[job].movers if job in world.claims else ()


def spoken_for(world: World, job: int) -> int:
    """How many tasks of a job that wait its claim is for. Those of an array start nowhere else; if no others wait, it
    is in no line."""
    claim = world.claims.get(job)
    if claim is None:
        return 0
    phases = world.arrays[job].phase if claim.movers else b""
    return sum(phases[task] == TaskPhase.QUEUED for task in claim.movers) if claim.movers else claim.width


def next_ticket(world: World) -> int:
    """The number of whoever is given places, or a claim on them, next."""
    world.tickets += 1
    return world.tickets


def slots_of(claim: Claim) -> list[int]:
    """The slots that a claim is on, each once."""
    return list(dict.fromkeys([lease.slot for lease in claim.leases]))
