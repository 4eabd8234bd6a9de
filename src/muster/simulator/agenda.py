"""The agenda: virtual time. What will happen stands in one heap, and the clock jumps from one instant to the next.

Two things at the same instant happen in the order in which they were planned, so a run is a function of its seed. The
agenda knows nothing of jobs or nodes, and nothing here reads a clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Agenda:
    """Actions by instant. `now` is the instant whose actions ran last; it is also a Clock."""

    __slots__ = ("_heap", "_order", "now")

    def __init__(self, start_ms: int = 0) -> None:
        self.now = start_ms
        self._order = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def now_ms(self) -> int:
        """The virtual time."""
        return self.now

    def after(self, delay_ms: int, action: Callable[..., None], *args: Any) -> None:
        """Plan an action `delay_ms` from now."""
        self._order += 1
        heapq.heappush(self._heap, (self.now + max(0, delay_ms), self._order, action, args))

    def find_next(self) -> int | None:
        """The instant of the next action, if there is one."""
        return self._heap[0][0] if self._heap else None

    def jump(self, instant: int) -> None:
        """Go to an instant and do what is planned up to it."""
        while self._heap and self._heap[0][0] <= instant:
            at, _, action, args = heapq.heappop(self._heap)
            self.now = max(self.now, at)
            action(*args)
        self.now = max(self.now, instant)
