"""How tasks of an array failed: those alike together, by the numbers that their owner knows them by."""

from __future__ import annotations

from muster.control.failed_tasks import RANGES_TOLD, WAYS_TOLD, group_failures
from muster.model import event, fact
from muster.model.again import Again
from muster.model.phase import TaskPhase, Why
from muster.model.spec import Spec
from muster.testing.rig import Rig, spec
from muster.wire.codec import Entry
from muster.wire.views import FailedTasks


def told(accepted: Spec, *ends: fact.TasksEnded) -> list[FailedTasks]:
    entries = [Entry(1, 1, 0, [fact.Accepted(7, accepted)]), *(Entry(1, 2 + n, 9, [end]) for n, end in enumerate(ends))]
    return group_failures(entries, 7)


def ended(first: int, count: int = 1, code: int = 1, why: Why = Why.EXIT, cause: str = "n1") -> fact.TasksEnded:
    return fact.TasksEnded(7, first, count, TaskPhase.FAILED, why, code, cause)


def test_what_failed_alike_is_one_way_and_the_most_frequent_comes_first() -> None:
    note = event.Exited(7, 1, 127, cause="n1", note="command not found: x").noted_cause
    ways = told(
        Spec(("x",), array=30),
        ended(20, code=127, cause=note),
        ended(3, 2),
        ended(9, why=Why.LIMIT, code=143),
        ended(7),
        ended(5),
        fact.TasksEnded(7, 10, 4, TaskPhase.SUCCEEDED),
        fact.TasksEnded(7, 15, 1, TaskPhase.QUEUED, Why.EXIT, 1),
    )
    assert ways == [
        FailedTasks("exit", 1, "", 4, [(3, 5), (7, 7)]),
        FailedTasks("limit", 143, "", 1, [(9, 9)]),
        FailedTasks("exit", 127, "command not found: x", 1, [(20, 20)]),
    ]


def test_tasks_that_run_again_are_told_by_the_numbers_that_they_had() -> None:
    again = Again(12, (3, 1, 7, 3), 20)
    assert told(Spec(("x",), array=4, again=again), ended(0, 2)) == [FailedTasks("exit", 1, "", 2, [(3, 3), (7, 7)])]


def test_of_very_many_ways_and_ranges_the_first_are_told() -> None:
    [way] = told(Spec(("x",), array=1000), *(ended(task) for task in range(0, 1000, 2)))
    assert (way.tasks, len(way.ranges), way.ranges[-1]) == (500, RANGES_TOLD, (126, 126))
    assert len(told(Spec(("x",), array=100), *(ended(task, code=task + 1) for task in range(100)))) == WAYS_TOLD


def test_what_was_tried_again_and_came_about_did_not_fail() -> None:
    rig = Rig(nodes=1)
    rig.answer(event.Submit(spec(array=3, retries=1)))
    rig.start(1)
    for code, task in ((1, 0), (0, 1), (1, 2), (0, 0), (1, 2)):
        rig.exit(1, code, task, 1)
    entries = [Entry(1, each.seq, each.at, each.facts) for each in rig.outcomes]
    assert group_failures(entries, 1) == [FailedTasks("exit", 1, "", 1, [(2, 2)])]
