"""The limits of tasks: when those tasks of arrays that run will have run for as long as they may, in the order in which
that will be.

Tasks that are up since one instant have one entry, however many they are: it costs what changed, and a thousand that
are past their limit are one word. Like all indexes it follows from the columns, and a restore derives it anew. It knows
jobs and instants, and stops nobody.
"""

from __future__ import annotations

import heapq
from typing import Final

from muster.model.errors import InvariantError
from muster.model.phase import TaskPhase
from muster.model.ranges import Ranges
from muster.world.tasks import Tasks

_RUNNING: Final = int(TaskPhase.RUNNING)


class TaskLimits:
    """How many tasks have which (deadline, job). What is in `_order` may have been outlived."""

    __slots__ = ("_order", "counts")

    def __init__(self) -> None:
        self.counts: dict[tuple[int, int], int] = {}
        self._order: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.counts)

    def add(self, job: int, deadline: int, tasks: int) -> None:
        """So many tasks may run until then. The inverse of `remove`."""
        key = (deadline, job)
        if key not in self.counts:
            heapq.heappush(self._order, key)
        self.counts[key] = self.counts.get(key, 0) + tasks

    def remove(self, job: int, deadline: int, tasks: int) -> None:
        """So many of them do not run any more."""
        left = self.counts.get((deadline, job), 0) - tasks
        if left < 0:
            raise InvariantError("every task with a limit has its deadline", f"job {job} by {deadline}: {left}")
        if left:
            self.counts[deadline, job] = left
        else:
            del self.counts[deadline, job]

    def enter(self, job: int, limit_ms: int, tasks: Tasks, ranges: Ranges) -> None:
        """Tasks have come to where their columns say that they are."""
        for since, count in _running(tasks, ranges):
            self.add(job, since + limit_ms, count)

    def leave(self, job: int, limit_ms: int, tasks: Tasks, ranges: Ranges) -> None:
        """Tasks are about to go from there. The inverse of `enter`."""
        for since, count in _running(tasks, ranges):
            self.remove(job, since + limit_ms, count)

    def find(self) -> tuple[int, int] | None:
        """The earliest (deadline, job) of tasks that still run."""
        while self._order and self._order[0] not in self.counts:
            heapq.heappop(self._order)
        return self._order[0] if self._order else None

    def fork(self) -> TaskLimits:
        """An independent copy."""
        twin = TaskLimits()
        twin.counts, twin._order = self.counts.copy(), self._order.copy()
        return twin


def _running(tasks: Tasks, ranges: Ranges) -> list[tuple[int, int]]:
    """Since when how many tasks of ranges run."""
    return [(age.since, age.tasks) for age in tasks.ages(ranges, with_slots=False) if age.phase == _RUNNING]
