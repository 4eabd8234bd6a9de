"""Hold, release, requeue: a job is kept from starting or sent back, and nothing of it is lost."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.instruction import Stop
from muster.model.phase import TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig
from muster.testing.scene import Scene
from muster.units import HOUR_MS
from muster.world.snapshot import digest, restore, snapshot


def test_a_held_job_does_not_start_and_is_not_in_the_way() -> None:
    rig = Rig(nodes=1)
    first = rig.submit(8, held=True)
    second = rig.submit(8)
    assert (rig.phase(first), rig.phase(second)) == ("Queued", "Starting")
    waiting = explain(rig.world, rig.job(first))
    assert waiting is not None
    assert (waiting.reason.code, waiting.reason.needed) == (Code.HELD, first)


def test_a_released_job_starts_in_its_old_place() -> None:
    rig = Rig(nodes=1)
    running, held, behind = rig.submit(8), rig.submit(8), rig.submit(8)
    rig.feed(event.HoldJob(held))
    rig.feed(event.ReleaseJob(held))
    rig.exit(running)
    assert (rig.phase(held), rig.phase(behind)) == ("Starting", "Queued")


def test_holding_twice_says_nothing_new() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(held=True)
    assert rig.feed(event.HoldJob(job)).facts == []
    rig.feed(event.ReleaseJob(job))
    assert rig.feed(event.ReleaseJob(job)).facts == []


def test_a_hold_of_what_runs_counts_when_it_waits_again() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.feed(event.HoldJob(job))
    assert rig.phase(job) == "Starting"
    outcome = rig.feed(event.RequeueJob(job))
    assert outcome.facts == [fact.StopAsked(job, Why.REQUEUE)]
    assert isinstance(outcome.instructions[0], Stop)
    rig.exit(job, code=143)
    assert (rig.phase(job), rig.job(job).failures) == ("Queued", 0)
    rig.feed(event.ReleaseJob(job))
    assert (rig.phase(job), rig.job(job).epoch) == ("Starting", 2)


def test_an_array_is_held_and_what_runs_of_it_goes_on() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=12)
    rig.feed(event.HoldJob(job))
    rig.feed(event.Exited(job, 1, 0, 0, 4))
    assert rig.world.arrays[job].counts[:2] == [4, 4]
    rig.feed(event.ReleaseJob(job))
    assert rig.world.arrays[job].counts[:2] == [0, 8]


def test_a_held_array_can_be_cancelled() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=12, held=True)
    rig.feed(event.Cancel(job))
    assert rig.phase(job) == "Cancelled"


@pytest.mark.parametrize("kind", [event.HoldJob, event.ReleaseJob, event.RequeueJob])
def test_who_is_over_or_unknown_is_refused(
    kind: type[event.HoldJob] | type[event.ReleaseJob] | type[event.RequeueJob],
) -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.exit(job)
    for number, code in ((job, Code.ALREADY_OVER), (9, Code.UNKNOWN_JOB)):
        answer = rig.answer(kind(number))
        assert isinstance(answer, Refused)
        assert answer.reason.code == code


def test_every_task_of_an_array_that_has_a_place_is_sent_back() -> None:
    rig = Rig(nodes=1)
    array = rig.submit(gpus=2, array=6, retries=1, grace_ms=5)
    rig.start(array, 0, 3)
    rig.exit(array, 0, 1, 1)
    outcome = rig.feed(event.RequeueJob(array, cause="ada"))
    told = fact.TasksMoved(array, 0, 1, TaskPhase.STOPPING, "ada", [2, 3], Why.REQUEUE)
    assert outcome.facts == [told], "those that run and those that start, and not the one that is over"
    assert [(item.first, item.count) for item in outcome.instructions if isinstance(item, Stop)] == [(0, 1), (2, 3)]
    assert rig.feed(event.RequeueJob(array)).facts == [], "once is enough"
    facts = rig.exit(array, 143, 2, 3).facts
    assert facts[0] == fact.TasksEnded(array, 2, 3, TaskPhase.QUEUED, Why.REQUEUE, 143)
    tasks = rig.world.arrays[array]
    assert not any(tasks.failures), "none of its retries is used up"
    assert tasks.counts[TaskPhase.SUCCEEDED] == 1


def test_an_array_that_is_cancelled_or_waits_is_not_sent_back() -> None:
    rig = Rig(nodes=1)
    array = rig.submit(gpus=8, array=2)
    rig.start(array, 0, 1)
    rig.feed(event.Cancel(array))
    assert rig.feed(event.RequeueJob(array)).facts == []
    other = rig.submit(gpus=8, array=2)
    assert rig.feed(event.RequeueJob(other)).facts == []


def test_a_held_array_that_is_sent_back_stays_away() -> None:
    rig = Rig(nodes=1)
    array = rig.submit(gpus=1, array=4)
    rig.start(array)
    rig.feed(event.HoldJob(array), event.RequeueJob(array))
    rig.exit(array, 143)
    assert rig.world.arrays[array].counts[TaskPhase.QUEUED] == 4
    rig.feed(event.ReleaseJob(array))
    assert rig.world.arrays[array].counts[TaskPhase.STARTING] == 4


def test_requeueing_what_waits_or_stops_does_nothing() -> None:
    rig = Rig(nodes=1)
    running, waiting = rig.submit(8), rig.submit(8)
    rig.feed(event.RequeueJob(running))
    for job in (running, waiting):
        outcome = rig.feed(event.RequeueJob(job))
        assert (outcome.facts, outcome.answers) == ([], [Done(job)])


@pytest.mark.parametrize("fields", [{}, {"array": 2}], ids=["gang", "array"])
def test_what_is_cancelled_and_still_stops_does_not_go_back(fields: dict[str, int]) -> None:
    rig = Rig(nodes=1)
    job = rig.submit(**fields)
    rig.start(job)
    rig.feed(event.Cancel(job))
    before = digest(rig.world)
    answer = rig.answer(event.RequeueJob(job))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.IS_STOPPING
    assert digest(rig.world) == before


def test_what_is_past_its_limit_does_not_go_back() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(limit_ms=HOUR_MS)
    rig.start(job)
    rig.feed(after_ms=HOUR_MS)
    answer = rig.answer(event.RequeueJob(job))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.IS_STOPPING
    rig.exit(job, 143)
    assert rig.phase(job) == "Failed"


def test_a_restored_world_still_holds() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(held=True)
    twin = restore(snapshot(rig.world))
    assert digest(twin) == digest(rig.world)
    assert twin.jobs[job].held


def test_a_story_of_a_hold() -> None:
    scene = Scene().cluster(nodes=1, gpus=8).job("train", gpus=8, minutes=60).run()
    scene.hold("train").requeue("train").advance(minutes=1).expect(waiting="train", reason={"train": Code.HELD})
    scene.release("train").advance(minutes=61).expect(succeeded="train")
