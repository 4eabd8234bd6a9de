"""near: the nodes on which it promises most to look for victims, and who may be taken from there.

Of every domain that the gang could stay within, and that would have room for it if all went whom it has a right to, the
nodes on which that costs least at best; of the few cheapest domains. A right may be about ten thousand runs: only those
on these nodes are looked at one by one, and the others only if that is not enough (what is missing is quota, or the
gang is choosy).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final

from muster.model.node import LEVELS, Level
from muster.model.phase import Lease
from muster.scheduler.placing.fit import query_of
from muster.scheduler.stage import Seat
from muster.scheduler.taking.reach import cost_of, price_nodes
from muster.scheduler.taking.rights import Right, Rights
from muster.scheduler.taking.victims import Candidate
from muster.world.arena import AT_NODES, DOMAINS, NODE_ROW, NOWHERE
from muster.world.compiled import find_filled, words_of
from muster.world.queue import Shape
from muster.world.runs import FUNDS, JOB
from muster.world.widths import least_part, places_of, spares_of
from muster.world.world import World

DOMAINS_NEAR: Final = 8
"""How many domains are looked at first."""
MARGIN: Final = 32
"""How many nodes more than the gang has tasks: what they cost at best is not what they cost."""


class Neighbourhood:
    """The nodes that a gang of some shape could use by a right, with the least that each would cost."""

    def __init__(self, world: World, rights: Rights, right: Right, shape: Shape) -> None:
        self._world = world
        self._rights = rights
        self._right = right
        self._shape = shape
        self._nodes = max(1, len(world.fleet))
        self._prices = array("q", (0, NOWHERE)) * self._nodes
        fleet = world.fleet
        words, query = fleet.words, query_of(fleet, shape.ask, shape.gang, shape.needs)
        price_nodes(words, query, rights.sheet_of(right), shape.gang, words_of(self._prices))
        self._wanted = array("q")

    def rounds(self) -> Iterator[list[int]]:
        """The nodes to look at: those that promise most, and then all; none at all if it would fit nowhere. Whoever
        wants a box is shown all at once: the cheapest nodes are seldom side by side."""
        near = sorted(find_near(self._world, self._shape, self._prices))
        if not near:
            return
        if self._shape.needs.shape:
            self._wanted = array("q", bytes(16 * self._nodes))
            yield find_filled(self._prices, 2)
            return
        self._wanted = array("q", (0, NOWHERE)) * self._nodes
        for slot in near:
            self._wanted[2 * slot + 1] = 0
        yield near
        self._wanted = array("q", bytes(16 * self._nodes))
        yield find_filled(self._prices, 2)

    def candidates(self) -> list[Candidate]:
        """Everybody who may be taken from these nodes."""
        rights, world, wanted = self._rights, self._world, words_of(self._wanted)
        rows, found = rights.rows, []
        for at in rights.pick_gangs(self._right, wanted):
            job = world.jobs[int(rows[at + JOB])]
            leases = (*least_part(job), *spares_of(job)) if job.spec.gang_most else places_of(job)
            rights.funds[job.id, 0] = int(rows[at + FUNDS])
            cost = cost_of(self._right.words, rows, at)
            found.append(Candidate(cost, job.id, 0, Seat(job.id, 0, job.spec, leases)))
        for job, task, slot, devices, cost in rights.find_tasks(self._right, wanted):
            found.append(Candidate(cost, job.id, task, Seat(job.id, task, job.spec, (Lease(slot, 1, devices),))))
        return found


def find_near(world: World, shape: Shape, prices: array[int]) -> list[int]:
    """The cheapest nodes of the few cheapest domains that would have room, by what `price_nodes` wrote of each."""
    priced = []
    for nodes in _domains(world, shape, prices).values():
        nodes.sort()
        price, rooms = 0, 0
        for cost, slot in nodes:
            if rooms < shape.gang:
                price, rooms = price + cost, rooms + prices[2 * slot]
        if rooms >= shape.gang:
            priced.append((price, nodes[0][1], nodes))
    priced.sort(key=lambda each: each[:2])
    most = shape.gang + MARGIN
    return [slot for _, _, nodes in priced[:DOMAINS_NEAR] for _, slot in nodes[:most]]


def _domains(world: World, shape: Shape, prices: array[int]) -> dict[int, list[tuple[int, int]]]:
    """Nodes that would have room as (price, slot), by the domain that the gang has to stay within."""
    words, level = world.fleet.words, LEVELS[shape.needs.within or "cluster"]
    field = int(words[AT_NODES]) + DOMAINS + level - 1
    found: dict[int, list[tuple[int, int]]] = {}
    for slot in find_filled(prices, 2):
        domain = slot if level == Level.NODE else int(words[field + NODE_ROW * slot])
        found.setdefault(domain, []).append((prices[2 * slot + 1], slot))
    return found
