"""A limit of an array is that of each task, from when it is up: all that are past it are one word, and have failed."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.instruction import Stop
from muster.model.phase import TaskPhase, Why
from muster.testing.rig import Rig
from muster.units import HOUR_MS, MINUTE_MS
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot

LIMIT_MS = 10 * MINUTE_MS


def limited(tasks: int = 8, **fields: object) -> Rig:
    """An array with a limit, of which as many tasks as fit have their places."""
    rig = Rig(nodes=1)
    rig.submit(gpus=1, array=tasks, limit_ms=LIMIT_MS, **fields)
    return rig


def wake(rig: Rig) -> list[fact.Fact]:
    wake_at = rig.outcomes[-1].wake_at
    assert wake_at is not None
    outcome = rig.feed(after_ms=wake_at - rig.now)
    check_world(rig.world)
    return list(outcome.facts)


def test_tasks_that_are_past_their_limit_are_one_word_and_have_failed() -> None:
    rig = limited()
    rig.start(1, 0, 3)
    rig.feed(event.Started(1, 1, 3, 1), after_ms=MINUTE_MS)
    rig.exit(1, 0, 1, 1)
    began = rig.world.arrays[1].since[0]
    assert rig.outcomes[-1].wake_at == began + LIMIT_MS
    told = fact.TasksMoved(1, 0, 1, TaskPhase.STOPPING, "time limit", [2, 1], Why.LIMIT)
    assert wake(rig) == [told], "those that began first, and not the one that is over"
    stops = [item for item in rig.outcomes[-1].instructions if isinstance(item, Stop)]
    assert [(item.first, item.count) for item in stops] == [(0, 1), (2, 1)]
    ended = rig.exit(1, 143, 0, 1).facts[0]
    assert ended == fact.TasksEnded(1, 0, 1, TaskPhase.FAILED, Why.LIMIT, 143)
    assert wake(rig) == [fact.TasksMoved(1, 3, 1, TaskPhase.STOPPING, "time limit", [], Why.LIMIT)]


def test_it_counts_from_when_a_task_is_up_and_who_is_not_has_no_end() -> None:
    rig = limited()
    assert rig.feed(after_ms=HOUR_MS).facts == []
    assert not rig.world.timers.tasks
    rig.start(1)
    assert len(rig.world.timers.tasks) == 1, "one entry for all that are up since one instant"


def test_a_retry_is_not_for_who_ran_too_long_and_each_try_has_all_of_it() -> None:
    rig = limited(tasks=1, retries=3)
    rig.start(1)
    rig.feed(event.Exited(1, 1, 5), after_ms=9 * MINUTE_MS)
    rig.start(1)
    assert rig.feed(after_ms=9 * MINUTE_MS).facts == []
    wake(rig)
    facts = rig.exit(1, 0).facts
    assert facts[0] == fact.TasksEnded(1, 0, 1, TaskPhase.FAILED, Why.LIMIT), "whatever it says at its end"
    assert rig.phase(1) == "Failed"


def test_who_is_told_to_stop_for_something_else_keeps_that() -> None:
    rig = limited()
    rig.start(1)
    rig.feed(event.RequeueJob(1), after_ms=9 * MINUTE_MS)
    assert not rig.world.timers.tasks
    assert rig.feed(after_ms=HOUR_MS).facts == []
    rig.exit(1, 143)
    assert rig.world.arrays[1].counts[TaskPhase.STARTING] == 8


def test_a_node_that_is_lost_while_they_stop_does_not_bring_them_back() -> None:
    rig = limited()
    rig.start(1)
    wake(rig)
    rig.feed(event.NodeGone("node-0"))
    assert rig.phase(1) == "Failed"


def test_a_restored_world_stops_the_same_at_the_same_instant() -> None:
    rig = limited()
    rig.start(1, 0, 2)
    rig.feed(event.Started(1, 1, 2, 4), after_ms=MINUTE_MS)
    twin = restore(snapshot(rig.world))
    assert twin.timers.tasks.counts == rig.world.timers.tasks.counts
    assert twin.timers.tasks.find() == rig.world.timers.tasks.find()


@pytest.mark.parametrize("phase", [TaskPhase.SUCCEEDED, TaskPhase.CANCELLED])
def test_nothing_is_left_of_it_once_tasks_are_over(phase: TaskPhase) -> None:
    rig = limited()
    rig.start(1)
    if phase == TaskPhase.CANCELLED:
        rig.feed(event.Cancel(1))
    rig.exit(1)
    assert rig.world.arrays[1].counts[phase] == 8
    assert not rig.world.timers.tasks
    check_world(rig.world)


def test_a_hundred_thousand_tasks_that_began_at_once_are_one_entry_and_one_word() -> None:
    rig = Rig(nodes=1, gpus=0, cpu_milli=10**9, memory_bytes=2**48)
    rig.submit(gpus=0, array=100_000, limit_ms=LIMIT_MS)
    count = rig.world.arrays[1].counts[TaskPhase.STARTING]
    assert count > 50_000
    rig.start(1, 0, count)
    assert len(rig.world.timers.tasks) == 1
    outcome = rig.feed(after_ms=LIMIT_MS)
    assert [type(item) for item in outcome.facts] == [fact.TasksMoved]
    assert len(outcome.instructions) == 1
