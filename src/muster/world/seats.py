"""Who sits on a node: the attempts that hold part of it, as runs of tasks with one job, epoch and phase.

One view over both ways of keeping tasks (the ranks of a gang, the columns of an array), for whoever must compare the
world with what a node says of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from muster.model.job import Job
from muster.model.partition import devices_in
from muster.model.phase import ACTIVE, Running, Starting, TaskPhase
from muster.model.ranges import Ranges, tasks_in
from muster.model.record import Record
from muster.world.tasks import HOLDING, spans_of
from muster.world.widths import members_of
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


def stayers_on(world: World, slot: int) -> Iterator[Seat]:
    """Who holds part of a node and was not told to stop. A gang is there as long as any of it is alive anywhere, even
    if all that it had on the node is over."""
    for number in sorted(world.fleet.holders.get(slot, ())):
        job = world.jobs[number]
        if job.spec.array:
            yield from (seat for seat in _array_seats(world, job, slot) if seat.phase != TaskPhase.STOPPING)
        elif isinstance(job.phase, (Starting, Running)):
            yield Seat(number, job.epoch, 0, len(world.ranks.get(number, b".")), TaskPhase.RUNNING)


def stays_on(world: World, job: Job, slot: int) -> bool:
    """Whether a job that holds part of a node is one of them; who they are costs more to tell."""
    if not job.spec.array:
        return isinstance(job.phase, (Starting, Running))
    tasks = world.arrays[job.id]
    return not tasks.counts[TaskPhase.STOPPING] or any(
        tasks.phase[task] != TaskPhase.STOPPING for task in tasks_in(_tasks_on(world, job, slot))
    )


def seats_on_devices(world: World, slot: int, devices: int) -> list[Seat]:
    """Those of them who sit on one of these devices; a gang's tasks on one node share all that it has there."""
    found: list[Seat] = []
    for seat in seats_on(world, slot) if devices else ():
        job = world.jobs[seat.job]
        if not job.spec.array:
            leases = job.phase.run.leases if isinstance(job.phase, ACTIVE) else ()
            if any(lease.slot == slot and devices_in(lease.devices) & devices for lease in leases):
                found.append(seat)
            continue
        found += _parts_on(seat, world.arrays[seat.job].devices, devices)
    return found


def _parts_on(seat: Seat, held: Sequence[int], devices: int) -> Iterator[Seat]:
    """The runs of a seat's tasks that sit on one of these devices."""
    first = seat.first
    for task in range(seat.first, seat.first + seat.count + 1):
        if task == seat.first + seat.count or not devices_in(held[task]) & devices:
            if first < task:
                yield Seat(seat.job, seat.epoch, first, task - first, seat.phase)
            first = task + 1


_PHASES: Final = tuple(((phase,), phase) for phase in HOLDING)
"""Of a gang that is up, ranks may join and leave: each is in a phase of its own."""


def _gang_seats(world: World, job: Job, slot: int) -> Iterator[Seat]:
    if not isinstance(job.phase, ACTIVE):
        return
    phase = TaskPhase.STOPPING
    if isinstance(job.phase, Starting):
        phase = TaskPhase.STARTING
    elif isinstance(job.phase, Running):
        phase = TaskPhase.RUNNING
    ranks = world.ranks.get(job.id, bytearray([phase]))
    members, place = members_of(ranks), 0
    for lease in job.phase.run.leases:
        if lease.slot == slot:
            first, last = members[place], members[place + lease.tasks - 1]
            for kinds, said in _PHASES if phase == TaskPhase.RUNNING else ((HOLDING, phase),):
                for begin, count in spans_of(ranks, kinds, first, last + 1):
                    yield Seat(job.id, job.epoch, begin, count, said)
        place += lease.tasks


def _array_seats(world: World, job: Job, slot: int) -> Iterator[Seat]:
    tasks, runs = world.arrays[job.id], _tasks_on(world, job, slot)
    for phase in HOLDING:
        for run in zip(runs[::2], runs[1::2], strict=True):
            for span in spans_of(tasks.phase, (phase,), run[0], sum(run)):
                for first, count, _ in tasks.seats(*span, shared=job.spec.ask.gpu_milli > 0):
                    for begin, width in tasks.same_epochs(first, count):
                        yield Seat(job.id, tasks.epoch[begin], begin, width, phase)


def _tasks_on(world: World, job: Job, slot: int) -> Ranges:
    """The tasks of an array that hold part of a node."""
    return world.arrays[job.id].find_on(slot, world.fleet.holders[slot][job.id])
