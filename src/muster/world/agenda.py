"""An agenda: instants that are noted long before they come, and mostly outlived by then.

They are kept by the minute, and put in order when no earlier minute has any. So to note one costs the same however many
there are, and those that were outlived until their minute came are dropped together. Which ones were, callers say.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from muster.units import MINUTE_MS

Entry: TypeAlias = tuple[int, ...]
"""An instant, and whose it is."""


class Agenda:
    """What is noted by the minute, of which those in `minutes` have any, as a heap. Those of the minute that was looked
    at last are a heap, too: it is `_open`."""

    __slots__ = ("_by_minute", "_open", "minutes")

    def __init__(self) -> None:
        self.minutes: list[int] = []
        self._by_minute: dict[int, list[Entry]] = {}
        self._open = -1

    def add(self, entry: Entry) -> None:
        """Note something."""
        minute = entry[0] // MINUTE_MS
        here = self._by_minute.get(minute)
        if here is None:
            self._by_minute[minute] = [entry]
            heappush(self.minutes, minute)
        elif minute == self._open:
            heappush(here, entry)
        else:
            here.append(entry)

    def find(self, holds: Callable[[Entry], bool]) -> Entry | None:
        """The first that still holds. Those before it are dropped."""
        while self.minutes:
            minute = self.minutes[0]
            here = self._by_minute[minute]
            if minute != self._open:
                here[:] = filter(holds, here)
                heapify(here)
                self._open = minute
            while here:
                if holds(here[0]):
                    return here[0]
                heappop(here)
            del self._by_minute[heappop(self.minutes)]
        return None

    def drop(self) -> None:
        """The one that was found is over."""
        heappop(self._by_minute[self._open])

    def fork(self) -> Agenda:
        """An independent copy."""
        twin = Agenda()
        twin.minutes, twin._open = self.minutes.copy(), self._open
        twin._by_minute = {minute: here.copy() for minute, here in self._by_minute.items()}
        return twin
