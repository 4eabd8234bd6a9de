"""A gang that loses a node keeps what is left of its places, is the first to get another, and always ends whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stage_kit import STAGES

from muster.model import event, fact
from muster.model.job import BarKind
from muster.model.reason import Code
from muster.scheduler.reasons import explain
from muster.scheduler.repair import REPAIR_MS
from muster.testing.rig import Rig
from muster.units import MINUTE_MS, Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

NODE = Resources(8, 64_000, 2**38)


def slots_of(rig: Rig, job: int) -> list[int]:
    return sorted(lease.slot for lease in rig.run(job).leases)


def lose(rig: Rig, name: str) -> None:
    rig.feed(event.NodeGone(name, "fenced"))


def over(rig: Rig, job: int) -> None:
    """What is left of a run that was told to stop is over."""
    if rig.phase(job) == "Stopping":
        rig.exit(job, 143, 0, len(rig.world.ranks[job]))


def broken(rivals: int = 2) -> Rig:
    """A gang of three on four nodes, a job on the fourth, and others who wait for any node; then a node is lost."""
    rig = Rig(4)
    gang, other = rig.submit(8, gang=3), rig.submit(8)
    rig.start(gang)
    rig.start(other)
    for _ in range(rivals):
        rig.submit(8, tenant="rival")
    lose(rig, "node-1")
    over(rig, gang)
    return rig


def test_what_is_left_goes_to_nobody_else() -> None:
    rig = broken()
    assert rig.phase(1) == "Queued"
    assert [rig.phase(job) for job in (3, 4)] == ["Queued", "Queued"], "two nodes are free, and the gang keeps them"
    assert sorted(lease.slot for lease in rig.world.claims[1].leases) == [0, 2]
    waiting = explain(rig.world, rig.job(1))
    assert waiting is not None
    assert (waiting.reason.code, waiting.reason.needed) == (Code.REPAIRED, 1)
    check_world(rig.world)


def test_it_gets_the_first_node_that_comes_free() -> None:
    rig = broken()
    rig.exit(2)
    assert slots_of(rig, 1) == [0, 2, 3]
    assert rig.phase(3) == "Queued"
    assert not rig.world.claims
    assert rig.run(1).epoch == 2, "another run"
    check_world(rig.world)


def test_it_gets_the_node_that_comes_back() -> None:
    rig = broken()
    rig.feed(event.NodeSeen("node-1", NODE))
    assert slots_of(rig, 1) == [0, 1, 2]


def test_it_does_not_keep_them_for_ever() -> None:
    rig = broken()
    rig.feed(after_ms=REPAIR_MS)
    assert [rig.phase(job) for job in (3, 4)] == ["Starting", "Starting"]
    assert not rig.world.claims


def test_a_second_loss_gives_the_rest_up_and_the_gang_waits_whole() -> None:
    rig = broken()
    lose(rig, "node-0")
    assert not rig.world.claims
    assert rig.phase(1) == "Queued"
    for job in (2, 3):
        rig.exit(job)
    rig.feed(event.NodeSeen("node-0", NODE), event.NodeSeen("node-1", NODE))
    rig.exit(4)
    assert rig.phase(1) == "Starting"


def test_who_is_held_or_barred_keeps_nothing() -> None:
    rig = Rig(4)
    gang = rig.submit(8, gang=3)
    rig.start(gang)
    rig.feed(event.HoldJob(gang))
    lose(rig, "node-1")
    over(rig, gang)
    assert not rig.world.claims
    rig = Rig(2)
    gang = rig.submit(8, gang=2)
    rig.feed(event.BarNode("node-0", BarKind.CORDON, "op"))
    lose(rig, "node-1")
    over(rig, gang)
    assert not rig.world.claims


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("lost", ["node-0", "node-1", "node-2"])
def test_whenever_it_loses_a_node_it_ends_whole(stage: Callable[[Rig], None], lost: str) -> None:
    rig = Rig(3)
    gang = rig.submit(8, gang=3, retries=0)
    stage(rig)
    asked = rig.job(gang).spec
    lose(rig, lost)
    over(rig, gang)
    assert rig.phase(gang) == ("Queued" if asked.gang == 3 else "Starting"), "one that shrank has all that it needs"
    assert rig.job(gang).failures == 0
    check_world(rig.world)
    rig.feed(event.UnbarNode("node-0", BarKind.DRAIN, "op"), event.NodeSeen(lost, NODE))
    rig.feed(after_ms=MINUTE_MS)
    assert (rig.phase(gang), rig.job(gang).spec) == ("Starting", asked)
    rig.start(gang, 0, len(rig.world.ranks[gang]))
    rig.exit(gang, 0, 0, len(rig.world.ranks[gang]))
    assert rig.phase(gang) == "Succeeded"
    check_world(rig.world)


def test_two_broken_gangs_never_wait_for_each_other_for_ever() -> None:
    rig = Rig(6)
    one, two = rig.submit(8, gang=3), rig.submit(8, gang=3)
    rig.start(one)
    rig.start(two)
    for name, job in (("node-0", one), ("node-3", two)):
        lose(rig, name)
        over(rig, job)
    assert [rig.phase(job) for job in (one, two)] == ["Queued", "Queued"]
    assert sorted(rig.world.claims) == [one, two]
    rig.feed(after_ms=REPAIR_MS)
    assert not rig.world.claims
    started = [job for job in (one, two) if rig.phase(job) == "Starting"]
    assert started == [one], "four nodes are left: one of them goes on"
    rig.start(one)
    rig.exit(one)
    assert rig.phase(two) == "Starting"


def test_a_replacement_goes_to_the_lower_number() -> None:
    rig = Rig(6)
    one, two = rig.submit(8, gang=3), rig.submit(8, gang=3)
    for name, job in (("node-3", two), ("node-0", one)):
        lose(rig, name)
        over(rig, job)
    rig.feed(event.NodeSeen("node-3", NODE))
    assert (rig.phase(one), rig.phase(two)) == ("Starting", "Queued")


def test_a_restored_world_repairs_alike() -> None:
    rig = broken()
    assert any(isinstance(item, fact.Claimed) for outcome in rig.outcomes for item in outcome.facts)
    twin = type(rig.kernel)(restore(snapshot(rig.world)))
    assert digest(twin.world) == digest(rig.world)
    batch = [event.NodeSeen("node-1", NODE)]
    assert rig.kernel.handle(batch, rig.now + 5).facts == twin.handle(batch, rig.now + 5).facts
