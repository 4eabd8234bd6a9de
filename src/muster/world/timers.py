"""Timers: instants that the world's records already imply, in order, so that nothing here is a second truth.

`limits` has (deadline, job, epoch) of gangs with a time limit, of which most are outlived by then; `ended` has
(ended at, job) of jobs that are over; `bars` is a heap of (until, slot, kind, owner) of bars that end by themselves. An
entry that is no longer true is dropped when it would come first. `tasks` are the limits of tasks of arrays.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TypeAlias

from muster.model.job import Bar, BarKind, Job
from muster.model.phase import TERMINAL, Running
from muster.world.deadlines import Deadlines
from muster.world.limits import TaskLimits
from muster.world.over import Over

BarEnd: TypeAlias = tuple[int, int, BarKind, str]


class Timers:
    """The earliest limit, end and bar's end, checked against the jobs and the bars themselves. What is in `limits` and
    `bars` may have been outlived."""

    __slots__ = ("bars", "ended", "limits", "tasks")

    def __init__(self) -> None:
        self.limits = Deadlines()
        self.ended = Over()
        self.bars: list[BarEnd] = []
        self.tasks = TaskLimits()

    def watch(self, job: Job) -> None:
        """Note what a job's new phase implies."""
        phase = job.phase
        if type(phase) in TERMINAL:
            self.ended.add((phase.since, job.id))
        elif isinstance(phase, Running) and job.spec.limit_ms is not None:
            self.limits.add((phase.since + job.spec.limit_ms, job.id, job.epoch))

    def watch_bar(self, slot: int, bar: Bar) -> None:
        """Note when a bar ends by itself, if it does."""
        if bar.until is not None:
            heapq.heappush(self.bars, (bar.until, slot, bar.kind, bar.owner))

    def find_limit(self, jobs: dict[int, Job]) -> tuple[int, int] | None:
        """The earliest (deadline, job) of a run that is still running."""
        first = self.limits.find(jobs) if self.limits.minutes else None
        return None if first is None else first[:2]

    def find_bar(self, bars: Mapping[int, tuple[Bar, ...]]) -> BarEnd | None:
        """The earliest (until, slot, kind, owner) of a bar that still stands, and until then."""
        while self.bars:
            until, slot, kind, owner = self.bars[0]
            if any((bar.until, bar.kind, bar.owner) == (until, kind, owner) for bar in bars.get(slot, ())):
                return self.bars[0]
            heapq.heappop(self.bars)
        return None

    def find_ended(self, jobs: dict[int, Job]) -> tuple[int, int] | None:
        """The earliest (ended at, job) of a job that is over and still in the world."""
        return self.ended.find(jobs) if self.ended else None

    def take_ended(self, jobs: dict[int, Job], by: int, most: int) -> list[int]:
        """Up to `most` jobs that ended by an instant, oldest first; the caller retires them."""
        return self.ended.take(jobs, by, most)

    def trim(self, jobs: dict[int, Job], bars: Mapping[int, tuple[Bar, ...]]) -> None:
        """Drop what has been outlived: a world that only folds never asks for the earliest."""
        self.find_limit(jobs)
        self.find_ended(jobs)
        self.find_bar(bars)
        self.tasks.find()

    def fork(self) -> Timers:
        """An independent copy."""
        twin = Timers()
        twin.limits = self.limits.fork()
        twin.ended = self.ended.fork()
        twin.bars = self.bars.copy()
        twin.tasks = self.tasks.fork()
        return twin
