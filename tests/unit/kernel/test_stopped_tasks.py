"""What tasks of an array were told to stop for is kept until they are gone, and named then: whatever it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.model import event, fact
from muster.model.booking import Booking, Window
from muster.model.budget import GPU_HOURS, Budget
from muster.model.job import BarKind
from muster.model.phase import STOPS, TaskPhase, Why
from muster.model.tenant import Tenant
from muster.testing.rig import Rig
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS
from muster.world.apply import apply_entry
from muster.world.snapshot import restore, snapshot

ENDS_AT = 10**12


def drain(rig: Rig) -> None:
    rig.feed(event.BarNode("node-0", BarKind.DRAIN, "crew", "fan", ENDS_AT, lets_finish=False))


def requeue(rig: Rig) -> None:
    rig.feed(event.RequeueJob(1))


def spend(rig: Rig) -> None:
    rig.feed(event.SetTenant("default", Tenant(budgets=(Budget(GPU_HOURS, 0),))))


def preempt(rig: Rig) -> None:
    rig.submit(gpus=8, tier="critical")


def book(rig: Rig) -> None:
    """The node is somebody's in a moment: whoever may be evicted is told."""
    window = Window(rig.now + MINUTE_MS, rig.now + HOUR_MS)
    rig.feed(event.Reserve(Booking("b", "default", 1, (window,))))
    while not rig.world.arrays[1].counts[TaskPhase.STOPPING]:
        wake_at = rig.outcomes[-1].wake_at
        assert wake_at is not None
        rig.feed(after_ms=max(1, wake_at - rig.now))


CAUSES: dict[Callable[[Rig], None], Why] = {
    drain: Why.DRAIN,
    requeue: Why.REQUEUE,
    spend: Why.BUDGET,
    preempt: Why.PREEMPT,
    book: Why.BOOKING,
}


def stopped(cause: Callable[[Rig], None]) -> Rig:
    """An array of four tasks on one node, all told to stop."""
    rig = Rig(nodes=1)
    rig.submit(gpus=2, array=4, tier="opportunistic", grace_ms=SECOND_MS)
    rig.start(1)
    cause(rig)
    assert rig.world.arrays[1].counts[TaskPhase.STOPPING] == 4
    return rig


def ends(rig: Rig) -> list[tuple[int, int, TaskPhase, Why]]:
    found = [item for item in rig.outcomes[-1].facts if isinstance(item, fact.TasksEnded)]
    return [(item.first, item.total, item.phase, item.why) for item in found]


@pytest.mark.parametrize("cause", CAUSES)
def test_tasks_wait_again_for_what_they_were_told(cause: Callable[[Rig], None]) -> None:
    rig = stopped(cause)
    rig.exit(1, 143, 1, 2)
    assert ends(rig) == [(1, 2, TaskPhase.QUEUED, CAUSES[cause])]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_node_that_is_lost_meanwhile_changes_nothing_of_that(cause: Callable[[Rig], None]) -> None:
    rig = stopped(cause)
    rig.feed(event.NodeGone("node-0"))
    assert ends(rig) == [(0, 4, TaskPhase.QUEUED, CAUSES[cause])]


def test_what_goes_on_and_what_stops_is_lost_apart() -> None:
    rig = Rig(nodes=1)
    rig.submit(gpus=1, array=4)
    rig.start(1)
    rig.feed(event.RequeueJob(1))
    rig.exit(1, 143, 0, 2)
    rig.feed(event.NodeGone("node-0"))
    assert ends(rig) == [(0, 2, TaskPhase.QUEUED, Why.LOST), (2, 2, TaskPhase.QUEUED, Why.REQUEUE)]


def test_it_is_content_a_restored_world_ends_them_the_same() -> None:
    rig = stopped(requeue)
    twin = restore(snapshot(rig.world))
    assert twin.arrays[1].why == rig.world.arrays[1].why == bytes([STOPS.index(Why.REQUEUE)]) * 4
    rig.exit(1, 143)
    assert not any(rig.world.arrays[1].why), "nothing is left of it"


def test_tasks_of_one_report_may_have_been_told_for_different_things() -> None:
    rig = Rig(nodes=2)
    rig.submit(gpus=4, array=4)
    rig.start(1)
    drain(rig)
    requeue(rig)
    rig.exit(1, 143)
    assert sorted(ends(rig)) == [(0, 2, TaskPhase.QUEUED, Why.DRAIN), (2, 2, TaskPhase.QUEUED, Why.REQUEUE)]


def test_a_word_from_before_it_was_told_means_a_drain() -> None:
    rig = Rig(nodes=1)
    rig.submit(gpus=2, array=4)
    rig.start(1)
    apply_entry(rig.world, rig.world.seq + 1, rig.now, [fact.TasksMoved(1, 0, 4, TaskPhase.STOPPING)])
    rig.kernel.handle([event.Exited(1, 1, 143, 0, 4)], rig.now + 1)
    assert rig.world.arrays[1].counts[TaskPhase.STARTING] == 4, "they wait again, and start"
