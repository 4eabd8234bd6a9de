"""Draft: try placements on the living world, then keep them or take every one back exactly.

It uses the same primitives as `apply` (`hold` and `hold_tasks`) and remembers the inverse of each. `commit` keeps the
edits and gives the facts that say so, in the order in which they were made, since each was right only after the ones
before it; leaving without a commit undoes them, newest first.
"""

from __future__ import annotations

from itertools import chain
from types import TracebackType
from typing import TypeAlias

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Lease, Run, TaskPhase, columns_of
from muster.model.ranges import as_ranges
from muster.world.accounting import advance
from muster.world.claiming import next_ticket
from muster.world.line import Line
from muster.world.world import World

Gang: TypeAlias = tuple[Job, Run, list[Lease], int]
"""A gang as it waited, the run that it has, all its places, and the ticket of its claim if it came by one."""


class Draft:
    """A context manager over one world; at most one is open at a time."""

    __slots__ = ("_at", "_cause", "_facts", "_gangs", "_noted", "_tickets", "_undo", "_world")

    def __init__(self, world: World, at: int, cause: str = "") -> None:
        world.budgets.now = at
        self._world = world
        self._at = at
        self._cause = cause
        self._tickets = world.tickets
        self._undo: list[tuple[Job, int, int]] = []
        self._facts: list[fact.Fact] = []
        self._gangs: list[Gang] = []
        self._noted = 0

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say_gangs()
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
        self._gangs.append((job, world.hold(job, run, at, line), leases, claim))

    def place_tasks(self, job: Job, first: int, leases: list[Lease], claim: int = 0) -> None:
        """Place tasks of an array, from `first` on."""
        self._say_gangs()
        if self._at > self._world.goodput.at:
            advance(self._world, self._at)
        columns = columns_of(leases)
        self._world.hold_tasks(job, first, *columns, self._at, claim or next_ticket(self._world))
        count = sum(columns[1])
        self._undo.append((job, first, count))
        self._facts.append(fact.TasksPlaced(job.id, first, *columns, self._cause, claim))

    def note(self) -> None:
        """Write down what was placed so far, for whoever reads or changes before the next placement what decides
        nothing among them."""
        self._world.note_starts([gang[:2] for gang in self._gangs[self._noted :]], self._at)
        self._noted = len(self._gangs)

    def commit(self) -> list[fact.Fact]:
        """Keep what was placed, and say it in facts."""
        self._say_gangs()
        self._undo.clear()
        return self._facts

    def _say_gangs(self) -> None:
        """Gangs that were placed one after the other are one fact; if one came by a claim, all have a ticket there."""
        if not self._gangs:
            return
        self.note()
        jobs, runs, leases, claims = zip(*self._gangs, strict=True)
        columns = columns_of(list(chain.from_iterable(leases)))
        numbers, epochs, widths = [job.id for job in jobs], [run.epoch for run in runs], list(map(len, leases))
        tickets = list(claims) if any(claims) else []
        self._facts.append(fact.Placed(numbers, epochs, widths, *columns, self._cause, tickets))
        self._undo += [(job, 0, 0) for job in jobs]
        self._gangs, self._noted = [], 0

    def _unplace_tasks(self, job: Job, first: int, count: int) -> None:
        tasks = self._world.arrays[job.id]
        self._world.release_tasks(job, as_ranges(first, count), TaskPhase.QUEUED, self._at)
        for task in range(first, first + count):
            tasks.epoch[task] -= 1
