"""Of an array that says so, only so many tasks are at it at once; the others are blocked, and follow in their order."""

from __future__ import annotations

import pytest
from stage_kit import settled

from muster.control.views import view_why
from muster.model import event, fact
from muster.model.after import After, When
from muster.model.phase import TaskPhase
from muster.model.reason import Code, Done, Reason, Refused
from muster.model.spec import find_fault
from muster.testing.rig import Rig, spec
from muster.world.snapshot import digest, restore, snapshot

Q, A, R, B = TaskPhase.QUEUED, TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.BLOCKED


def counts(rig: Rig, job: int = 1) -> tuple[int, int, int]:
    """How many tasks are blocked, wait in the line, and hold a place."""
    tasks = rig.world.arrays[job]
    return tasks.counts[B], tasks.counts[Q], tasks.holding


def test_no_more_start_than_may_be_at_it_though_there_is_room() -> None:
    rig = Rig(2)
    rig.submit(array=10, at_most=3)
    assert counts(rig) == (7, 0, 3)
    settled(rig)
    rig.start(1, 0, 3)
    rig.exit(1, 0, first=1, count=1)
    assert bytes(rig.world.arrays[1].phase[:5]) == bytes([R, TaskPhase.SUCCEEDED, R, A, B]), "the next one follows"
    settled(rig)


def test_all_run_in_the_end_never_more_than_three_at_once() -> None:
    rig = Rig(2)
    rig.submit(array=10, at_most=3)
    for _ in range(20):
        if rig.phase(1) == "Succeeded":
            break
        tasks = rig.world.arrays[1].phase
        assert rig.world.arrays[1].holding <= 3
        rig.exit(1, 0, first=tasks.find(A), count=1)
        settled(rig)
    assert rig.phase(1) == "Succeeded"
    assert 1 not in rig.world.widths.throttled


def test_a_task_that_is_lost_or_tried_again_stays_among_those_that_are_at_it() -> None:
    rig = Rig(1, gpus=2)
    rig.submit(array=6, at_most=2, retries=1)
    rig.exit(1, 7, first=0, count=1)
    assert counts(rig) == (4, 0, 2), "it is tried again, before the third"
    assert rig.world.arrays[1].epoch[0] == 2
    rig.feed(event.NodeGone("node-0", "fenced"))
    assert counts(rig) == (4, 2, 0)
    settled(rig)
    rig.feed(event.NodeSeen("node-0", rig.world.fleet.capacities[0]))
    assert counts(rig) == (4, 0, 2)
    settled(rig)


def test_more_may_be_at_it_from_now_on() -> None:
    rig = Rig(1)
    rig.submit(array=10, at_most=3)
    assert rig.answer(event.ScaleJob(1, 5)) == Done(1)
    assert counts(rig) == (5, 0, 5)
    assert rig.answer(event.ScaleJob(1, 100)) == Done(1)
    assert counts(rig) == (0, 2, 8), "as many as there is room for"
    settled(rig)


def test_if_fewer_may_be_at_it_what_runs_goes_on_and_the_last_that_wait_are_blocked() -> None:
    rig = Rig(1)
    rig.submit(array=12)
    assert counts(rig) == (0, 4, 8)
    rig.feed(event.ScaleJob(1, 9))
    assert counts(rig) == (3, 1, 8)
    assert rig.world.arrays[1].phase[8:] == bytes([Q, B, B, B])
    rig.feed(event.ScaleJob(1, 2))
    assert counts(rig) == (4, 0, 8), "nobody is stopped for it"
    settled(rig)
    rig.exit(1, 0, first=0, count=6)
    assert counts(rig) == (4, 0, 2), "nobody follows before there are fewer"
    rig.exit(1, 0, first=6, count=1)
    assert counts(rig) == (3, 0, 2)
    settled(rig)


def test_what_is_lost_of_too_many_is_blocked_again() -> None:
    rig = Rig(2, gpus=4)
    rig.submit(array=8)
    rig.feed(event.ScaleJob(1, 2))
    rig.feed(event.NodeGone("node-0", "fenced"))
    assert counts(rig) == (4, 0, 4)
    settled(rig)


def test_an_array_that_follows_task_by_task_lets_those_follow_whose_likes_succeeded_in_turn() -> None:
    rig = Rig(2, gpus=4)
    rig.submit(array=4)
    rig.submit(array=4, at_most=1, after=(After(1, When.TASK_BY_TASK),))
    assert counts(rig, 2) == (4, 0, 0)
    rig.exit(1, 0, first=2, count=2)
    assert (counts(rig, 2), rig.world.arrays[2].phase[2]) == ((3, 0, 1), A)
    settled(rig)
    rig.exit(2, 0, first=2, count=1)
    assert (counts(rig, 2), rig.world.arrays[2].phase[3]) == ((2, 0, 1), A)
    rig.exit(1, 1, first=0, count=1)
    rig.exit(1, 0, first=1, count=1)
    assert rig.world.arrays[2].phase[0] == TaskPhase.CANCELLED, "its like failed"
    settled(rig)
    rig.exit(2, 0, first=3, count=1)
    assert (counts(rig, 2), rig.world.arrays[2].phase[1]) == ((0, 0, 1), A), "its like is over, it waited for its turn"
    settled(rig)


