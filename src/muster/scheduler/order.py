"""order: whose turn it is. The order is a walk, and each step of it is decided before the next is looked at.

    1  band      work inside its guarantee, then borrowing work; of those, the lowest rank of tier
    2  tenant    down the tree, at each node the child with the smallest weighted share: see `muster.world.tour`
    3  leaf      by priority, whoever is due (the oldest first), due time, who asks for less, id

Priority never compares tenants, and being due never crosses a tier. Shares, lines and bands are kept by the world; here
they are only read. In a cycle nothing is given back: shares grow, lines move to later bands and shapes fall asleep, so
a band is gone through once, and whoever has nothing more to start in it is not met again. Whether anybody fits is not
decided here; but who certainly does not is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Final

from muster.world.line import ID_MASK, BandKey, Leaf, LeafKey, Line
from muster.world.queue import OVER, Band, Shape
from muster.world.tour import Tour
from muster.world.world import World

IN_VAIN_MAX: Final = 4
"""How many are met in vain, since their shapes fell asleep meanwhile, before a new tour leaves them out."""
PARTS_MAX: Final = 8
"""Of how many shapes it is looked up one by one whether a tenant waits with them: of more, they are joined first."""
NAMES_MAX: Final = 256
"""And so are those with whom so few wait: that is sooner done."""
HOPELESS_MAX: Final = 8
"""How many shapes are looked at after each start: with more, it is cheaper to let those fail whose turn comes."""
FREED_MAX: Final = 4
"""And on how many slots: with more, a search is cheaper than a look at each."""


_NO_BAND: Final[BandKey] = (OVER, -1, "")
"""Behind every band in which somebody may start, and before all others: no rank is below 0."""


class Round:
    """The choices of one cycle: band after band, and in each a tour of those who wait with a shape that is awake.
    `_met` is of each shape whom it lets us meet in our band, and `_leaves` are the lines there, by tenant, of which the
    first `_asleep` of each sleep. Who was accepted by `_since` is due. `_places` are where lines are met that are not
    met at their head; those that are None are not met at all. While anybody is due or passed by, lines stand elsewhere
    than in their leaf: then `_heaps` are of each tenant that was met its lines that were awake, by where they stand."""

    __slots__ = (
        "_asleep",
        "_band",
        "_heaps",
        "_is_anybody_due",
        "_leaves",
        "_met",
        "_now",
        "_places",
        "_since",
        "_tour",
        "_world",
        "drops_hopeless",
    )

    def __init__(self, world: World, now: int) -> None:
        self._world = world
        self._now = now
        self._band: BandKey = (-1, 0, "")
        self._since = 0
        self._met: dict[Shape, Collection[str]] = {}
        self._is_anybody_due = world.queue.due_at <= now
        self._leaves: Mapping[str, Leaf] = {}
        self._asleep: dict[str, int] = {}
        self._heaps: dict[str, list[tuple[LeafKey, Line]]] = {}
        self._places: dict[Line, LeafKey | None] = {}
        self._tour: Tour | None = None
        self.drops_hopeless = True

    def find_next(self) -> tuple[Line, int] | None:
        """Whose turn it is, and with which job; None if nobody may start who is worth a try."""
        awake, in_vain = self._world.queue.awake, 0
        while awake and (tour := self._tour or self._set_out()) is not None:
            tenant = tour.find_first()
            if tenant is not None and (found := self._find_line(tenant)) is not None:
                return found
            is_anew = in_vain == IN_VAIN_MAX and not self._places  # a new tour would meet who is passed by again
            if tenant is None or is_anew:
                self._tour, in_vain = None, 0
            else:
                tour.drop()
                in_vain += 1
        return None

    def serve(self, line: Line) -> None:
        """Whose turn it was has got a place: its line, the first of its tenant's, stands where its next job does."""
        queue, heap = self._world.queue, self._heaps.get(line.tenant)
        awake = queue.awake
        if heap is not None:
            heapreplace(heap, (line.first(self._since), line)) if line.heap else heappop(heap)
        if len(queue.freed) <= FREED_MAX and len(awake) <= HOPELESS_MAX and self.drops_hopeless:
            self._drop_hopeless()
        if self._tour is not None and awake:
            self._tour.serve(line.tenant, has_more=line.tenant in self._leaves)

    def pass_by(self, line: Line, place: LeafKey | None = None) -> None:
        """Meet a line not before this place, or not at all."""
        self._places[line] = place

    def is_passed_by(self, line: Line) -> bool:
        """Whether a line is not met at its head."""
        return line in self._places

    def _set_out(self) -> Tour | None:
        """A tour of the first band that somebody stands in who is worth a try: none before where we are has any."""
        world, now, first = self._world, self._now, _NO_BAND
        met: dict[Shape, Collection[str]] = {}
        for shape in world.queue.awake:
            for key, band in shape.bands.items():
                if key <= first and (not self._places or self._is_met(band)):
                    if key != first:
                        first, met = key, {}
                    met[shape] = band.met
        if not met:
            return None
        self._met, self._leaves = met, world.queue.leaves(first)
        if first != self._band:
            self._band, self._asleep, self._heaps = first, {}, {}
            self._since = now - world.tiers[first[2]].longest_wait_ms
        world.walk.settle(now)
        parts: Collection[Collection[str]] = met.values()
        if len(parts) > 1 and (len(parts) > PARTS_MAX or sum(map(len, parts)) <= NAMES_MAX):
            parts = [frozenset().union(*parts)]
        self._tour = Tour(world.walk, parts)
        return self._tour

    def _find_line(self, tenant: str) -> tuple[Line, int] | None:
        """Of a tenant's lines in our band that are awake, the one whose job is first, and that job."""
        if self._is_anybody_due or self._places:
            return self._find_moved(tenant)
        awake, asleep = self._world.queue.awake, self._asleep.get(tenant, 0)
        for line in islice(self._lines_of(tenant), asleep, None):
            if line.shape in awake:
                self._asleep[tenant] = asleep
                return line, line.place & ID_MASK
            asleep += 1
        return None

    def _find_moved(self, tenant: str) -> tuple[Line, int] | None:
        """The same if some stand elsewhere than in the leaf. A line that sleeps, or stands in another band now, is not
        met again; only one that is passed by has moved since it was looked at."""
        awake, heap = self._world.queue.awake, self._heaps.get(tenant)
        if heap is None:
            heap = self._heaps[tenant] = self._gather(tenant)
        while heap:
            first, line = heap[0]
            if line.shape not in awake or line.band != self._band:
                heappop(heap)
            elif self._places and (at := self._find_place(line)) != first:
                heappop(heap) if at is None else heapreplace(heap, (at, line))
            else:
                return line, first & ID_MASK
        return None

    def _gather(self, tenant: str) -> list[tuple[LeafKey, Line]]:
        """A tenant's lines in our band that are awake, as a heap by where they stand."""
        awake = self._world.queue.awake
        here = [(self._find_place(line), line) for line in self._lines_of(tenant) if line.shape in awake]
        heap = [(at, line) for at, line in here if at is not None]
        heapify(heap)
        return heap

    def _lines_of(self, tenant: str) -> Sequence[Line]:
        leaf = self._leaves.get(tenant)
        return () if leaf is None else leaf.lines

    def _find_place(self, line: Line) -> LeafKey | None:
        return self._places[line] if line in self._places else line.first(self._since)

    def _is_met(self, band: Band) -> bool:
        """Whether anybody in a band is met at all."""
        return any(self._find_place(line) is not None for line in band.lines.values())

    def _drop_hopeless(self) -> None:
        """Let shapes sleep that the slots which woke them have no room for any more: most of them, after a start."""
        queue, fleet = self._world.queue, self._world.fleet
        rooms = list(filter(None, map(fleet.find_free, queue.freed)))
        for shape in tuple(queue.awake):
            if shape.tries_freed:
                ask = shape.least
                for gpus, cpu, memory in rooms:
                    if ask.gpus <= gpus and ask.cpu_milli <= cpu and ask.memory_bytes <= memory:
                        break  # one task could fit there, by its plain amounts
                else:
                    queue.sleep(shape)
                    self._met.pop(shape, None)
