"""What nodes say of themselves and cannot be, or cannot be at once: taken wholly, refused with a code, or put aside."""

from __future__ import annotations

from typing import Any

import pytest

from muster.model import event, fact
from muster.model.instruction import Start, Stop
from muster.model.job import MUSTER, BarKind
from muster.model.node import NO_LACK, Lack, Place, Traits
from muster.model.overlay import Overlay
from muster.model.phase import Stopping, TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.model.spec import Needs
from muster.testing.rig import Rig, spec
from muster.units import Resources
from muster.world.laws.invariants import check_world
from muster.world.sightings import is_quarantined
from muster.world.snapshot import digest, restore, snapshot

NODE = Resources(4, 64_000, 2**38)
ALPHA, BETA = Traits(place=Place("eu", "alpha")), Traits(place=Place("eu", "beta"))


def seen(name: str, devices: str = "", *held: event.Held, **fields: Any) -> event.NodeSeen:
    """A node that calls its devices by single letters."""
    capacity = fields.pop("capacity", Resources(len(devices) or 4, 64_000, 2**38))
    return event.NodeSeen(name, capacity, held, devices=tuple(devices), **fields)


def code_of(answer: Done | Refused) -> Code | None:
    return answer.reason.code if isinstance(answer, Refused) else None


def sound(rig: Rig) -> None:
    """Every law holds, here and in a restored world."""
    check_world(rig.world)
    twin = restore(snapshot(rig.world))
    assert digest(twin) == digest(rig.world)
    check_world(twin)


# -- names ---------------------------------------------------------------------------------------------------------


def test_two_clusters_may_both_have_a_node_of_one_name() -> None:
    rig = Rig()
    rig.feed(seen("node-1", traits=ALPHA), seen("node-1", traits=BETA))
    assert rig.world.fleet.addresses == ["eu/alpha/node-1", "eu/beta/node-1"]
    first, second = rig.submit(4), rig.submit(4)
    starts = [item for outcome in rig.outcomes for item in outcome.instructions if isinstance(item, Start)]
    assert [start.nodes for start in starts] == [["eu/alpha/node-1"], ["eu/beta/node-1"]]
    rig.feed(event.NodeGone("eu/beta/node-1"))
    assert (rig.phase(first), rig.phase(second)) == ("Starting", "Queued"), "only one of them lost its work"
    sound(rig)


def test_an_address_is_shown_where_a_name_would_not_do() -> None:
    rig = Rig()
    rig.feed(seen("node-1", traits=ALPHA), seen("node-2", traits=BETA))
    assert rig.world.fleet.shown() == ["node-1", "node-2"]
    rig.feed(seen("node-1", traits=BETA))
    assert rig.world.fleet.shown() == ["eu/alpha/node-1", "node-2", "eu/beta/node-1"]


def test_a_report_from_another_cluster_takes_nothing_over() -> None:
    rig = Rig()
    rig.feed(seen("node-1", traits=ALPHA))
    job = rig.submit(1)
    rig.start(job)
    rig.feed(seen("node-1", traits=BETA))
    assert rig.phase(job) == "Running"
    assert len(rig.world.fleet) == 2


def test_a_name_that_means_two_nodes_is_refused_and_its_address_is_not() -> None:
    rig = Rig()
    rig.feed(seen("node-1", traits=ALPHA), seen("node-1", traits=BETA), seen("node-2", traits=BETA))

    def bar(name: str) -> Done | Refused:
        return rig.answer(event.BarNode(name, BarKind.CORDON, "me"))

    answer = bar("node-1")
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.AMBIGUOUS_NODE
    assert answer.reason.detail == "eu/alpha/node-1, eu/beta/node-1"
    assert rig.world.fleet.bars == {}
    assert [code_of(bar(name)) for name in ("beta/node-1", "eu/alpha/node-1", "node-2", "1")] == [
        None,
        None,
        None,
        Code.UNKNOWN_NODE,
    ]
    assert sorted(rig.world.fleet.bars) == [0, 1, 2]
    assert code_of(rig.answer(event.UnbarNode("node-1", BarKind.CORDON, "me"))) == Code.AMBIGUOUS_NODE


