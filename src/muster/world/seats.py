"""Who sits on a node: the attempts that hold part of it, as runs of tasks with one job, epoch and phase.

One view over both ways of keeping tasks (the ranks of a gang, the columns of an array), for whoever must compare the
world with what a node says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.model.job import Job
from muster.model.phase import ACTIVE, Running, Starting, TaskPhase
from muster.model.record import Record
from muster.world.tasks import HOLDING, spans_of
from muster.world.world import World


class Seat(Record, frozen=True):
    """Tasks [first, first + count) of a job's run, on one node and in one phase."""

    job: int
    epoch: int
    first: int
    count: int
    phase: TaskPhase


def seats_on(world: World, slot: int) -> list[Seat]:
    """Everybody who holds part of a node, by job and task."""
    seats: list[Seat] = []
    for number in sorted(world.fleet.holders.get(slot, ())):
        job = world.jobs[number]
        seats.extend(_array_seats(world, job, slot) if job.spec.array else _gang_seats(world, job, slot))
    return seats


def _gang_seats(world: World, job: Job, slot: int) -> Iterator[Seat]:
    if not isinstance(job.phase, ACTIVE):
        return
    phase = TaskPhase.STOPPING
    if isinstance(job.phase, Starting):
        phase = TaskPhase.STARTING
    elif isinstance(job.phase, Running):
        phase = TaskPhase.RUNNING
    ranks = world.ranks.get(job.id, bytes([phase]))
    first = 0
    for lease in job.phase.run.leases:
        if lease.slot == slot:
            for begin, count in spans_of(ranks, HOLDING, first, first + lease.tasks):
                yield Seat(job.id, job.epoch, begin, count, phase)
        first += lease.tasks


def _array_seats(world: World, job: Job, slot: int) -> Iterator[Seat]:
    tasks = world.arrays[job.id]
    for phase in HOLDING:
        for span in spans_of(tasks.phase, (phase,), 0, len(tasks)):
            for where, first, count in tasks.seats(*span, shared=job.spec.ask.gpu_milli > 0):
                while where == slot and count:
                    width = tasks.same_epoch(first, count)
                    yield Seat(job.id, tasks.epoch[first], first, width, phase)
                    first, count = first + width, count - width
