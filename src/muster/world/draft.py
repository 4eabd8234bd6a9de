"""Draft: try placements on the living world, then keep them or take every one back exactly.

It uses the same primitives as `apply` (`hold` and `hold_tasks`) and remembers the inverse of each. `commit` keeps the
edits and gives the facts that say so, in the order in which they were made, since each was right only after the ones
before it; leaving without a commit undoes them, newest first.
"""

from __future__ import annotations

from types import TracebackType

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Lease, Run, TaskPhase, columns_of
from muster.model.ranges import as_ranges
from muster.world.accounting import advance
from muster.world.claiming import next_ticket
from muster.world.line import Line
from muster.world.world import World


class Draft:
    """A context manager over one world; at most one is open at a time. `_placed` is the last fact, if the next gang
    still goes into it."""

    __slots__ = ("_at", "_cause", "_facts", "_placed", "_tickets", "_undo", "_world")

    def __init__(self, world: World, at: int, cause: str = "") -> None:
        world.budgets.now = at
        self._world = world
        self._at = at
        self._cause = cause
        self._tickets = world.tickets
        self._undo: list[tuple[Job, int, int]] = []
        self._facts: list[fact.Fact] = []
        self._placed: fact.Placed | None = None

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._undo:
            self._world.tickets = self._tickets
        while self._undo:
            job, first, count = self._undo.pop()
            if count:
                self._unplace_tasks(job, first, count)
            else:
                self._world.release(self._world.jobs[job.id], job, self._at)

    def place(self, job: Job, leases: list[Lease], claim: int = 0, line: Line | None = None) -> None:
        """Place a gang, whose line may be at hand; one that comes by a claim is as old as that, which is its ticket."""
        world, at = self._world, self._at
        if at > world.goodput.at:
            advance(world, at)
        run = Run(job.epoch + 1, tuple(leases), at, claim or next_ticket(world))
        world.hold(job, run, at, line)
        self._undo.append((job, 0, 0))
        self._say_gang(job.id, run, claim)

    def place_tasks(self, job: Job, first: int, leases: list[Lease], claim: int = 0) -> None:
        """Place tasks of an array, from `first` on."""
        self._placed = None
        if self._at > self._world.goodput.at:
            advance(self._world, self._at)
        columns = columns_of(leases)
        self._world.hold_tasks(job, first, *columns, self._at, claim or next_ticket(self._world))
        count = sum(columns[1])
        self._undo.append((job, first, count))
        self._facts.append(fact.TasksPlaced(job.id, first, *columns, self._cause, claim))

    def commit(self) -> list[fact.Fact]:
        """Keep what was placed, and say it in facts."""
        self._undo.clear()
        return self._facts

    def _say_gang(self, number: int, run: Run, claim: int) -> None:
        """Gangs that are placed one after the other are one fact; if one came by a claim, all have a ticket there."""
        placed = self._placed
        if placed is None:
            placed = self._placed = fact.Placed([], [], [], [], [], [], self._cause, [])
            self._facts.append(placed)
        if claim or placed.tickets:
            placed.tickets.extend([0] * (len(placed.jobs) - len(placed.tickets)))
            placed.tickets.append(claim)
        placed.jobs.append(number)
        placed.epochs.append(run.epoch)
        placed.widths.append(len(run.leases))
        for lease in run.leases:
            placed.slots.append(lease.slot)
            placed.tasks.append(lease.tasks)
            placed.devices.append(lease.devices)

    def _unplace_tasks(self, job: Job, first: int, count: int) -> None:
        tasks = self._world.arrays[job.id]
        self._world.release_tasks(job, as_ranges(first, count), TaskPhase.QUEUED, self._at)
        for task in range(first, first + count):
            tasks.epoch[task] -= 1
