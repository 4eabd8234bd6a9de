"""Draft: try placements on the living world, then keep them or take every one back exactly.

It uses the same primitives as `apply` (`hold` and `hold_tasks`) and remembers the inverse of each. `commit` keeps the
edits and gives the facts that say so, in the order in which they were made, since each was right only after the ones
before it; leaving without a commit undoes them, newest first.
"""

from __future__ import annotations

from itertools import chain, repeat
from operator import attrgetter
from types import TracebackType
from typing import Final

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Lease, Run, TaskPhase, columns_of
from muster.model.ranges import as_ranges
from muster.world.accounting import advance
from muster.world.claiming import next_ticket
from muster.world.line import Line
from muster.world.world import World

_ID: Final = attrgetter("id")
_EPOCH: Final = attrgetter("epoch")
_LEASES: Final = attrgetter("leases")


class Draft:
    """A context manager over one world; at most one is open at a time. Of `_gangs`, as they waited and with the run
    that each got and the ticket of its claim, no fact is made yet."""

    __slots__ = ("_at", "_cause", "_facts", "_gangs", "_tickets", "_undo", "_world")

    def __init__(self, world: World, at: int, cause: str = "") -> None:
        world.budgets.now = at
        self._world = world
        self._at = at
        self._cause = cause
        self._tickets = world.tickets
        self._undo: list[tuple[Job, int, int]] = []
        self._facts: list[fact.Fact] = []
        self._gangs: list[tuple[Job, Run, int]] = []

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._gangs:
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
        world.hold(job, run, at, line)
        self._gangs.append((job, run, claim))

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

    def commit(self) -> list[fact.Fact]:
        """Keep what was placed, and say it in facts."""
        self._say_gangs()
        self._undo.clear()
        return self._facts

    def _say_gangs(self) -> None:
        """Gangs that were placed one after the other are one fact; if one came by a claim, all have a ticket there."""
        if self._gangs:
            jobs, runs, claims = zip(*self._gangs, strict=True)
            numbers, epochs, leases = list(map(_ID, jobs)), list(map(_EPOCH, runs)), list(map(_LEASES, runs))
            columns = columns_of(list(chain.from_iterable(leases)))
            tickets = list(claims) if any(claims) else []
            placed = fact.Placed(numbers, epochs, list(map(len, leases)), *columns, self._cause, tickets)
            self._facts.append(placed)
            self._undo += zip(jobs, repeat(0), repeat(0), strict=False)
            self._gangs = []

    def _unplace_tasks(self, job: Job, first: int, count: int) -> None:
        tasks = self._world.arrays[job.id]
        self._world.release_tasks(job, as_ranges(first, count), TaskPhase.QUEUED, self._at)
        for task in range(first, first + count):
            tasks.epoch[task] -= 1