def test_an_engine_names_a_node_by_its_whole_address() -> None:
    rig = Rig()
    rig.feed(seen("node-1", traits=ALPHA))
    assert code_of(rig.answer(event.NodeGone("node-1"))) == Code.UNKNOWN_NODE
    assert code_of(rig.answer(event.NodeSilent("alpha/node-1"))) == Code.UNKNOWN_NODE


def test_two_places_that_read_alike_are_not_one() -> None:
    rig = Rig()
    rig.feed(seen("node-1", traits=ALPHA))
    assert code_of(rig.answer(seen("eu/alpha/node-1"))) == Code.NODE_TAKEN
    assert code_of(rig.answer(seen("alpha/node-1", traits=Traits(place=Place("eu"))))) == Code.NODE_TAKEN
    for place in (Place("eu/alpha"), Place("eu", "a/b")):
        assert code_of(rig.answer(seen("n", traits=Traits(place=place)))) == Code.BAD_NAME
    assert len(rig.world.fleet) == 1


# -- devices -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (seen("n", "aab"), Code.BAD_SPEC),
        (seen("n", "ab", capacity=NODE), Code.BAD_SPEC),
        (event.NodeSeen("n", Resources(1, 1), devices=("no good",)), Code.BAD_NAME),
        (event.NodeSeen("n", Resources(1, 1), devices=("x" * 129,)), Code.BAD_NAME),
        (event.NodeSeen("n", Resources(0, 1), devices=("x",)), Code.BAD_SPEC),
        (seen("n", traits=Traits(labels=(("k" * 129, "v"),))), Code.BAD_NAME),
        (seen("n", traits=Traits(labels=(("k", "v" * 129),))), Code.BAD_NAME),
        (seen("n", traits=Traits(taints=tuple(f"t{at:02d}" for at in range(17)))), Code.TOO_LARGE),
    ],
)
def test_devices_and_labels_that_make_no_sense_are_refused(item: event.NodeSeen, code: Code) -> None:
    rig = Rig()
    assert code_of(rig.answer(item)) == code
    assert not len(rig.world.fleet)


def test_a_device_that_another_node_has_puts_the_second_one_in_quarantine() -> None:
    rig = Rig()
    rig.feed(seen("first", "abcd"))
    rig.feed(seen("second", "defg"))
    (bar,) = rig.world.fleet.bars[1]
    assert (bar.kind, bar.owner) == (BarKind.QUARANTINE, MUSTER)
    assert bar.reason == "M127: device d is in node first too"
    jobs = [rig.submit(4), rig.submit(4)]
    assert [rig.phase(job) for job in jobs] == ["Starting", "Queued"]
    sound(rig)


@pytest.mark.parametrize(
    "relief",
    [
        seen("second", "efgh"),
        event.NodeGone("first"),
        seen("first", "abc"),
    ],
    ids=["the second without it", "the first gone", "the first without it"],
)
def test_a_quarantine_ends_when_one_of_the_two_lets_go(relief: event.Event) -> None:
    rig = Rig()
    rig.feed(seen("first", "abcd"), seen("second", "defg"))
    waiting = [rig.submit(4), rig.submit(4)]
    rig.exit(waiting[0])
    rig.feed(relief)
    assert not is_quarantined(rig.world.fleet, 1)
    sound(rig)


def test_a_silent_node_keeps_its_devices_and_a_gone_one_does_not() -> None:
    rig = Rig()
    rig.feed(seen("first", "abcd"), event.NodeSilent("first"), seen("second", "abcd"))
    assert is_quarantined(rig.world.fleet, 1)
    rig.feed(event.NodeGone("first"))
    assert not is_quarantined(rig.world.fleet, 1)
    rig.feed(seen("first", "abcd"))
    assert is_quarantined(rig.world.fleet, 0), "now the other one has them"
    sound(rig)


