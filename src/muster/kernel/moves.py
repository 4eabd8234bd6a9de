"""Moves: people want a gang off some nodes, or an array. It is told to stop only if there is a place for it elsewhere,
and that place is kept for it until it is gone from the old one. Of an array only those tasks are that have to go, each
with a place of its own; all of them, or none.

Where it goes is found in `muster.scheduler.moving`. The next run has the next epoch, so whatever the old one still says
is refused; none of its retries is used up, and it counts as no eviction.
"""

from __future__ import annotations

from typing import Final

from muster.kernel.bars import stop_ranges
from muster.kernel.turn import Turn, find_live, refuse
from muster.model import event, fact
from muster.model.job import Job, Resize
from muster.model.phase import Stopping, Why
from muster.model.ranges import ranges_of
from muster.model.reason import Code, Done, Reason, Refused
from muster.scheduler.moving import (
    claim_elsewhere,
    claim_tasks,
    count_elsewhere,
    find_elsewhere,
    find_tasks_elsewhere,
    why_immovable,
    why_tasks_stay,
)
from muster.world.tasks import GOING_ON, spans_of
from muster.world.widths import places_of

TASKS_MAX: Final = 4096
"""How many tasks of an array are moved at once, at most."""


def on_migrate_job(turn: Turn, item: event.MigrateJob) -> Done | Refused:
    """Let a gang begin anew elsewhere: on some nodes, or off some; if nothing is said, off those that it has."""
    job = find_live(turn, item.job)
    if isinstance(job, Refused):
        return job
    refusal = _find_refusal(turn, job, item)
    if refusal is not None:
        return refusal
    going = _find_going(turn, job)
    mine = set(going.values()) if job.spec.array else {lease.slot for lease in places_of(job)}
    slots = _find_slots(turn, item, mine)
    if isinstance(slots, Reason):
        return Refused(slots)
    if mine <= slots:
        return Done(job.id)
    fleet = turn.world.fleet
    here = [slot for slot in range(len(fleet)) if slot in slots and fleet.is_listed(slot)]
    if job.spec.array:
        return _move_tasks(turn, job, [task for task, slot in going.items() if slot not in slots], here, item.cause)
    return _move_gang(turn, job, here, item.cause)


def _move_gang(turn: Turn, job: Job, here: list[int], cause: str) -> Done | Refused:
    leases = find_elsewhere(turn.world, job, here)
    if leases is None:
        return refuse(Code.NO_PLACE_ELSEWHERE, "tasks", job.spec.places, count_elsewhere(turn.world, job, here))
    turn.emit(fact.StopAsked(job.id, Why.MIGRATE, cause=cause))
    turn.stop_run(job)
    turn.emit(claim_elsewhere(job, leases, turn.now))
    return Done(job.id)


def _move_tasks(turn: Turn, job: Job, movers: list[int], here: list[int], cause: str) -> Done | Refused:
    if len(movers) > TASKS_MAX:
        return refuse(Code.TOO_LARGE, "tasks", len(movers), TASKS_MAX)
    leases = find_tasks_elsewhere(turn.world, job, movers, here)
    if len(leases) < len(movers):
        return refuse(Code.NO_PLACE_ELSEWHERE, "tasks", len(movers), len(leases))
    tickets = [turn.world.arrays[job.id].ticket[task] for task in movers]
    stop_ranges(turn, job.id, ranges_of(movers), Why.MIGRATE, cause)
    turn.emit(claim_tasks(job, zip(movers, tickets, leases, strict=True), turn.now))
    return Done(job.id)


def _find_going(turn: Turn, job: Job) -> dict[int, int]:
    """The tasks of an array that go on, and where each is."""
    tasks = turn.world.arrays.get(job.id)
    spans = () if tasks is None else spans_of(tasks.phase, GOING_ON, 0, len(tasks))
    return {} if tasks is None else {task: tasks.slot[task] for span in spans for task in range(span[0], sum(span))}


def _find_refusal(turn: Turn, job: Job, item: event.MigrateJob) -> Refused | None:
    if isinstance(job.phase, Stopping) or turn.world.widths.resizes.get(job.id, Resize(0)).to:
        return refuse(Code.IS_STOPPING, "job", item.job)
    why = why_immovable(job) or (why_tasks_stay(turn.world, job) if job.spec.array else "")
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
