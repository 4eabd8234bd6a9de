"""A gang in place that loses a node goes on with the others: who replaces the lost ranks joins the same run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stage_kit import STAGES, lose, settled, slots_of

from muster.model import event, fact
from muster.model.errors import InvariantError
from muster.model.instruction import Start, Stop
from muster.model.job import BarKind
from muster.model.node import Place, Traits
from muster.model.phase import Stopping, Why
from muster.model.spec import Needs
from muster.scheduler.repair import MEND_MS
from muster.testing.planted.widths import mends_for_ever
from muster.testing.rig import Rig
from muster.units import MINUTE_MS, Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot
from muster.world.widths import width_of

NODE = Resources(8, 64_000, 2**38)


def running(nodes: int, gang: int = 3, most: int = 0, **fields: object) -> Rig:
    """A gang in place with a node for each task, on the first nodes."""
    rig = Rig(nodes)
    rig.submit(8, gang=gang, gang_most=most or gang, in_place=True, **fields)
    rig.start(1, 0, width_of(rig.job(1)))
    return rig


def test_the_others_go_on_and_a_new_rank_joins_at_once() -> None:
    rig = running(nodes=5)
    rig.feed(event.Progressed(1, 1, 7, checkpointed=True))
    lose(rig, "node-1")
    outcome = rig.outcomes[-1]
    assert (rig.phase(1), rig.run(1).epoch) == ("Running", 1), "it was never stopped"
    assert slots_of(rig) == [0, 2, 3]
    (stop,) = [each for each in outcome.instructions if isinstance(each, Stop)]
    assert (stop.first, stop.count, stop.width) == (1, 1, 2), "whatever is left of it is fenced"
    (start,) = [each for each in outcome.instructions if isinstance(each, Start)]
    assert (start.first, start.nodes, start.epoch, start.width) == (3, ["node-3"], 1, 3), "a rank that nobody had"
    rig.start(1, 3, 1)
    settled(rig)
    for rank in (0, 2, 3):
        rig.exit(1, 0, rank, 1)
    assert rig.phase(1) == "Succeeded"
    settled(rig)


def test_what_the_lost_rank_still_says_changes_nothing() -> None:
    rig = running(nodes=4)
    lose(rig, "node-1")
    assert not rig.exit(1, 9, 1, 1).facts
    outcome = rig.feed(event.NodeSeen("node-1", NODE, held=(event.Held(1, 1, 1, 1),)))
    assert [(each.first, each.count) for each in outcome.instructions if isinstance(each, Stop)] == [(1, 1)]
    assert rig.phase(1) == "Running"


def test_without_room_it_waits_a_while_and_gets_the_first_place() -> None:
    rig = running(nodes=4)
    other = rig.submit(8)
    rival = rig.submit(8, tenant="rival")
    lose(rig, "node-1")
    assert (rig.phase(1), width_of(rig.job(1))) == ("Running", 2)
    assert list(rig.world.widths.mending) == [1]
    rig.exit(other)
    assert slots_of(rig) == [0, 2, 3]
    assert rig.phase(rival) == "Queued"
    assert not rig.world.widths.mending
    settled(rig)


def test_it_gets_the_node_that_comes_back() -> None:
    rig = running(nodes=3)
    lose(rig, "node-0")
    rig.feed(event.NodeSeen("node-0", NODE))
    assert sorted(slots_of(rig)) == [0, 1, 2]
    assert rig.phase(1) == "Running"


def test_if_nothing_comes_it_is_begun_anew_and_keeps_the_rest() -> None:
    rig = running(nodes=3)
    asked = rig.job(1).spec
    lose(rig, "node-2")
    assert rig.outcomes[-1].wake_at == rig.now + MEND_MS
    rig.feed(after_ms=MEND_MS)
    phase = rig.job(1).phase
    assert isinstance(phase, Stopping)
    assert phase.why == Why.LOST
    settled(rig)
    rig.exit(1, 143, 0, 2)
    assert rig.phase(1) == "Queued"
    assert sorted(lease.slot for lease in rig.world.claims[1].leases) == [0, 1]
    rig.feed(event.NodeSeen("node-2", NODE))
    assert (rig.phase(1), rig.run(1).epoch, rig.job(1).spec) == ("Starting", 2, asked)
    settled(rig)


def test_who_would_mend_for_ever_is_found() -> None:
    with mends_for_ever():
        rig = running(nodes=3)
        lose(rig, "node-2")
        rig.feed(event.NodeSeen("far", Resources(0, 1000, 2**30)), after_ms=MEND_MS + MINUTE_MS)
        with pytest.raises(InvariantError, match="whole again in time"):
            check_world(rig.world)


def test_several_losses_mend_from_the_first_on() -> None:
    rig = running(nodes=4, gang=4)
    lose(rig, "node-3")
    first = rig.now
    rig.feed(after_ms=MINUTE_MS)
    lose(rig, "node-1")
    assert rig.outcomes[-1].wake_at == first + MEND_MS
    rig.feed(event.NodeSeen("node-1", NODE))
    assert width_of(rig.job(1)) == 2, "all that it lacks, or nothing"
    rig.feed(event.NodeSeen("node-3", NODE))
    assert sorted(slots_of(rig)) == [0, 1, 2, 3]
    settled(rig)


def test_a_joining_rank_may_be_lost_as_well() -> None:
    rig = running(nodes=5)
    lose(rig, "node-1")
    lose(rig, "node-3")
    assert slots_of(rig) == [0, 2, 4]
    rig.start(1, 4, 1)
    rig.exit(1, 0, 0, 5)
    assert rig.phase(1) == "Succeeded"
    settled(rig)


def test_all_of_it_lost_is_begun_anew() -> None:
    rig = running(nodes=2, gang=2)
    lose(rig, "node-0")
    lose(rig, "node-1")
    assert rig.phase(1) == "Queued"
    settled(rig)


def test_an_elastic_gang_goes_on_with_fewer() -> None:
    rig = running(nodes=4, gang=2, most=4)
    lose(rig, "node-0")
    assert (rig.phase(1), slots_of(rig)) == ("Running", [1, 2, 3])
    assert not rig.world.widths.mending, "it has more than it needs"
    (stop,) = [each for each in rig.outcomes[-1].instructions if isinstance(each, Stop)]
    assert stop.width == 3
    rig.submit(8, tenant="rival")
    rig.exit(1, 143, 3, 1)
    assert slots_of(rig) == [1, 2], "what it has beyond its least may still be taken"
    settled(rig)


def test_several_tasks_on_a_node_are_lost_together() -> None:
    rig = Rig(3)
    rig.submit(2, gang=8, gang_most=8, in_place=True)
    rig.start(1, 0, 8)
    assert [lease.tasks for lease in rig.run(1).leases] == [4, 4]
    lose(rig, "node-0")
    assert [(lease.slot, lease.tasks) for lease in rig.run(1).leases] == [(1, 4), (2, 4)]
    settled(rig)


def test_it_stays_in_its_domain() -> None:
    rig = Rig()
    for number in range(6):
        traits = Traits(place=Place(rack=f"r{number // 3}"))
        rig.feed(event.NodeSeen(f"node-{number}", NODE, traits=traits))
    rig.submit(8, gang=2, gang_most=2, in_place=True, needs=Needs(within="rack"))
    rig.start(1, 0, 2)
    racks = {slot // 3 for slot in slots_of(rig)}
    lose(rig, rig.world.fleet.addresses[slots_of(rig)[0]])
    assert {slot // 3 for slot in slots_of(rig)} == racks
    lose(rig, rig.world.fleet.addresses[slots_of(rig)[0]])
    assert list(rig.world.widths.mending) == [1], "there is room in the other rack, and it does not count"


def held(rig: Rig) -> None:
    rig.start(1)
    rig.feed(event.HoldJob(1))


@pytest.mark.parametrize("stage", [*STAGES, held])
@pytest.mark.parametrize("lost", ["node-0", "node-1", "node-2"])
def test_whenever_it_loses_a_node_it_ends_whole(stage: Callable[[Rig], None], lost: str) -> None:
    rig = Rig(4)
    gang = rig.submit(8, gang=3, gang_most=3, in_place=True)
    stage(rig)
    lose(rig, lost)
    asked = rig.job(gang).spec
    if rig.phase(gang) == "Stopping":
        rig.exit(gang, 143, 0, len(rig.world.ranks[gang]))
    settled(rig)
    rig.feed(event.UnbarNode("node-0", BarKind.DRAIN, "op"), event.NodeSeen(lost, NODE), event.ReleaseJob(gang))
    rig.feed(after_ms=MINUTE_MS)
    assert rig.phase(gang) in ("Starting", "Running")
    assert (rig.job(gang).spec, rig.job(gang).failures) == (asked, 0)
    assert asked.gang <= width_of(rig.job(gang)) <= asked.gang_most
    rig.start(gang, 0, len(rig.world.ranks[gang]))
    rig.exit(gang, 0, 0, len(rig.world.ranks[gang]))
    assert rig.phase(gang) == "Succeeded"
    settled(rig)


def test_two_that_mend_never_wait_for_each_other_for_ever() -> None:
    rig = Rig(4)
    for _ in range(2):
        number = rig.submit(8, gang=2, gang_most=2, in_place=True)
        rig.start(number, 0, 2)
    lose(rig, "node-0", "node-2")
    assert sorted(rig.world.widths.mending) == [1, 2]
    rig.feed(after_ms=MEND_MS)
    for job in (1, 2):
        rig.exit(job, 143, 0, 2)
    rig.feed(after_ms=11 * MINUTE_MS)
    started = [job for job in (1, 2) if rig.phase(job) == "Starting"]
    assert started == [1], "two nodes are left: one of them goes on"
    settled(rig)


def test_a_restored_world_mends_alike() -> None:
    rig = running(nodes=3)
    lose(rig, "node-1")
    twin = type(rig.kernel)(restore(snapshot(rig.world)))
    batch = [event.NodeSeen("node-1", NODE)]
    mine, its = rig.kernel.handle(batch, rig.now + 5), twin.handle(batch, rig.now + 5)
    assert mine.facts == its.facts
    assert any(isinstance(item, fact.Grown) for item in mine.facts)
