"""A pool of several zones is searched as exactly as the small fleets of the property tests, which have one region."""

from __future__ import annotations

import random

from muster.model.spec import ANYWHERE
from muster.scheduler.placing.fit import count_room, find_gang, find_tasks, query_of
from muster.scheduler.placing.query import POOL_ROWS
from muster.scheduler.placing.single import fits
from muster.scheduler.placing.terms import score_at
from muster.units import Resources
from muster.world.arena import PLANE, ZONE
from muster.world.fleet import Fleet
from muster.world.index import cell_at

NODES = ZONE + 700
NODE = Resources(4, 64, 64)
ASKS = [Resources(1, 16, 8), Resources(2, 8, 40), Resources(0, 30, 30), Resources(4, 50, 50), Resources(0, 5, 5, 300)]


def make_fleet() -> Fleet:
    """Nearly full, so that the first node that fits is anywhere: CPU or memory strands devices on most nodes."""
    fleet, dice = Fleet(), random.Random(7)
    for slot in range(NODES):
        fleet.join(slot, f"n{slot}", NODE)
    for slot in range(NODES):
        taken = dice.randrange(5) if slot % 1000 > 3 else 0
        cpu, memory = (dice.randrange(50, 65), dice.randrange(50, 65)) if taken else (0, 0)
        if taken:
            fleet.occupy(slot, 1, Resources(taken, cpu, memory), 1, (1 << taken) - 1)
    return fleet


def best_of_all(fleet: Fleet, ask: Resources) -> int | None:
    """The highest score, then the lowest slot, by looking at every node."""
    words, query = fleet.words, query_of(fleet, ask, 1, ANYWHERE)
    best: tuple[int, int] | None = None
    for slot in range(NODES):
        if fits(words, query, slot):
            cell = cell_at(words, slot)
            key = (-score_at(words, query, POOL_ROWS, cell // PLANE, cell % PLANE), slot)
            best = key if best is None else min(best, key)
    return None if best is None else best[1]


def test_in_a_pool_of_two_zones_nothing_that_fits_is_skipped() -> None:
    fleet, dice = make_fleet(), random.Random(11)
    held: list[tuple[int, int, Resources, int]] = []
    for job in range(2, 62):
        ask = dice.choice(ASKS)
        wanted, leases = best_of_all(fleet, ask), find_gang(fleet, ask, 1)
        assert (leases[0].slot if leases else None) == wanted
        if leases:
            fleet.occupy(leases[0].slot, job, ask, 1, leases[0].devices)
            held.append((leases[0].slot, job, ask, leases[0].devices))
        if held and dice.random() < 0.4:
            slot, other, old, devices = held.pop(dice.randrange(len(held)))
            fleet.vacate(slot, other, old, 1, devices)
    assert fleet.find_index_fault() is None


def test_tasks_of_an_array_find_all_the_room_of_two_zones() -> None:
    fleet = make_fleet()
    for ask in ASKS:
        room = count_room(fleet, ask)
        assert sum(lease.tasks for lease in find_tasks(fleet, ask, 1 << 20)) == room > 0
    assert fleet.find_index_fault() is None