def test_of_two_in_quarantine_for_one_device_only_one_comes_free() -> None:
    rig = Rig()
    rig.feed(seen("first", "ab"), seen("second", "bc"), seen("third", "bd"))
    rig.feed(event.NodeGone("first"))
    assert [is_quarantined(rig.world.fleet, slot) for slot in range(3)] == [False, False, True]
    sound(rig)


def test_nobody_but_muster_lifts_its_quarantine() -> None:
    rig = Rig()
    rig.feed(seen("first", "ab"), seen("second", "bc"))
    rig.feed(event.UnbarNode("second", BarKind.QUARANTINE, "operator"))
    assert is_quarantined(rig.world.fleet, 1)


# -- less than before ----------------------------------------------------------------------------------------------


def test_an_idle_node_that_comes_back_smaller_is_smaller() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"), seen("n", "acd"))
    assert rig.world.fleet.capacity(0).gpus == 3
    assert rig.world.fleet.device_ids[0] == ("a", "c", "d")
    assert rig.world.fleet.lacks == {}


def test_a_busy_node_that_comes_back_smaller_loses_what_sat_on_the_lost_device_and_nothing_else() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    jobs = [rig.submit(1), rig.submit(1)]
    for job in jobs:
        rig.start(job)
    held = [event.Held(job, 1, 0, 1) for job in jobs]
    outcome = rig.feed(seen("n", "acd", *held))
    assert [type(item).__name__ for item in outcome.facts] == ["NodeLacks", "StopAsked"]
    assert outcome.instructions == [Stop(jobs[1], 1, 0, 1, 10_000)]
    phase = rig.job(jobs[1]).phase
    assert isinstance(phase, Stopping)
    assert phase.why == Why.LOST
    assert rig.phase(jobs[0]) == "Running"
    assert rig.world.fleet.capacity(0).gpus == 3
    assert rig.world.fleet.devices(0) == [0, 0, 1000, 1000]
    sound(rig)
    rig.exit(jobs[1], 143)
    assert rig.job(jobs[1]).epoch == 2, "it waits again, and there is room on another device"
    assert rig.run(jobs[1]).leases[0].devices == 0b0100
    assert rig.world.fleet.devices(0) == [0, 0, 0, 1000], "the lost device did not come free"
    sound(rig)


def test_what_the_node_no_longer_holds_is_lost_at_once() -> None:
    rig = Rig()
    rig.feed(seen("n", "ab"))
    jobs = [rig.submit(1), rig.submit(1)]
    for job in jobs:
        rig.start(job)
    outcome = rig.feed(seen("n", "a", event.Held(jobs[0], 1, 0, 1)))
    assert [type(item).__name__ for item in outcome.facts] == ["Requeued", "NodeLacks"]
    assert rig.phase(jobs[1]) == "Queued"
    sound(rig)


def test_a_start_that_was_not_heard_is_not_repeated_on_a_lost_device() -> None:
    rig = Rig()
    rig.feed(seen("n", "ab"))
    jobs = [rig.submit(1), rig.submit(1)]
    outcome = rig.feed(seen("n", "a"))
    said = [(type(item), item.job) for item in outcome.instructions]
    assert said == [(Stop, jobs[1]), (Start, jobs[0])]
    sound(rig)


def test_of_an_array_only_the_tasks_on_the_lost_device_are_stopped() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    job = rig.submit(1, array=4)
    rig.feed(event.Started(job, 1, 0, 4))
    outcome = rig.feed(seen("n", "ad", event.Held(job, 1, 0, 4)))
    moved = [(item.first, item.count) for item in outcome.facts if isinstance(item, fact.TasksMoved)]
    assert moved == [(1, 2)]
    rig.feed(event.Exited(job, 1, 143, 1, 2))
    counts = rig.world.arrays[job].counts
    assert (counts[TaskPhase.RUNNING], counts[TaskPhase.QUEUED]) == (2, 2)
    sound(rig)


