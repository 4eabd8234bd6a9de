"""The queue: who waits, sorted so that a cycle costs what changed and not what exists.

Jobs that are equal in ask, gang size, needs and whether they may be evicted have one *shape*; within it each tenant has
a *line*, by job id. A shape that did not fit sleeps until something it could use comes free; a line that is over its
quota is parked until its tenant, or one that shares a quota line with it, gives something back. Sleeping and parked are
memories of failed tries, true until woken, so forgetting them (as a restore does) costs a try and changes no decision.
The queue knows no limits and no nodes: callers say what woke whom.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import TypeAlias

from muster.model.job import Job
from muster.model.spec import Needs
from muster.units import Resources
from muster.world.fleet import FreeVector

ShapeKey: TypeAlias = tuple[Resources, int, Needs, bool]


class Line:
    """The waiting jobs of one tenant and shape: the top of `heap` is the head, and never one who has left."""

    __slots__ = ("_gone", "heap", "parked", "shape", "tenant")

    def __init__(self, tenant: str, shape: Shape) -> None:
        self.tenant = tenant
        self.shape = shape
        self.parked = False
        self.heap: list[int] = []
        self._gone: set[int] = set()

    def add(self, job: int) -> None:
        """Join, at the place that the id gives."""
        if job in self._gone:
            self._gone.remove(job)
        else:
            heapq.heappush(self.heap, job)

    def remove(self, job: int) -> None:
        """Leave, from wherever in the line."""
        if self.heap[0] == job:
            heapq.heappop(self.heap)
            if self._gone:
                self._drop_gone()
        else:
            self._gone.add(job)

    def head(self) -> int:
        """The lowest id that waits."""
        return self.heap[0]

    def ids(self) -> list[int]:
        """Everybody who waits, in order."""
        return sorted(job for job in self.heap if job not in self._gone)

    def fork(self, shape: Shape) -> Line:
        """An independent copy inside `shape`."""
        twin = Line(self.tenant, shape)
        twin.parked = self.parked
        twin.heap = self.heap.copy()
        twin._gone = self._gone.copy()
        return twin

    def _drop_gone(self) -> None:
        while self.heap and self.heap[0] in self._gone:
            self._gone.remove(heapq.heappop(self.heap))


class Shape:
    """All lines that are equal for placement and quota, and a heap of the heads of those that are not parked."""

    __slots__ = ("ask", "evictable", "gang", "heads", "key", "lines", "needs")

    def __init__(self, key: ShapeKey) -> None:
        self.key = key
        self.ask, self.gang, self.needs, self.evictable = key
        self.lines: dict[str, Line] = {}
        self.heads: list[tuple[int, str]] = []

    def offer(self, line: Line) -> None:
        """Put a line's head up for choice."""
        heapq.heappush(self.heads, (line.heap[0], line.tenant))
        if len(self.heads) > 64 and len(self.heads) > 4 * len(self.lines):
            self.heads = sorted((other.head(), other.tenant) for other in self.lines.values() if not other.parked)

    def find_first(self) -> tuple[int, Line] | None:
        """The lowest id that waits in a line that is not parked."""
        while self.heads:
            job, tenant = self.heads[0]
            line = self.lines.get(tenant)
            if line is not None and not line.parked and line.heap[0] == job:
                return job, line
            heapq.heappop(self.heads)
        return None


class Queue:
    """Every shape that somebody waits with, which of them are worth a try, and who is parked."""

    __slots__ = ("awake", "parked", "shapes")

    def __init__(self) -> None:
        self.shapes: dict[ShapeKey, Shape] = {}
        self.awake: dict[ShapeKey, Shape] = {}
        self.parked: dict[str, dict[ShapeKey, Line]] = {}

    def add(self, job: Job) -> None:
        """A job waits. Its shape wakes only if the job is the new head of its line."""
        key = (job.spec.ask, job.spec.gang, job.spec.needs, job.spec.evictable)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.shapes[key] = Shape(key)
        line = shape.lines.get(job.spec.tenant)
        if line is None:
            line = shape.lines[job.spec.tenant] = Line(job.spec.tenant, shape)
        line.add(job.id)
        if line.heap[0] == job.id and not line.parked:
            shape.offer(line)
            self.awake[key] = shape

    def remove(self, job: Job) -> None:
        """A job waits no longer."""
        key = (job.spec.ask, job.spec.gang, job.spec.needs, job.spec.evictable)
        shape = self.shapes[key]
        line = shape.lines[job.spec.tenant]
        line.remove(job.id)
        if line.heap:
            if not line.parked:
                shape.offer(line)
            return
        self._unpark(line)
        del shape.lines[line.tenant]
        if not shape.lines:
            del self.shapes[key]
            self.awake.pop(key, None)

    def sleep(self, shape: Shape) -> None:
        """A shape did not fit: it sleeps until it is woken."""
        del self.awake[shape.key]

    def park(self, line: Line) -> None:
        """A line is over its quota: it stands aside until its tenant gives something back."""
        line.parked = True
        self.parked.setdefault(line.tenant, {})[line.shape.key] = line

    def wake_for_room(self, free: FreeVector) -> None:
        """A node has this free now: wake the shapes that a task of fits in it."""
        gpus, cpu, memory = free
        for key, shape in self.shapes.items():
            ask = shape.ask
            if ask.gpus <= gpus and ask.cpu_milli <= cpu and ask.memory_bytes <= memory:
                self.awake[key] = shape

    def wake_all(self) -> None:
        """The fleet changed: every shape is worth a try."""
        self.awake = self.shapes.copy()

    def wake_for_quota(self, tenant: str, is_within: Callable[[Shape], bool]) -> None:
        """A tenant may hold more now: bring back its parked lines that `is_within` lets through."""
        parked = self.parked.get(tenant)
        if parked is None:
            return
        for line in [line for line in parked.values() if is_within(line.shape)]:
            self._unpark(line)
            line.shape.offer(line)
            self.awake[line.shape.key] = line.shape

    def waiting(self) -> Iterator[int]:
        """Every job that waits, in order of id."""
        return heapq.merge(*(line.ids() for shape in self.shapes.values() for line in shape.lines.values()))

    def fork(self) -> Queue:
        """An independent copy."""
        twin = Queue()
        for key, shape in self.shapes.items():
            other = twin.shapes[key] = Shape(key)
            other.heads = shape.heads.copy()
            other.lines = {tenant: line.fork(other) for tenant, line in shape.lines.items()}
        twin.awake = {key: twin.shapes[key] for key in self.awake}
        for tenant, lines in self.parked.items():
            twin.parked[tenant] = {key: twin.shapes[key].lines[tenant] for key in lines}
        return twin

    def _unpark(self, line: Line) -> None:
        if line.parked:
            line.parked = False
            lines = self.parked[line.tenant]
            del lines[line.shape.key]
            if not lines:
                del self.parked[line.tenant]
