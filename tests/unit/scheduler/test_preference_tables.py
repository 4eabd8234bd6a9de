"""Tables of preference: the fastest flavor for a kind of work, and the cluster nearest to its data."""

from __future__ import annotations

from typing import Any

import pytest

from muster.model import event
from muster.model.advice import DISTANCE, THROUGHPUT, Advice
from muster.model.node import Place, Traits
from muster.model.reason import Refused
from muster.model.spec import Needs
from muster.testing.rig import Rig, spec
from muster.units import HOUR_MS, Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot

SPEEDS: dict[str, tuple[int, ...]] = {
    "resnet:a100": (450,),
    "resnet:h100": (1000,),
    "bert:a100": (900,),
    "bert:h100": (800,),
}
NODES = (("a100", "eu", "a"), ("h100", "eu", "a"), ("a100", "us", "b"), ("h100", "us", "b"))


def make_rig() -> Rig:
    """Two clusters, each with a node of both flavors: slots 0 and 1 in eu/a, 2 and 3 in us/b."""
    rig = Rig()
    for number, (flavor, region, cluster) in enumerate(NODES):
        traits = Traits(flavor, Place(region, cluster))
        rig.feed(event.NodeSeen(f"n{number}", Resources(8, 32_000, 2**36), traits=traits))
    return rig


def advise(rig: Rig, kind: str, columns: dict[str, tuple[int, ...]], version: int = 1) -> None:
    rig.feed(event.Advise(kind, Advice(version, rig.now + HOUR_MS, columns)))


def slot_for(rig: Rig, gang: int = 1, **needs: Any) -> int:
    answer = rig.answer(event.Submit(spec(gang=gang, ask=Resources(1, 1000), needs=Needs(**needs))))
    assert not isinstance(answer, Refused), answer
    (slot,) = [slot for slot, here in rig.world.fleet.holders.items() if answer.job in here]
    return slot


@pytest.mark.parametrize(
    ("needs", "slot"),
    [
        ({"like": "resnet"}, 1),
        ({"like": "bert"}, 0),
        ({"like": "unheard-of"}, 0),
        ({"like": "resnet", "flavors": ("a100", "h100")}, 0),
        ({"like": "resnet", "flavors": ("a100", "h100"), "any_flavor": True}, 1),
        ({"data": ("images",)}, 2),
        ({"data": ("images", "corpus")}, 0),
        ({"data": ("unheard-of",)}, 0),
        ({"like": "resnet", "data": ("images",)}, 3),
        ({"data": ("images",), "within": "region"}, 0),
    ],
)
def test_pools_are_preferred_by_order_then_speed_then_distance(needs: dict[str, Any], slot: int) -> None:
    rig = make_rig()
    advise(rig, THROUGHPUT, SPEEDS)
    advise(rig, DISTANCE, {"images:us/b": (10,), "images:eu/a": (90,), "corpus:eu/a": (0,), "corpus:us/b": (500,)})
    assert slot_for(rig, **needs) == slot
    assert slot_for(rig, gang=2, **needs) == slot
    check_world(rig.world)


def test_what_a_table_does_not_say_is_the_farthest_it_says() -> None:
    rig = make_rig()
    advise(rig, DISTANCE, {"images:us/b": (7,)})
    assert slot_for(rig, data=("images",)) == 0, "eu/a counts as 7 too, and comes first"
    advise(rig, DISTANCE, {"images:us/b": (7,), "images:asia/z": (8,)}, version=2)
    assert slot_for(rig, data=("images",)) == 2


def test_nothing_is_ruled_out_by_a_table() -> None:
    rig = make_rig()
    advise(rig, THROUGHPUT, SPEEDS)
    assert [slot_for(rig, like="resnet") for _ in range(32)] == [1] * 8 + [3] * 8 + [0] * 8 + [2] * 8


def test_tables_survive_a_restore_and_a_fork_and_end_in_time() -> None:
    rig = make_rig()
    advise(rig, THROUGHPUT, SPEEDS)
    assert rig.world.fleet.tables.speeds == SPEEDS
    for twin in (restore(snapshot(rig.world)), rig.world.fork()):
        assert twin.fleet.tables == rig.world.fleet.tables
    rig.feed(after_ms=HOUR_MS)
    assert slot_for(rig, like="resnet") == 0
