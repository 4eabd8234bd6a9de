"""Many places at once are what they would be one after the other."""

from __future__ import annotations

import random

import pytest

from muster.model.errors import InvariantError
from muster.model.job import NodePhase
from muster.model.phase import Lease
from muster.units import Resources
from muster.world.fleet import Fleet
from muster.world.seating import occupy_all, show_all, show_if_room, vacate_all

NODE = Resources(4, 8_000, 1 << 30)
ASK = Resources(1, 1_000, 1 << 20)
SHARE = Resources(0, 1_000, 1 << 20, 250)


def make_fleet(nodes: int = 8) -> Fleet:
    fleet = Fleet()
    for slot in range(nodes):
        fleet.join(slot, f"n{slot}", NODE)
    return fleet


def state_of(fleet: Fleet) -> tuple[object, ...]:
    assert fleet.find_index_fault() is None
    return *free_of(fleet), fleet.holders


def free_of(fleet: Fleet) -> tuple[object, object]:
    return [fleet.free(slot) for slot in range(8)], [fleet.devices(slot) for slot in range(8)]


def random_leases(dice: random.Random, ask: Resources) -> list[Lease]:
    counts = [dice.randrange(1, 5) for _ in range(8)]
    slots = dice.sample(range(8), dice.randrange(4, 9))
    return [Lease(slot, counts[slot], (1 << counts[slot]) - 1 if ask.gpus else 1 << slot % 4) for slot in slots]


@pytest.mark.parametrize("ask", [ASK, SHARE])
@pytest.mark.parametrize("seed", range(5))
def test_many_at_once_are_what_one_after_the_other_is(ask: Resources, seed: int) -> None:
    dice = random.Random(seed)
    together, singly = make_fleet(), make_fleet()
    leases = random_leases(dice, ask)
    occupy_all(together, 7, ask, leases)
    for lease in leases:
        singly.occupy(lease.slot, 7, ask, lease.tasks, lease.devices)
    assert state_of(together) == state_of(singly)
    some = leases[: len(leases) // 2 + 1]
    vacate_all(together, 7, ask, some)
    for lease in some:
        singly.vacate(lease.slot, 7, ask, lease.tasks, lease.devices)
    assert state_of(together) == state_of(singly)
    vacate_all(together, 7, ask, leases[len(some) :])
    assert state_of(together) == state_of(make_fleet())


@pytest.mark.parametrize(
    "wrong",
    [Lease(3, 2, 0b1), Lease(3, 5, 0b1111), Lease(0, 1, 0b1), Lease(3, 1, 0b10000)],
    ids=["too few devices", "too many tasks", "a device twice", "no such device"],
)
def test_what_does_not_fit_is_found_among_many(wrong: Lease) -> None:
    fleet = make_fleet()
    with pytest.raises(InvariantError, match="allocations fit their node"):
        occupy_all(fleet, 7, ASK, [*(Lease(slot, 1, 0b1) for slot in range(3)), wrong])


def test_what_is_not_held_is_not_given_back_by_many() -> None:
    fleet = make_fleet()
    leases = [Lease(slot, 1, 0b1) for slot in range(6)]
    occupy_all(fleet, 7, ASK, leases)
    with pytest.raises(InvariantError, match="only what is held is given back"):
        vacate_all(fleet, 8, ASK, leases)


def test_many_leave_a_fleet_that_is_to_be_laid_out_anew() -> None:
    fleet = make_fleet()
    leases = [Lease(slot, 1, 0b1) for slot in range(6)]
    occupy_all(fleet, 7, ASK, leases)
    fleet.join(8, "n8", NODE)
    vacate_all(fleet, 7, ASK, leases)
    assert state_of(fleet) == state_of(make_fleet())


@pytest.mark.parametrize("ask", [ASK, SHARE])
@pytest.mark.parametrize("seed", range(3))
def test_many_are_shown_as_one_after_the_other_is(ask: Resources, seed: int) -> None:
    together, singly = make_fleet(), make_fleet()
    leases = random_leases(random.Random(seed), ask)
    show_all(together, ask, leases, 1)
    for lease in leases:
        singly.show(lease.slot, ask, lease.tasks, lease.devices)
    assert free_of(together) == free_of(singly)
    show_all(together, ask, leases, -1)
    assert state_of(together) == state_of(make_fleet())


def test_nothing_is_shown_if_one_of_many_has_no_room() -> None:
    fleet = make_fleet()
    assert not show_if_room(fleet, ASK, [Lease(0, 1, 0b1), Lease(1, 2, 0b11), Lease(1, 1, 0b10)])
    assert state_of(fleet) == state_of(make_fleet())
    with pytest.raises(InvariantError, match="what is shown is taken back"):
        show_all(fleet, ASK, [Lease(0, 1, 0b1), Lease(0, 1, 0b1)], 1)


def test_nobody_is_shown_on_a_node_that_is_closed() -> None:
    fleet = make_fleet()
    fleet.set_phase(1, NodePhase.GONE)
    assert not show_if_room(fleet, ASK, [Lease(0, 1, 0b1), Lease(1, 1, 0b1)])
    assert show_if_room(fleet, ASK, [Lease(0, 1, 0b1)])
