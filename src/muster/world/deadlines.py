"""Deadlines of gangs with a limit: they are noted long before they come, and mostly outlived by then.

They are kept by the minute, and put in order when no earlier minute has any. So to note one costs the same however many
there are, and those that were outlived until their minute came are dropped together. The jobs say which these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from muster.model.job import Job
from muster.model.phase import Running
from muster.units import MINUTE_MS

Deadline: TypeAlias = tuple[int, int, int]
"""When it is, and of which job and epoch."""


class Deadlines:
    """All by the minute; those of `minutes`, a heap, have any. Those of the minute that was looked at last are a heap,
    too: it is `_open`."""

    __slots__ = ("_by_minute", "_open", "minutes")

    def __init__(self) -> None:
        self.minutes: list[int] = []
        self._by_minute: dict[int, list[Deadline]] = {}
        self._open = -1

    def add(self, deadline: Deadline) -> None:
        """Note one."""
        minute = deadline[0] // MINUTE_MS
        here = self._by_minute.get(minute)
        if here is None:
            self._by_minute[minute] = [deadline]
            heappush(self.minutes, minute)
        elif minute == self._open:
            heappush(here, deadline)
        else:
            here.append(deadline)

    def find(self, jobs: Mapping[int, Job]) -> Deadline | None:
        """The first of a run that is still running. Those before it are dropped."""
        while self.minutes:
            minute = self.minutes[0]
            here = self._by_minute[minute]
            if minute != self._open:
                here[:] = [each for each in here if _is_running(each, jobs)]
                heapify(here)
                self._open = minute
            while here:
                if _is_running(here[0], jobs):
                    return here[0]
                heappop(here)
            del self._by_minute[heappop(self.minutes)]
        return None

    def fork(self) -> Deadlines:
        """An independent copy."""
        twin = Deadlines()
        twin.minutes, twin._open = self.minutes.copy(), self._open
        twin._by_minute = {minute: here.copy() for minute, here in self._by_minute.items()}
        return twin


def _is_running(deadline: Deadline, jobs: Mapping[int, Job]) -> bool:
    job = jobs.get(deadline[1])
    return job is not None and job.epoch == deadline[2] and isinstance(job.phase, Running)
