"""Moves: people want a gang off some nodes. It is told to stop only if there is a place for it elsewhere, and that
place is kept for it until it is gone from the old one.

Where it goes is found in `muster.scheduler.moving`. The next run has the next epoch, so whatever the old one still says
is refused; none of its retries is used up, and it counts as no eviction.
"""

from __future__ import annotations

from muster.kernel.turn import Turn, find_live, refuse
from muster.model import event, fact
from muster.model.job import Job, Resize
from muster.model.phase import Stopping, Why
from muster.model.reason import Code, Done, Reason, Refused
from muster.scheduler.moving import claim_elsewhere, count_elsewhere, find_elsewhere, why_immovable
from muster.world.widths import places_of


def on_migrate_job(turn: Turn, item: event.MigrateJob) -> Done | Refused:
    """Let a gang begin anew elsewhere: on some nodes, or off some; if nothing is said, off those that it has."""
    job = find_live(turn, item.job)
    if isinstance(job, Refused):
        return job
    refusal = _find_refusal(turn, job, item)
    if refusal is not None:
        return refusal
    mine = {lease.slot for lease in places_of(job)}
    slots = _find_slots(turn, item, mine)
    if isinstance(slots, Reason):
        return Refused(slots)
    if mine <= slots:
        return Done(job.id)
    world, fleet = turn.world, turn.world.fleet
    here = [slot for slot in range(len(fleet)) if slot in slots and fleet.is_listed(slot)]
    leases = find_elsewhere(world, job, here)
    if leases is None:
        return refuse(Code.NO_PLACE_ELSEWHERE, "tasks", job.spec.places, count_elsewhere(world, job, here))
    turn.emit(fact.StopAsked(job.id, Why.MIGRATE, cause=item.cause))
    turn.stop_run(job)
    turn.emit(claim_elsewhere(job, leases, turn.now))
    return Done(job.id)


def _find_refusal(turn: Turn, job: Job, item: event.MigrateJob) -> Refused | None:
    if isinstance(job.phase, Stopping) or turn.world.widths.resizes.get(job.id, Resize(0)).to:
        return refuse(Code.IS_STOPPING, "job", item.job)
    why = "it is an array; drain the node instead" if job.spec.array else why_immovable(job)
    if why:
        return refuse(Code.NOT_MOVABLE, "job", item.job, detail=why)
    count = len(item.to) + len(item.off)
    return refuse(Code.TOO_LARGE, "nodes", count, event.NODES_MAX) if count > event.NODES_MAX else None


def _find_slots(turn: Turn, item: event.MigrateJob, mine: set[int]) -> set[int] | Reason:
    """The nodes that it may be on."""
    fleet = turn.world.fleet
    known: list[list[int]] = []
    for names in (item.to, item.off):
        found = [fleet.find_slot(name) for name in names]
        fault = next((each for each in found if isinstance(each, Reason)), None)
        if fault is not None:
            return fault
        known.append([each for each in found if not isinstance(each, Reason)])
    to, off = known
    return set(to or range(len(fleet))) - (set(off) if to or off else mine)
