"""Draft: try placements on the living world, then keep them or take every one back exactly.

It uses the same primitives as `apply` (`hold` and `hold_tasks`) and remembers the inverse of each. `commit` keeps the
edits and gives the facts that say so, in the order in which they were made, since each was right only after the ones
before it; leaving without a commit undoes them, newest first.
"""

from __future__ import annotations

from types import TracebackType

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Lease, Run, TaskPhase
from muster.world.accounting import advance
from muster.world.world import World


class Draft:
    """A context manager over one world; at most one is open at a time."""

    __slots__ = ("_at", "_facts", "_gangs", "_undo", "_world")

    def __init__(self, world: World, at: int) -> None:
        world.budgets.now = at
        self._world = world
        self._at = at
        self._undo: list[tuple[Job, int, int]] = []
        self._facts: list[fact.Fact] = []
        self._gangs: list[tuple[int, Run]] = []

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._undo:
            job, first, count = self._undo.pop()
            if count:
                self._unplace_tasks(job, first, count)
            else:
                self._world.release(self._world.jobs[job.id], job, self._at)

    def place(self, job: Job, leases: list[Lease]) -> None:
        """Place a gang."""
        run = Run(job.epoch + 1, tuple(leases), self._at)
        if not self._undo:
            advance(self._world, self._at)
        self._world.hold(job, run, self._at)
        self._undo.append((job, 0, 0))
        self._gangs.append((job.id, run))

    def place_tasks(self, job: Job, first: int, leases: list[Lease], cause: str) -> None:
        """Place tasks of an array, from `first` on."""
        if not self._undo:
            advance(self._world, self._at)
        columns = ([x.slot for x in leases], [x.tasks for x in leases], [x.devices for x in leases])
        self._world.hold_tasks(job, first, *columns, self._at)
        count = sum(columns[1])
        self._undo.append((job, first, count))
        if self._gangs:
            self._facts.append(_roll_up(self._gangs, cause))
            self._gangs = []
        self._facts.append(fact.TasksPlaced(job.id, first, *columns, cause))

    def commit(self, cause: str) -> list[fact.Fact]:
        """Keep what was placed, and say it in facts."""
        self._undo.clear()
        if self._gangs:
            self._facts.append(_roll_up(self._gangs, cause))
        return self._facts

    def _unplace_tasks(self, job: Job, first: int, count: int) -> None:
        tasks = self._world.arrays[job.id]
        self._world.release_tasks(job, first, count, TaskPhase.QUEUED, self._at)
        for task in range(first, first + count):
            tasks.epoch[task] -= 1


def _roll_up(gangs: list[tuple[int, Run]], cause: str) -> fact.Placed:
    """Gangs that were placed one after the other, as the columns of one fact."""
    jobs, epochs, widths = [], [], []
    leases: list[Lease] = []
    for job, run in gangs:
        jobs.append(job)
        epochs.append(run.epoch)
        widths.append(len(run.leases))
        leases += run.leases
    slots, tasks, devices = [], [], []
    for lease in leases:
        slots.append(lease.slot)
        tasks.append(lease.tasks)
        devices.append(lease.devices)
    return fact.Placed(jobs, epochs, widths, slots, tasks, devices, cause)
