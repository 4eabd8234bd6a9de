"""Who is over and still here, in the order in which they ended, and by number where that was at one instant.

Whoever ends now ended last. So those who come are put behind the others, in order as soon as somebody asks for the
first of them; a heap would move each of them through all its levels. A restore names them by number, and sorts them
once. It knows numbers and instants: when they go is decided elsewhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container
from typing import TypeAlias

End: TypeAlias = tuple[int, int]
"""When it ended, and which job."""


class Over:
    """In `_order` those in front of `_first` are gone already; `_fresh` are to be put behind the others."""

    __slots__ = ("_first", "_fresh", "_order")

    def __init__(self) -> None:
        self._order: list[End] = []
        self._fresh: list[End] = []
        self._first = 0

    def __len__(self) -> int:
        return len(self._order) - self._first + len(self._fresh)

    def add(self, end: End) -> None:
        """A job is over."""
        self._fresh.append(end)

    def find(self, jobs: Container[int]) -> End | None:
        """The first that is still among these jobs; those before it are dropped."""
        order, first = self._settle(), self._first
        while first < len(order) and order[first][1] not in jobs:
            first += 1
        found = order[first] if first < len(order) else None
        self._pass(first)
        return found

    def take(self, jobs: Container[int], by: int, most: int) -> list[int]:
        """The first jobs that ended by an instant, up to so many; they are dropped."""
        order, at, taken = self._settle(), self._first, list[int]()
        while at < len(order) and order[at][0] <= by and len(taken) < most:
            if order[at][1] in jobs:
                taken.append(order[at][1])
            at += 1
        self._pass(at)
        return taken

    def fork(self) -> Over:
        """An independent copy."""
        twin = Over()
        twin._order = self._settle()[self._first :]
        return twin

    def _settle(self) -> list[End]:
        """Everybody in order."""
        order, fresh = self._order, self._fresh
        if fresh:
            cut = bisect_left(order, min(fresh), self._first)
            order[cut:] = sorted(order[cut:] + fresh)
            fresh.clear()
        return order

    def _pass(self, first: int) -> None:
        """So many from the front are gone; they are cleared away as soon as they are the half."""
        self._first = first
        if 2 * first > len(self._order):
            del self._order[:first]
            self._first = 0