def test_a_share_of_a_lost_device_is_lost_and_its_rest_is_not_free() -> None:
    rig = Rig()
    rig.feed(seen("n", "ab"))
    job = rig.submit(ask=Resources(cpu_milli=1000, gpu_milli=300))
    rig.start(job)
    rig.feed(seen("n", "b", event.Held(job, 1, 0, 1)))
    assert rig.world.fleet.devices(0) == [0, 1000]
    sound(rig)
    rig.exit(job, 143)
    assert rig.run(job).leases[0].devices == 0b10
    sound(rig)


def test_devices_without_ids_are_lost_from_the_highest_number_down() -> None:
    rig = Rig(nodes=1, gpus=4)
    jobs = [rig.submit(2), rig.submit(2)]
    held = [event.Held(job, 1, 0, 1) for job in jobs]
    rig.feed(seen("node-0", "", *held, capacity=Resources(3, 64_000, 2**38)))
    assert [rig.phase(job) for job in jobs] == ["Starting", "Stopping"]
    assert rig.world.fleet.lacks[0] == Lack(0b1000, Resources(1))
    sound(rig)


def test_what_comes_back_while_work_is_there_is_free_again() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    job = rig.submit(1)
    held = event.Held(job, 1, 0, 1)
    rig.feed(seen("n", "ab", held))
    waiting = rig.submit(2)
    assert rig.phase(waiting) == "Queued"
    outcome = rig.feed(seen("n", "abcd", held))
    assert outcome.facts[0] == fact.NodeLacks(0, NO_LACK)
    assert rig.run(waiting).leases[0].devices == 0b0110
    assert rig.world.fleet.lacks == {}
    sound(rig)


def test_a_busy_node_has_its_new_labels_at_once_and_what_runs_there_goes_on() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd", traits=Traits(labels=(("zone", "a"),))))
    job = rig.submit(1, needs=Needs(labels=("zone=a",)))
    rig.start(job)
    held = event.Held(job, 1, 0, 1)
    outcome = rig.feed(seen("n", "abcd", held, traits=Traits(labels=(("zone", "b"),), taints=("spot",))))
    assert outcome.facts == [fact.NodeSaid(0, (("zone", "b"),), ("spot",))]
    assert rig.phase(job) == "Running"
    assert code_of(rig.answer(event.Submit(spec(1)))) == Code.NEVER_FITS  # it does not bear the taint
    there = rig.submit(1, needs=Needs(labels=("zone=b",), tolerates=("spot",)))
    assert rig.run(there).leases[0].slot == 0
    assert code_of(rig.answer(event.Submit(spec(1, needs=Needs(labels=("zone=a",)))))) == Code.NEVER_FITS
    sound(rig)


def test_a_label_puts_a_busy_node_behind_an_overlay_with_all_that_it_holds() -> None:
    rig = Rig()
    wide = Resources(4, 64_000, 2**38, network_mbps=100)
    labels = Traits(labels=(("feed", "one"),))
    rig.feed(seen("n", "abcd", capacity=wide), seen("small", capacity=Resources(0, 1), traits=labels))
    rig.feed(event.SetOverlay("feed", Overlay("network", 80, labels=("feed=one",))))
    job = rig.submit(ask=Resources(1, 1000, 1, network_mbps=60))
    held = event.Held(job, 1, 0, 1)
    rig.feed(seen("n", "abcd", held, capacity=wide, traits=labels))
    assert rig.world.fleet.overlays.used == {"feed": 60}
    assert rig.phase(rig.submit(ask=Resources(1, 1000, 1, network_mbps=30))) == "Queued"
    sound(rig)


def test_what_a_busy_node_has_more_it_has_without_another_word_once_it_is_idle() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    job = rig.submit(1)
    rig.start(job)
    rig.feed(seen("n", "abcdef", event.Held(job, 1, 0, 1), traits=Traits("h100")))
    assert rig.world.fleet.capacity(0).gpus == 4
    sound(rig)
    outcome = rig.exit(job)
    assert [type(item).__name__ for item in outcome.facts] == ["Ended", "NodeJoined"]
    assert rig.world.fleet.capacity(0).gpus == 6
    assert rig.world.fleet.flavor(0) == "h100"
    assert rig.world.fleet.said == {}
    sound(rig)


