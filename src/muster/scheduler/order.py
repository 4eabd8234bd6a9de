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

from collections.abc import Collection
from heapq import heappop, heappush, heapreplace
from itertools import islice
from operator import itemgetter
from typing import Final, TypeAlias

from muster.world.fleet import FreeVector
from muster.world.line import BEHIND_ALL, BandKey, LeafKey, Line, job_of
from muster.world.queue import OVER, Band, Shape
from muster.world.tour import Tour
from muster.world.world import World

IN_VAIN_MAX: Final = 4
"""How many are met in vain, since their shapes fell asleep meanwhile, before a new tour leaves them out."""
PARTS_MAX: Final = 8
"""Of how many shapes it is looked up one by one whether a tenant waits with them: of more, they are joined first."""
HOPELESS_MAX: Final = 8
"""How many shapes are looked at after each start: with more, it is cheaper to let those fail whose turn comes."""


_NO_BAND: Final[BandKey] = (OVER, -1, "")
"""Behind every band in which somebody may start, and before all others: no rank is below 0."""


Stand: TypeAlias = tuple[LeafKey, Shape, dict[str, Line]]
"""The lines of a shape in one band, by tenant; none of their jobs stands before this place among its tenant's."""
_SOONEST: Final = itemgetter(0)


class Leaf:
    """The lines of one tenant in our band: those that were looked at as a heap by their first job, and in how many
    stands that was; in the others nobody stands before `next`. What is far behind is not looked at: most of it is not
    reached in a cycle."""

    __slots__ = ("lines", "next", "seen")

    def __init__(self) -> None:
        self.lines: list[tuple[LeafKey, Line]] = []
        self.next: LeafKey = 0
        self.seen = 0


class Round:
    """The choices of one cycle: band after band, and in each a tour of those who wait with a shape that is awake.
    `_leaves` are those tenants that were met, and `_stands` all that stood in our band, the soonest first; who was
    accepted by `_since` is due in it. `_places`
    are where lines are met that are not met at their head; those that are None are not met at all."""

    __slots__ = ("_band", "_leaves", "_now", "_places", "_since", "_stands", "_tour", "_world", "drops_hopeless")

    def __init__(self, world: World, now: int) -> None:
        self._world = world
        self._now = now
        self._band = (-1, 0, "")
        self._since = 0
        self._leaves: dict[str, Leaf] = {}
        self._stands: list[Stand] = []
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
        lines, awake = self._leaves[line.tenant].lines, self._world.queue.awake
        heapreplace(lines, (line.first(self._since), line)) if line.heap else heappop(lines)
        if len(awake) <= HOPELESS_MAX and self.drops_hopeless:
            self._drop_hopeless()
        if self._tour is not None and awake:
            self._tour.serve(line.tenant)

    def pass_by(self, line: Line, place: LeafKey | None = None) -> None:
        """Meet a line not before this place, or not at all."""
        self._places[line] = place

    def is_passed_by(self, line: Line) -> bool:
        """Whether a line is not met at its head."""
        return line in self._places

    def _set_out(self) -> Tour | None:
        """A tour of the first band that somebody stands in who is worth a try: none before where we are has any.
        Whoever is due stands before all others of its priority, so while somebody is, nobody is known to be far
        behind."""
        world, now, first = self._world, self._now, _NO_BAND
        is_anybody_due = world.queue.due_at <= now
        met: list[Collection[str]] = []
        stands: list[Stand] = []
        for shape in world.queue.awake:
            for key, band in shape.bands.items():
                if key <= first and (not self._places or self._is_met(band)):
                    if key != first:
                        first, met, stands = key, [], []
                    met.append(band.met())
                    stands.append((0 if is_anybody_due else shape.soonest, shape, band.lines))
        if not met:
            return None
        stands.sort(key=_SOONEST)
        self._band, self._stands, self._leaves = first, stands, {}
        self._since = now - world.tiers[first[2]].longest_wait_ms
        world.walk.settle(now)
        self._tour = Tour(world.walk, met if len(met) <= PARTS_MAX else [frozenset().union(*met)])
        return self._tour

    def _find_line(self, tenant: str) -> tuple[Line, int] | None:
        """Of a tenant's lines in our band, the one whose job is first, and that job. A line that sleeps or stands in
        another band now is not met again; only one that is passed by has moved since it was looked at."""
        awake, leaf = self._world.queue.awake, self._leaves.get(tenant)
        if leaf is None:
            leaf = self._leaves[tenant] = Leaf()
        lines = leaf.lines
        while True:
            if not lines or leaf.next < lines[0][0]:
                self._look_on(leaf, tenant)
                if not lines:
                    return None
            first, line = lines[0]
            if line.shape not in awake or line.band != self._band:
                heappop(lines)
            elif self._places and (at := self._find_place(line)) != first:
                heappop(lines) if at is None else heapreplace(lines, (at, line))
            else:
                return line, job_of(first)

    def _look_on(self, leaf: Leaf, tenant: str) -> None:
        """Look at a tenant's lines in so many more stands that none in those behind them comes before the first."""
        awake, places, since, lines = self._world.queue.awake, self._places, self._since, leaf.lines
        for soonest, shape, here in islice(self._stands, leaf.seen, None):
            if lines and soonest >= lines[0][0]:
                leaf.next = soonest
                return
            leaf.seen += 1
            line = here.get(tenant)
            if line is not None and shape in awake:
                at = self._find_place(line) if places else line.first(since)
                if at is not None:
                    heappush(lines, (at, line))
        leaf.next = BEHIND_ALL

    def _find_place(self, line: Line) -> LeafKey | None:
        return self._places[line] if line in self._places else line.first(self._since)

    def _is_met(self, band: Band) -> bool:
        """Whether anybody in a band is met at all."""
        return any(self._find_place(line) is not None for line in band.lines.values())

    def _drop_hopeless(self) -> None:
        """Let shapes sleep that the slots which woke them have no room for any more: most of them, after a start."""
        queue, fleet = self._world.queue, self._world.fleet
        seen: dict[int, FreeVector | None] = {}
        for shape in tuple(queue.awake):
            if shape.freed is not None:
                ask = shape.least
                for slot in shape.freed:
                    free = seen[slot] if slot in seen else seen.setdefault(slot, fleet.find_free(slot))
                    if free and ask.gpus <= free[0] and ask.cpu_milli <= free[1] and ask.memory_bytes <= free[2]:
                        break  # one task could fit there, by its plain amounts
                else:
                    queue.sleep(shape)
