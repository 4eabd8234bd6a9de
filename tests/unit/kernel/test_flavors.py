"""Flavors and traits: what an admin says of a kind of capacity, and what a node says of itself."""

from __future__ import annotations

import pytest

from muster.model.event import Held, NodeSeen, SetFlavor
from muster.model.node import Flavor, Level, Place, Traits
from muster.model.reason import DONE, Code, Refused
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.snapshot import digest, restore, snapshot

H100 = Traits("h100-80g", Place("eu", "alpha", "b1", "r1"), (("zone", "a"),), ("spot",))
NODE = Resources(8, 64_000, 2**39)


def test_a_flavor_that_nobody_named_is_a_family_of_its_own() -> None:
    rig = Rig(nodes=1)
    assert rig.world.flavor_of(0) == Flavor("gpu")
    rig.feed(NodeSeen("plain", Resources(cpu_milli=1000)), NodeSeen("fast", NODE, traits=H100))
    assert rig.world.flavor_of(1) == Flavor("cpu")
    assert rig.world.flavor_of(2) == Flavor("h100-80g")


def test_an_admin_says_what_a_flavor_is() -> None:
    rig = Rig(nodes=0)
    hopper = Flavor("hopper", 1000, 3_500_000)
    assert rig.answer(SetFlavor("h100-80g", hopper)) == DONE
    seq = rig.world.seq
    assert rig.answer(SetFlavor("h100-80g", hopper)) == DONE
    assert rig.world.seq == seq, "saying it twice changes nothing"
    rig.feed(NodeSeen("fast", NODE, traits=H100))
    assert rig.world.flavor_of(0) == hopper
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)


def test_what_a_flavor_counts_as_does_not_change_under_running_work() -> None:
    rig = Rig(nodes=1)
    rig.submit(gpus=1)
    answer = rig.answer(SetFlavor("gpu", Flavor("other")))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.FLAVOR_IN_USE
    assert answer.reason.needed == 1
    assert rig.answer(SetFlavor("gpu", Flavor("gpu", price_micros=5))) == DONE, "its price may change"


@pytest.mark.parametrize(
    ("name", "flavor", "code"),
    [
        ("", Flavor("x"), Code.BAD_NAME),
        ("x", Flavor("../x"), Code.BAD_NAME),
        ("x", Flavor("x", units=0), Code.BAD_AMOUNT),
        ("x", Flavor("x", price_micros=-1), Code.BAD_AMOUNT),
    ],
)
def test_a_bad_flavor_is_refused(name: str, flavor: Flavor, code: Code) -> None:
    rig = Rig(nodes=0)
    answer = rig.answer(SetFlavor(name, flavor))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert not rig.world.flavors


@pytest.mark.parametrize(
    ("traits", "code"),
    [
        (Traits(flavor="a b"), Code.BAD_NAME),
        (Traits(place=Place(rack="../r")), Code.BAD_NAME),
        (Traits(labels=(("b", "1"), ("a", "1"))), Code.BAD_SPEC),
        (Traits(labels=(("a", "1"), ("a", "2"))), Code.BAD_SPEC),
        (Traits(taints=("spot", "spot")), Code.BAD_SPEC),
        (Traits(labels=tuple((f"k{number:03d}", "v") for number in range(65))), Code.TOO_LARGE),
    ],
)
def test_a_node_with_bad_traits_does_not_join(traits: Traits, code: Code) -> None:
    rig = Rig(nodes=0)
    answer = rig.answer(NodeSeen("n", NODE, traits=traits))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert not len(rig.world.fleet)


def test_another_flavor_and_place_are_taken_over_once_nothing_runs_there() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(gpus=1)
    moved = Traits("h100-80g", Place(block="b1", rack="r1"), (("zone", "a"),))
    held = (Held(job, 1, 0, 1),)
    rig.feed(NodeSeen("node-0", rig.world.fleet.capacity(0), held, traits=moved))
    assert rig.world.fleet.traits[0] == Traits(labels=moved.labels)
    rig.exit(job)
    assert rig.world.fleet.traits[0] == moved


def test_two_racks_of_one_name_in_two_blocks_are_two() -> None:
    here, there = Place("eu", "alpha", "b1", "r1"), Place("eu", "alpha", "b2", "r1")
    assert here.path(Level.RACK) != there.path(Level.RACK)
    assert here.path(Level.CLUSTER) == there.path(Level.CLUSTER) == ("eu", "alpha")