def test_held_and_waiting_for_others_it_is_throttled_all_the_same() -> None:
    rig = Rig(1)
    rig.submit(gpus=8)
    rig.submit(array=5, at_most=2, after=(After(1, When.SUCCEEDED),))
    rig.feed(event.HoldJob(2))
    rig.feed(event.ScaleJob(2, 3))
    rig.exit(1)
    assert counts(rig, 2) == (2, 3, 0)
    settled(rig)
    rig.feed(event.ReleaseJob(2))
    assert counts(rig, 2) == (2, 0, 3)
    settled(rig)


def test_it_is_cancelled_whole() -> None:
    rig = Rig(1)
    rig.submit(array=10, at_most=3)
    rig.feed(event.Cancel(1))
    assert counts(rig) == (0, 0, 3)
    rig.exit(1, -15, first=0, count=3)
    assert rig.phase(1) == "Cancelled"
    settled(rig)


def test_why_says_that_nothing_else_is_in_the_way() -> None:
    rig = Rig(1)
    rig.submit(array=10, at_most=3)
    view = view_why(rig.world, rig.job(1))
    assert (view.code, view.needed, view.available) == (Code.AT_ITS_MOST, 7, 3)
    assert view.words == "7 of its tasks wait until others of it end: at most 3 are at it at once, as its owner said"
    assert "`muster scale 1 N`" in view.fix


def test_where_there_is_no_room_why_says_that_instead() -> None:
    rig = Rig(1, gpus=2)
    rig.submit(array=10, at_most=3)
    assert counts(rig) == (7, 1, 2)
    assert view_why(rig.world, rig.job(1)).code == Code.NO_ROOM


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (event.ScaleJob(1, 0), Code.BAD_WIDTH),
        (event.ScaleJob(1, -4), Code.BAD_WIDTH),
        (event.ScaleJob(1, 1_000_001), Code.BAD_WIDTH),
        (event.ScaleJob(1, 4, 2), Code.NO_WIDTH),
    ],
)
def test_bounds_that_make_no_sense_are_refused(asked: event.ScaleJob, code: Code) -> None:
    rig = Rig(1)
    rig.submit(array=10)
    before = digest(rig.world)
    answer = rig.answer(asked)
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert digest(rig.world) == before


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"at_most": 2}, Code.BAD_SPEC),
        ({"array": 4, "at_most": -1}, Code.BAD_AMOUNT),
        ({"array": 4, "at_most": 1_000_001}, Code.BAD_AMOUNT),
    ],
)
def test_a_spec_that_is_wrong_by_itself(fields: dict[str, int], code: Code) -> None:
    fault = find_fault(spec(**fields))
    assert isinstance(fault, Reason)
    assert fault.code == code


def test_a_key_names_the_same_job_after_it_was_scaled() -> None:
    rig = Rig(1)
    asked = event.Submit(spec(array=4, at_most=2), "key")
    assert rig.answer(asked) == Done(1)
    rig.feed(event.ScaleJob(1, 3))
    assert rig.answer(asked) == Done(1)


def test_a_long_array_of_which_a_few_are_at_it_costs_a_fact_for_each_turn() -> None:
    rig = Rig(1)
    rig.submit(array=20_000, at_most=4)
    outcome = rig.exit(1, 0, first=0, count=2)
    moved = [item for item in outcome.facts if isinstance(item, fact.TasksMoved)]
    assert [(item.first, item.count, item.phase) for item in moved] == [(4, 2, Q)]
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)


def test_fewer_at_once_while_all_of_them_run_blocks_nobody() -> None:
    rig = Rig(2)
    rig.submit(array=10, at_most=3)
    assert rig.feed(event.ScaleJob(1, 1)).answers == [Done(1)]
    assert counts(rig) == (7, 0, 3), "what runs goes on"
    rig.exit(1, 0, first=0, count=2)
    assert counts(rig) == (7, 0, 1), "and nobody follows until there is a turn"
    settled(rig)


def test_who_waits_for_a_shorter_array_may_have_turns_of_its_own() -> None:
    """It does not wait task by task, so the tasks of the other one are not the likes of its own."""
    rig = Rig(1)
    rig.submit(array=2)
    rig.submit(array=5, at_most=1, after=(After(1, When.OVER),))
    settled(rig)
    rig.exit(1, 0, first=0, count=2)
    assert rig.world.arrays[2].counts[TaskPhase.STARTING] == 1
    settled(rig)
