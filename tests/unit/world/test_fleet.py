"""The fleet gives what it has and takes back what is held; anything else is a bug of ours."""

from __future__ import annotations

import pytest

from muster.model.errors import InvariantError
from muster.model.job import Bar, BarKind, NodePhase
from muster.model.node import DEVICES_MAX, Lack, Traits
from muster.model.phase import Lease
from muster.units import Resources
from muster.world.fleet import Fleet, FreeVector
from muster.world.seating import occupy_all, vacate_all

NODE = Resources(4, 4000, 400)
ASK = Resources(2, 1000, 100)
CORDON = Bar(BarKind.CORDON, "me", "disk", 5)


def fleet_of(count: int = 2) -> Fleet:
    fleet = Fleet()
    for slot in range(count):
        fleet.join(slot, f"n{slot}", NODE)
    return fleet


def found(fleet: Fleet) -> dict[int, FreeVector]:
    """What new work could have, by slot; and the index is in order."""
    assert fleet.find_index_fault() is None
    vectors = {slot: fleet.find_free(slot) for slot in range(len(fleet))}
    return {slot: vector for slot, vector in vectors.items() if vector is not None}


def test_a_node_is_found_by_what_it_has_free() -> None:
    fleet = fleet_of()
    assert found(fleet) == {0: (4, 4000, 400), 1: (4, 4000, 400)}
    fleet.occupy(1, 7, ASK, 1, 0b11)
    assert found(fleet) == {0: (4, 4000, 400), 1: (2, 3000, 300)}
    assert fleet.holders == {1: {7: 1}}
    fleet.vacate(1, 7, ASK, 1, 0b11)
    assert found(fleet) == {0: (4, 4000, 400), 1: (4, 4000, 400)}
    assert fleet.is_idle(1)


@pytest.mark.parametrize(
    ("ask", "tasks", "devices"),
    [
        (ASK, 3, 0b111111),
        (ASK, 1, 0b1),
        (ASK, 1, 0b110000),
        (Resources(cpu_milli=4001), 1, 0),
        (Resources(memory_bytes=401), 1, 0),
        (Resources(cpu_milli=1), 1, 0b1),
    ],
)
def test_what_does_not_fit_is_a_bug_and_changes_nothing(ask: Resources, tasks: int, devices: int) -> None:
    fleet = fleet_of()
    with pytest.raises(InvariantError):
        fleet.occupy(0, 7, ask, tasks, devices)
    assert found(fleet) == {0: (4, 4000, 400), 1: (4, 4000, 400)}
    assert fleet.holders == {}


def test_a_device_is_given_once() -> None:
    fleet = fleet_of()
    fleet.occupy(0, 7, ASK, 1, 0b0011)
    with pytest.raises(InvariantError):
        fleet.occupy(0, 8, ASK, 1, 0b0110)


def test_only_what_is_held_is_given_back() -> None:
    fleet = fleet_of()
    fleet.occupy(0, 7, ASK, 1, 0b0011)
    with pytest.raises(InvariantError):
        fleet.vacate(0, 8, ASK, 1, 0b0011)
    with pytest.raises(InvariantError):
        fleet.vacate(0, 7, ASK, 2, 0b0011)
    with pytest.raises(InvariantError):
        fleet.vacate(0, 7, ASK, 1, 0b1100)


def test_a_node_that_is_not_up_is_not_found_and_comes_back_as_it_is() -> None:
    fleet = fleet_of(1)
    fleet.occupy(0, 7, ASK, 1, 0b0011)
    fleet.set_phase(0, NodePhase.UNKNOWN)
    assert found(fleet) == {}
    fleet.vacate(0, 7, ASK, 1, 0b0011)
    fleet.set_phase(0, NodePhase.UP)
    assert found(fleet) == {0: (4, 4000, 400)}


def test_a_barred_node_is_not_found_until_its_last_bar_is_lifted() -> None:
    fleet = fleet_of(1)
    fleet.bar(0, CORDON)
    fleet.bar(0, Bar(BarKind.DRAIN, "me", "", 5))
    assert found(fleet) == {}
    fleet.occupy(0, 7, ASK, 1, 0b0011)
    fleet.unbar(0, BarKind.CORDON, "me")
    assert not fleet.is_open(0)
    assert found(fleet) == {}
    fleet.unbar(0, BarKind.DRAIN, "me")
    assert found(fleet) == {0: (2, 3000, 300)}
    assert fleet.bars == {}


def test_a_node_needs_both_to_be_up_and_to_be_unbarred() -> None:
    fleet = fleet_of(1)
    fleet.set_phase(0, NodePhase.UNKNOWN)
    fleet.bar(0, CORDON)
    fleet.set_phase(0, NodePhase.UP)
    assert found(fleet) == {}
    fleet.set_phase(0, NodePhase.GONE)
    fleet.unbar(0, BarKind.CORDON, "me")
    assert found(fleet) == {}
    fleet.set_phase(0, NodePhase.UP)
    assert found(fleet) == {0: (4, 4000, 400)}