def test_what_a_busy_node_takes_back_is_not_taken_over() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    job = rig.submit(1)
    rig.start(job)
    held = event.Held(job, 1, 0, 1)
    rig.feed(seen("n", "abcdef", held), seen("n", "abcd", held))
    assert rig.world.fleet.said == {}
    assert rig.feed(seen("n", "abcd", held)).facts == []
    assert [type(item).__name__ for item in rig.exit(job).facts] == ["Ended"]


def test_a_node_that_is_gone_is_not_back_by_what_it_said() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    job = rig.submit(1)
    rig.start(job)
    rig.feed(seen("n", "abcdef", event.Held(job, 1, 0, 1)))
    rig.feed(event.NodeGone("n"))
    assert rig.phase(job) == "Queued"
    assert rig.world.fleet.capacity(0).gpus == 4
    sound(rig)
    rig.feed(seen("n", "abcde"))
    assert rig.world.fleet.capacity(0).gpus == 5
    assert rig.run(job).leases[0].slot == 0
    sound(rig)


@pytest.mark.parametrize("end", [event.NodeGone("n"), event.Exited(1, 1, 0)], ids=["gone", "over"])
def test_a_node_that_comes_back_as_it_was_is_not_what_it_said_in_between(end: event.Event) -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    job = rig.submit(1)
    rig.start(job)
    rig.feed(seen("n", "abcdef", event.Held(job, 1, 0, 1)), event.NodeSilent("n"))
    rig.feed(end)
    rig.feed(seen("n", "abcd"))
    assert rig.world.fleet.capacity(0).gpus == 4
    assert rig.world.fleet.said == {}
    sound(rig)


def test_room_is_never_below_zero() -> None:
    """The node says that it has less CPU than is held there: what runs goes on, and nothing is free until it fits."""
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    jobs = [rig.submit(ask=Resources(1, 20_000, 2**30)) for _ in range(3)]
    held = [event.Held(job, 1, 0, 1) for job in jobs]
    rig.feed(seen("n", "abcd", *held, capacity=Resources(4, 30_000, 2**38)))
    assert rig.world.fleet.free(0).cpu_milli == 0
    assert rig.world.fleet.capacity(0).cpu_milli == 30_000
    sound(rig)
    rig.exit(jobs[0])
    assert rig.world.fleet.free(0).cpu_milli == 0
    sound(rig)
    rig.exit(jobs[1])
    assert rig.world.fleet.free(0).cpu_milli == 10_000
    sound(rig)


def test_a_job_that_only_the_lost_devices_could_hold_is_refused() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"))
    job = rig.submit(1)
    rig.feed(seen("n", "ab", event.Held(job, 1, 0, 1)))
    answer = rig.answer(event.Submit(rig.job(job).spec.__class__(("x",), ask=Resources(3, 1))))
    assert code_of(answer) == Code.NEVER_FITS


def test_the_device_that_moved_to_another_machine_counts_there() -> None:
    rig = Rig()
    rig.feed(seen("first", "abcd"), seen("second", "efgh"))
    job = rig.submit(1)
    rig.feed(seen("first", "abc", event.Held(job, 1, 0, 1)), seen("second", "defgh"))
    assert rig.world.fleet.bars == {}
    assert [rig.world.fleet.capacity(slot).gpus for slot in range(2)] == [3, 5]
    sound(rig)


def test_a_start_names_the_devices() -> None:
    rig = Rig()
    rig.feed(seen("n", "abcd"), seen("plain"))
    rig.submit(3)
    (start,) = rig.outcomes[-1].instructions
    assert isinstance(start, Start)
    assert (start.devices, start.device_ids) == ([0b0111], [("a", "b", "c")])
