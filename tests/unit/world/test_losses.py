"""Losses: points by day, weighted by age when they are read; risks in few steps; nothing stored decays."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.job import NodePhase
from muster.model.node import Lack
from muster.model.spec import ANYWHERE
from muster.scheduler.placing.fit import find_gang
from muster.testing.rig import Rig
from muster.units import DAY_MS, Resources
from muster.world.apply import apply
from muster.world.fleet import Fleet
from muster.world.losses import DAYS_KEPT, WEIGHTS, Losses, points_of, risk_of
from muster.world.snapshot import digest, restore, snapshot

UP, UNKNOWN, GONE = NodePhase
TODAY = 20_000


def test_a_point_weighs_half_after_a_week_and_nothing_after_ten() -> None:
    assert [WEIGHTS[age] for age in (0, 7, 14, 70)] == [2**20, 2**19, 2**18, 2**10]
    assert risk_of(((TODAY - DAYS_KEPT - 1, 10**9),), TODAY) == 0


@pytest.mark.parametrize(
    ("before", "after", "points"),
    [(UP, UNKNOWN, 1), (UP, GONE, 2), (UNKNOWN, GONE, 1), (UNKNOWN, UP, 0), (GONE, UP, 0)],
)
def test_a_fence_counts_as_much_after_a_silence_as_without(before: NodePhase, after: NodePhase, points: int) -> None:
    assert points_of(before, after) == points


def test_once_is_bad_luck_and_twice_in_a_week_is_a_risk() -> None:
    once, twice = ((TODAY, 2),), ((TODAY - 1, 2), (TODAY, 2))
    assert [risk_of(days, TODAY) for days in (once, twice, ((TODAY, 6),))] == [0, 1, 2]
    assert risk_of(twice, TODAY + 7) == 0, "two weeks later it is forgiven"


def test_risks_are_settled_when_a_day_turns_or_something_was_lost() -> None:
    losses = Losses()
    losses.note(3, 6, TODAY * DAY_MS)
    assert losses.settle(TODAY * DAY_MS)
    assert losses.risks == {3: 2}
    assert not losses.settle(TODAY * DAY_MS + 5)
    assert losses.settle((TODAY + 7) * DAY_MS)
    assert losses.risks == {3: 1}
    assert losses.by_slot == {3: ((TODAY, 6),)}, "nothing stored decays"
    assert losses.count(3, (TODAY + DAYS_KEPT) * DAY_MS) == 6
    assert losses.kept((TODAY + DAYS_KEPT + 1) * DAY_MS) == []


def lose(rig: Rig, name: str, times: int) -> None:
    """A node is fenced and comes back, so many times."""
    for _ in range(times):
        rig.feed(event.NodeGone(name))
        rig.feed(event.NodeSeen(name, rig.world.fleet.capacities[rig.world.fleet.slot_of[name]]))


def test_facts_about_nodes_are_losses_and_survive_a_restore() -> None:
    rig = Rig(nodes=3)
    name = rig.world.fleet.names[1]
    lose(rig, name, 2)
    rig.feed(event.NodeSilent(name))
    twin, fork = restore(snapshot(rig.world)), rig.world.fork()
    for world in (rig.world, twin, fork):
        assert world.fleet.losses.count(1, rig.now) == 5
        world.fleet.settle_risks(rig.now)
        assert world.fleet.losses.risks == {1: 1}
    assert digest(twin) == digest(rig.world)


def test_devices_that_are_lost_count_once() -> None:
    rig = Rig(nodes=1)
    world, whole = rig.world, rig.world.fleet.capacities[0]
    lack = Lack(0b11, Resources(gpus=2))
    for item in (fact.NodeLacks(0, lack), fact.NodeLacks(0, lack), fact.NodeLacks(0, Lack(0b01, Resources(gpus=1)))):
        apply(world, item, rig.now)
    assert world.fleet.losses.count(0, rig.now) == 2
    smaller = Resources(whole.gpus - 1, whole.cpu_milli, whole.memory_bytes)
    apply(world, fact.NodeJoined(0, world.fleet.names[0], smaller), rig.now)
    assert world.fleet.losses.count(0, rig.now) == 2, "the one it lacked already"
    smaller = Resources(whole.gpus - 2, whole.cpu_milli, whole.memory_bytes)
    apply(world, fact.NodeJoined(0, world.fleet.names[0], smaller), rig.now)
    assert world.fleet.losses.count(0, rig.now) == 4


def make_fleet() -> Fleet:
    """Node 0 is of risk 1, the others are steady."""
    fleet = Fleet()
    for slot in range(5):
        fleet.join(slot, f"n{slot}", Resources(8, 64_000, 2**36))
    fleet.losses.note(0, 4, TODAY * DAY_MS)
    fleet.settle_risks(TODAY * DAY_MS)
    return fleet


def test_one_task_goes_to_the_steadier_of_two_that_are_filled_alike() -> None:
    found = find_gang(make_fleet(), Resources(1, 1000, 1), 1)
    assert found is not None
    assert found[0].slot == 1


def test_a_large_gang_keeps_off_a_risk_and_a_small_one_does_not() -> None:
    fleet, node = make_fleet(), Resources(8, 1000, 1)
    slots = {gang: find_gang(fleet, node, gang, ANYWHERE) for gang in (2, 4, 5)}
    assert {gang: [lease.slot for lease in leases or ()] for gang, leases in slots.items()} == {
        2: [0, 1],
        4: [1, 2, 3, 4],
        5: [0, 1, 2, 3, 4],
    }, "and if it fits nowhere else, it takes what there is"


def test_an_index_that_was_not_laid_out_anew_is_found() -> None:
    fleet = make_fleet()
    assert len(fleet.words)
    assert fleet.find_index_fault() is None
    fleet.losses.note(1, 6, TODAY * DAY_MS)
    assert fleet.losses.settle(TODAY * DAY_MS)
    assert fleet.find_index_fault() is not None, "its pools are those of other risks"