def test_only_a_bar_that_stands_is_lifted() -> None:
    fleet = fleet_of(1)
    fleet.bar(0, CORDON)
    with pytest.raises(InvariantError):
        fleet.unbar(0, BarKind.CORDON, "you")


def test_a_slot_belongs_to_one_node_for_ever() -> None:
    fleet = fleet_of()
    with pytest.raises(InvariantError):
        fleet.join(0, "other", NODE)
    fleet.join(0, "n0", Resources(1))
    assert fleet.capacity(0) == Resources(1)
    assert fleet.kinds() == {NODE: 1, Resources(1): 1}
    fleet.occupy(1, 7, ASK, 1, 0b11)
    with pytest.raises(InvariantError):
        fleet.join(1, "n1", NODE)


def test_the_widest_node_uses_every_device() -> None:
    fleet = Fleet()
    fleet.join(0, "wide", Resources(DEVICES_MAX))
    fleet.occupy(0, 1, Resources(DEVICES_MAX), 1, 2**DEVICES_MAX - 1)
    assert fleet.find_free(0) == (0, 0, 0)


def test_a_fork_is_independent() -> None:
    fleet = fleet_of()
    twin = fleet.fork()
    twin.occupy(0, 7, ASK, 1, 0b11)
    twin.join(2, "n2", NODE)
    twin.bar(1, CORDON)
    assert found(fleet) == {0: (4, 4000, 400), 1: (4, 4000, 400)}
    assert len(fleet) == 2
    assert fleet.holders == {}
    assert fleet.bars == {}


def test_shares_of_a_device_add_up_to_one() -> None:
    fleet, half = fleet_of(1), Resources(gpu_milli=500)
    fleet.occupy(0, 7, half, 1, 0b0001)
    assert (fleet.devices(0), fleet.free(0).gpus, fleet.free(0).gpu_milli) == ([500, 1000, 1000, 1000], 3, 500)
    fleet.occupy(0, 8, half, 1, 0b0001)
    with pytest.raises(InvariantError):
        fleet.occupy(0, 9, half, 1, 0b0001)
    with pytest.raises(InvariantError):
        fleet.occupy(0, 9, ASK, 1, 0b0011)
    fleet.vacate(0, 7, half, 1, 0b0001)
    fleet.vacate(0, 8, half, 1, 0b0001)
    assert found(fleet) == {0: (4, 4000, 400)}


def test_disk_and_network_are_amounts_like_any_other() -> None:
    fleet = Fleet()
    fleet.join(0, "n0", Resources(0, 1000, 100, disk_bytes=50, network_mbps=10))
    fleet.occupy(0, 7, Resources(disk_bytes=30, network_mbps=10), 1, 0)
    with pytest.raises(InvariantError):
        fleet.occupy(0, 8, Resources(network_mbps=1), 1, 0)
    with pytest.raises(InvariantError):
        fleet.occupy(0, 8, Resources(disk_bytes=21), 1, 0)
    assert fleet.free(0).disk_bytes == 20


def test_nodes_that_differ_in_a_mentioned_label_are_two_pools_and_nobody_moves() -> None:
    fleet = Fleet()
    for slot, zone in enumerate("abb"):
        fleet.join(slot, f"n{slot}", NODE, Traits(labels=(("host", f"n{slot}"), ("zone", zone))))
    fleet.occupy(1, 7, ASK, 1, 0b11)
    assert found(fleet)
    assert len(fleet.pools) == 1
    fleet.mention(frozenset({"zone"}))
    assert found(fleet)[1] == (2, 3000, 300)
    assert [dict(pool.labels) for pool in fleet.pools] == [{"zone": "a"}, {"zone": "b"}]


def test_what_is_lacking_and_claimed_is_kept_back_once_when_the_fleet_is_laid_out_anew() -> None:
    fleet = Fleet()
    fleet.join(0, "n0", Resources(4, 8000, 80))
    fleet.set_lack(0, Lack(0b0001, Resources(1, 1000, 0)))
    fleet.set_claimed(0, Lack(0b0010, Resources(0, 2000, 0)))
    free = fleet.find_free(0)
    fleet.mention(frozenset({"zone"}))
    assert fleet.find_free(0) == free
    assert fleet.find_index_fault() is None


def test_many_leave_a_fleet_that_is_to_be_laid_out_anew() -> None:
    fleet, ask = Fleet(), Resources(gpus=1)
    fleet.join(0, "a", Resources(gpus=8))
    leases = [Lease(0, 1, 1 << device) for device in range(5)]
    occupy_all(fleet, 1, ask, leases)
    fleet.mention(frozenset({"zone"}))
    vacate_all(fleet, 1, ask, leases)
    assert (fleet.free(0).gpus, fleet.holders) == (8, {})
