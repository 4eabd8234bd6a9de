"""What an admin says of overlays, and what the kernel makes of bad ones."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.event import DropOverlay, NodeSeen, SetFlavor, SetOverlay
from muster.model.node import Flavor, Traits
from muster.model.overlay import BUDGET_MAX, NETWORK, OVERLAYS_MAX, POWER, WATTS_MAX, Overlay
from muster.model.reason import DONE, Code, Refused
from muster.model.spec import Needs
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

FEED_A = Overlay(POWER, 12_000, labels=("feed=a",))


def row_of_nodes(count: int = 4, watts: int = 700, network: int = 0) -> Rig:
    """Nodes of 8 GPUs, by turns behind feed a and feed b."""
    rig = Rig()
    for number in range(count):
        labels = (("feed", "ab"[number % 2]),)
        rig.feed(NodeSeen(f"n{number}", Resources(8, 64_000, 2**38, 0, 0, network), traits=Traits(labels=labels)))
    rig.feed(SetFlavor("gpu", Flavor("gpu", watts=watts)))
    return rig


def code_of(rig: Rig, item: event.Event) -> Code | None:
    answer = rig.answer(item)
    return answer.reason.code if isinstance(answer, Refused) else None


def test_an_overlay_is_set_once_changed_and_removed() -> None:
    rig = row_of_nodes()
    assert rig.answer(SetOverlay("row", FEED_A, "admin")) == DONE
    assert rig.outcomes[-1].facts == [fact.OverlaySet("row", FEED_A, "admin")]
    assert rig.answer(SetOverlay("row", FEED_A, "admin")) == DONE
    assert rig.outcomes[-1].facts == [], "it is that already"
    assert rig.world.fleet.overlays.by_slot == {0: ("row",), 2: ("row",)}
    assert rig.answer(DropOverlay("row")) == DONE
    assert (rig.world.fleet.overlays.by_name, rig.world.fleet.overlays.by_slot) == ({}, {})
    check_world(rig.world)


def test_nodes_are_named_by_as_much_as_is_enough_and_kept_by_their_address() -> None:
    rig = row_of_nodes()
    assert code_of(rig, SetOverlay("row", Overlay(NETWORK, 1, ("n3", "n1", "n3")))) is None
    assert rig.world.fleet.overlays.by_name["row"].nodes == ("n1", "n3")


@pytest.mark.parametrize(
    ("name", "overlay", "code"),
    [
        ("", FEED_A, Code.BAD_NAME),
        ("no name", FEED_A, Code.BAD_NAME),
        ("row", Overlay("water", 1, ("n0",)), Code.UNKNOWN_RESOURCE),
        ("row", Overlay(POWER, -1, ("n0",)), Code.BAD_AMOUNT),
        ("row", Overlay(POWER, BUDGET_MAX + 1, ("n0",)), Code.BAD_AMOUNT),
        ("row", Overlay(POWER, 1), Code.EMPTY_OVERLAY),
        ("row", Overlay(POWER, 1, labels=("feed=c",)), Code.EMPTY_OVERLAY),
        ("row", Overlay(POWER, 1, ("n0", "n9")), Code.UNKNOWN_NODE),
        ("row", Overlay(POWER, 1, labels=("feed = a",)), Code.BAD_NAME),
        ("row", Overlay(POWER, 1, labels=tuple(f"l{number}" for number in range(65))), Code.TOO_LARGE),
        ("taken", Overlay(NETWORK, 1, ("n0",)), Code.OVERLAY_TAKEN),
    ],
)
def test_a_bad_overlay_is_refused_and_changes_nothing(name: str, overlay: Overlay, code: Code) -> None:
    rig = row_of_nodes()
    rig.feed(SetOverlay("taken", Overlay(POWER, 1, ("n0",))))
    before = digest(rig.world)
    assert code_of(rig, SetOverlay(name, overlay)) == code
    assert digest(rig.world) == before


def test_there_is_a_limit_to_overlays_and_to_watts() -> None:
    rig = row_of_nodes()
    for number in range(OVERLAYS_MAX):
        assert code_of(rig, SetOverlay(f"o{number}", FEED_A)) is None
    assert code_of(rig, SetOverlay("one-more", FEED_A)) == Code.TOO_LARGE
    assert code_of(rig, SetOverlay("o7", Overlay(POWER, 1, ("n0",)))) is None
    assert code_of(rig, DropOverlay("one-more")) == Code.UNKNOWN_OVERLAY
    for flavor in (Flavor("gpu", watts=-1), Flavor("gpu", watts=WATTS_MAX + 1), Flavor("gpu", core_watts=-1)):
        assert code_of(rig, SetFlavor("gpu", flavor)) == Code.BAD_AMOUNT


def test_a_budget_below_what_runs_kills_nobody_and_starts_nothing() -> None:
    rig = row_of_nodes()
    rig.feed(SetOverlay("row", FEED_A))
    behind = Needs(labels=("feed=a",))
    runs = [rig.submit(4, needs=behind) for _ in range(3)]
    rig.feed(SetOverlay("row", Overlay(POWER, 3_000, labels=("feed=a",))))
    assert rig.world.fleet.overlays.used["row"] == 3 * 4 * 700_000
    assert {rig.phase(job) for job in runs} == {"Starting"}
    waits = [rig.submit(1, needs=behind)]
    assert rig.phase(waits[0]) == "Queued", "nothing new starts behind it, though there is room"
    rig.feed(DropOverlay("row"))
    assert {rig.phase(job) for job in waits} == {"Starting"}
    check_world(rig.world)


def test_watts_that_change_count_at_once_for_what_runs() -> None:
    rig = row_of_nodes()
    rig.feed(SetOverlay("row", Overlay(POWER, 12_000, ("n0", "n1", "n2", "n3"))))
    job = rig.submit(8)
    rig.feed(SetFlavor("gpu", Flavor("gpu", watts=400, core_watts=10)))
    assert rig.world.fleet.overlays.used["row"] == 1000 * (8 * 400 + 10)
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    assert restore(snapshot(rig.world)).fleet.overlays.used == rig.world.fleet.overlays.used
    rig.start(job)
    rig.exit(job)
    assert rig.world.fleet.overlays.used["row"] == 0


def test_a_node_that_joins_with_the_label_is_behind_the_feed() -> None:
    rig = row_of_nodes(2)
    rig.feed(SetOverlay("row", Overlay(POWER, 700, labels=("feed=a",))))
    rig.feed(NodeSeen("n8", Resources(8, 64_000, 2**38), traits=Traits(labels=(("feed", "a"),))))
    assert rig.world.fleet.overlays.by_slot == {0: ("row",), 2: ("row",)}
    check_world(rig.world)
