"""The calendar's ends: when leases will be given back at the latest, in the order in which that will be.

A run with a limit has an end from the moment it gets its leases until it gives them back; one without a limit has none.
Like all indexes it follows from the jobs, and a restore derives it anew. It knows jobs and instants: not who waits for
what comes free, and not what was promised to whom.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from muster.model.errors import InvariantError
from muster.units import Limit


class Ends:
    """The ends of all runs that have one; `_order` is (end, job) in order."""

    __slots__ = ("_by_job", "_order")

    def __init__(self) -> None:
        self._by_job: dict[int, int] = {}
        self._order: list[tuple[int, int]] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every (end, job), the earliest first."""
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def add(self, job: int, end: int) -> None:
        """A run will end by then. The inverse of `remove`."""
        self._by_job[job] = end
        insort(self._order, (end, job))

    def remove(self, job: int) -> None:
        """A run has given its leases back."""
        end = self._by_job.pop(job, None)
        if end is None:
            raise InvariantError("every run with a limit has its end", f"job {job} has none")
        del self._order[bisect_left(self._order, (end, job))]

    def find(self, job: int) -> Limit:
        """When a job's run will end, if that is known."""
        return self._by_job.get(job)

    def fork(self) -> Ends:
        """An independent copy."""
        twin = Ends()
        twin._by_job, twin._order = self._by_job.copy(), self._order.copy()
        return twin
