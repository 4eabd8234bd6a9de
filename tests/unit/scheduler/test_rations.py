"""Who starts behind a feed or an uplink: no more than its budget lets, and nobody is refused who could go elsewhere."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.errors import InvariantError
from muster.model.event import BarNode, NodeSeen, SetFlavor, SetOverlay, SetTier, Submit
from muster.model.group import Group
from muster.model.job import BarKind
from muster.model.node import Flavor, Place, Traits
from muster.model.overlay import NETWORK, POWER, SCALE, Overlay
from muster.model.reason import Code, Refused
from muster.model.sharing import Sharing
from muster.model.spec import Needs
from muster.model.tenant import GPU
from muster.model.tier import Tier
from muster.scheduler.placing.fit import count_room, find_gang, find_tasks, widest_room
from muster.scheduler.reasons import explain
from muster.simulator.inspector import check_nobody_overslept
from muster.testing.planted import PLANTED
from muster.testing.rig import Rig, spec
from muster.testing.scene import Scene
from muster.units import HOUR_MS, Resources
from muster.wire.words import put_in_words
from muster.world.fleet import Fleet
from muster.world.laws.invariants import check_world
from muster.world.overlays import put_overlay, rooms_of


def fleet_of(feeds: str, network: int = 0, gpus: int = 8) -> Rig:
    """A node of 8 GPUs of 700 W for each letter, behind that feed; two nodes are a rack."""
    rig = Rig()
    for number, feed in enumerate(feeds):
        traits = Traits(place=Place("eu", "alpha", "b0", f"r{number // 2}"), labels=(("feed", feed),))
        rig.feed(NodeSeen(f"n{number}", Resources(gpus, 64_000, 2**38, 0, 0, network), traits=traits))
    rig.feed(SetFlavor("gpu", Flavor("gpu", watts=700)))
    return rig


def feed(rig: Rig, letter: str, watts: int) -> None:
    rig.feed(SetOverlay(f"row-{letter}", Overlay(POWER, watts, labels=(f"feed={letter}",))))


def slots(rig: Rig, job: int) -> list[int]:
    return [lease.slot for lease in rig.run(job).leases]


def test_who_finds_no_budget_goes_behind_another_feed() -> None:
    rig = fleet_of("aabb")
    feed(rig, "a", 6_000)
    jobs = [rig.submit(8) for _ in range(4)]
    assert [slots(rig, job) for job in jobs[:3]] == [[0], [2], [3]], "row a has watts for one node, and b none to keep"
    assert rig.phase(jobs[3]) == "Queued"
    rig.start(jobs[0])
    rig.exit(jobs[0])
    assert slots(rig, jobs[3]) in ([0], [1]), "what is given back is anybody's, on whatever node"


def test_a_feed_that_wakes_nobody_is_found() -> None:
    """Two wait for power on one node: what came back would do for the other, on the node that was idle all along."""
    with PLANTED["feed_wakes_nobody"]():
        rig = fleet_of("aa")
        feed(rig, "a", 6_000)
        first, second = rig.submit(8), rig.submit(ask=Resources(8, 60_000, 2**30))
        rig.feed(BarNode("n0", BarKind.CORDON, "crew"))
        rig.start(first)
        rig.exit(first)
        assert rig.phase(second) == "Queued"
        with pytest.raises(InvariantError, match="nobody who could start is asleep"):
            check_nobody_overslept(rig.world)


def test_why_says_what_is_left_and_what_it_needs() -> None:
    rig = fleet_of("aaaa")
    feed(rig, "a", 12_000)
    rig.submit(8)
    waiting = explain(rig.world, rig.job(rig.submit(2, gang=5)))
    assert waiting is not None
    reason = waiting.reason
    assert (reason.code, reason.subject, reason.needed, reason.available) == (Code.OVERLAY_FULL, "row-a", 7_000, 6_400)
    assert put_in_words(reason).what == "waiting for budget: overlay row-a has 6,400 of 12,000 W left, this needs 7,000"


def test_who_never_fits_behind_a_feed_is_refused_with_the_numbers() -> None:
    rig = fleet_of("aaaa")
    feed(rig, "a", 12_000)
    answer = rig.answer(Submit(spec(8, gang=3)))
    assert isinstance(answer, Refused)
    reason = answer.reason
    found = (reason.code, reason.subject, reason.needed, reason.available)
    assert found == (Code.NEVER_WITHIN_OVERLAY, "row-a", 16_800, 12_000)


def test_a_gang_is_divided_among_feeds_of_which_none_has_room_for_all_of_it() -> None:
    rig = fleet_of("aabb")
    feed(rig, "a", 8_000)
    feed(rig, "b", 6_000)
    gang = rig.submit(8, gang=2)
    assert [slot // 2 for slot in slots(rig, gang)] == [0, 1], "one node behind each"
    check_world(rig.world)


def test_a_gang_starts_as_a_whole_or_not_at_all() -> None:
    rig = fleet_of("aabb")
    feed(rig, "a", 8_000)
    feed(rig, "b", 5_000)
    rig.feed(SetOverlay("roof", Overlay(NETWORK, 0, ("n0",))))
    answer = rig.answer(Submit(spec(8, gang=2)))
    assert isinstance(answer, Refused)
    assert rig.world.fleet.overlays.used == {"row-a": 0, "row-b": 0, "roof": 0}


def test_an_array_fills_what_the_budget_lets_it() -> None:
    rig = fleet_of("aab")
    feed(rig, "a", 7 * 700)
    array = rig.submit(1, array=30)
    held = rig.world.fleet.holders
    assert (held.get(0, {}).get(array, 0) + held.get(1, {}).get(array, 0), held[2][array]) == (7, 8)
    rig.exit(array, first=0, count=2)
    assert rig.world.arrays[array].counts[1] == 15, "as many start as ended"


def test_a_share_of_a_device_takes_its_share_of_the_watts() -> None:
    rig = fleet_of("a")
    feed(rig, "a", 1_000)
    ask = Resources(cpu_milli=1000, gpu_milli=250)
    jobs = [rig.submit(ask=ask) for _ in range(6)]
    assert [rig.phase(job) for job in jobs] == ["Starting"] * 5 + ["Queued"], "175 W each"


def test_an_uplink_counts_what_asks_say_of_the_network() -> None:
    rig = fleet_of("aabb", network=100_000)
    rig.feed(SetOverlay("uplink", Overlay(NETWORK, 50_000, labels=("feed=a",))))
    ask = Resources(1, 1000, 2**30, 0, 0, 20_000)
    jobs = [rig.submit(ask=ask, needs=Needs(labels=("feed=a",))) for _ in range(3)]
    assert [rig.phase(job) for job in jobs] == ["Starting", "Starting", "Queued"]
    quiet = rig.submit(1, needs=Needs(labels=("feed=a",)))
    assert rig.phase(quiet) == "Starting", "who needs no network is not kept from it"


def test_several_groups_count_as_one_gang() -> None:
    rig = fleet_of("ab")
    feed(rig, "a", 3_000)
    feed(rig, "b", 6_000)
    groups = (Group("driver", 1, Resources(0, 1000, 2**30)), Group("worker", 2, Resources(4, 1000, 2**30)))
    job = rig.submit(needs=Needs(groups=groups), gang=3, ask=Resources(cpu_milli=1000))
    assert set(slots(rig, job)) == {1}, "2 x 4 x 700 W"


def test_an_elastic_gang_grows_as_far_as_the_budget_goes() -> None:
    rig = fleet_of("aaaa")
    feed(rig, "a", 12_000)
    job = rig.submit(8, gang=1, gang_most=4)
    assert sum(lease.tasks for lease in rig.run(job).leases) == 2
    check_world(rig.world)


def test_who_is_stopped_for_somebody_gives_back_budget_too_and_nobody_else_gets_it() -> None:
    """The urgent one takes a node from the feed, and while its victim leaves, its watts are kept for it."""
    rig = fleet_of("aa")
    feed(rig, "a", 6_000)
    rig.feed(SetTier("urgent", Tier(10, HOUR_MS, emergency=True)))
    victim = rig.submit(8)
    rig.start(victim)
    urgent = rig.submit(8, tier="urgent")
    assert (rig.phase(victim), urgent in rig.world.claims) == ("Stopping", True)
    later = rig.submit(8)
    rig.exit(victim, code=143)
    assert (rig.phase(urgent), rig.phase(later), rig.phase(victim)) == ("Starting", "Queued", "Queued")
    check_world(rig.world)


def test_pools_are_parted_by_overlays_and_by_no_label_for_that() -> None:
    rig = fleet_of("abab")
    rig.submit(1)
    assert [pool.overlays for pool in rig.world.fleet.pools] == [()], "nobody mentions the label"
    feed(rig, "a", 9_000)
    rig.submit(1)
    assert [pool.overlays for pool in rig.world.fleet.pools] == [(), ("row-a",)]


NODES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(NODES, st.integers(1, 5), st.integers(1, 3), st.tuples(st.integers(0, 12), st.integers(0, 9)))
def test_a_gang_fits_if_and_only_if_some_division_does(
    nodes: list[tuple[int, int]], gang: int, gpus: int, budgets: tuple[int, int]
) -> None:
    """Against every division of the gang among the nodes: each node has so many of 3 GPUs free, and is behind the
    overlays that its bits say, one in watts and one of the network, which may cross."""
    rig = Rig()
    for number, (_, bits) in enumerate(nodes):
        labels = tuple((f"o{bit}", "y") for bit in range(2) if bits >> bit & 1)
        rig.feed(NodeSeen(f"n{number}", Resources(3, 64_000, 2**38, 0, 0, 100), traits=Traits(labels=labels)))
    rig.feed(SetFlavor("gpu", Flavor("gpu", watts=1)))
    for number, (taken, _) in enumerate(nodes):
        if taken:
            rig.world.fleet.occupy(number, 99, Resources(taken), 1, (1 << taken) - 1)
    for bit, resource in enumerate((POWER, NETWORK)):
        overlay = Overlay(resource, budgets[bit], labels=(f"o{bit}=y",))
        put_overlay(rig.world, f"o{bit}", overlay)
    fleet, ask = rig.world.fleet, Resources(gpus, 1000, 2**30, 0, 0, 2)
    rooms = rooms_of(fleet)
    free = [(3 - taken) // gpus for taken, _ in nodes]
    fits = any(
        sum(shares) == gang and _is_within(fleet, rooms, shares, gpus)
        for shares in product(*(range(min(gang, room) + 1) for room in free))
    )
    leases = find_gang(fleet, ask, gang)
    assert (leases is not None) == (widest_room(fleet, ask, gang) >= gang) == fits
    for found in (leases or [], find_tasks(fleet, ask, gang)):
        shares = tuple(sum(lease.tasks for lease in found if lease.slot == slot) for slot in range(len(nodes)))
        assert _is_within(fleet, rooms, shares, gpus)
    tasks = sum(lease.tasks for lease in find_tasks(fleet, ask, gang))
    assert tasks == count_room(fleet, ask, most=gang)
    assert bool(tasks) == (find_gang(fleet, ask, 1) is not None)


def _is_within(fleet: Fleet, rooms: dict[str, int], shares: tuple[int, ...], gpus: int) -> bool:
    """Whether so many tasks on each node, of so many GPUs and 2 Mbit/s, take no more than is left anywhere."""
    for name, left in rooms.items():
        each = SCALE[POWER] * gpus if fleet.overlays.by_name[name].resource == POWER else 2
        taken = sum(each * shares[slot] for slot, names in fleet.overlays.by_slot.items() if name in names)
        if taken and taken > left:
            return False
    return True


def two_flavors(watts: int) -> Scene:
    """A node that takes much power and two that take less, behind one feed."""
    scene = Scene().send(SetFlavor("fast", Flavor(GPU, watts=700))).send(SetFlavor("slow", Flavor(GPU, watts=400)))
    for name, flavor in (("n0", "fast"), ("n1", "slow"), ("n2", "slow")):
        scene.node(name, Resources(8, 64_000, 2**39), Traits(flavor))
    return scene.advance(seconds=1).send(SetOverlay("feed", Overlay(POWER, watts, nodes=("n0", "n1", "n2"))))


def test_an_owner_takes_back_what_fits_a_budget_on_the_flavor_that_it_likes_less() -> None:
    """Counted one by one, its tasks would use the budget up on the flavor that it likes best, where not all fit."""
    scene = two_flavors(16 * 400).share("owner", 16)
    for name in ("g1", "g2"):
        scene.job(name, gpus=8, tenant="guest", needs=Needs(flavors=("slow",)))
    scene.run().expect(running=("g1", "g2"))
    scene.job("mine", gpus=8, gang=2, tenant="owner", needs=Needs(flavors=("fast", "slow")))
    scene.advance(minutes=1).expect(running="mine", waiting=("g1", "g2"))


def test_a_turn_is_not_counted_out_by_a_flavor_that_takes_more_power() -> None:
    tier = Tier(200, HOUR_MS, sharing=Sharing(quantum_ms=HOUR_MS))
    scene = two_flavors(16 * 400).send(SetTier("turns", tier))
    scene.job("wide", gpus=8, gang=2, tier="turns", needs=Needs(flavors=("slow",))).run().expect(running="wide")
