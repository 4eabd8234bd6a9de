"""What engines report of tasks: only the newest try counts, and only its first word."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.instruction import Forget, Stop
from muster.model.phase import Failed, TaskPhase, Why
from muster.model.reason import Code, Reason, Refused
from muster.testing.rig import Rig
from muster.world.snapshot import digest


def refusal(rig: Rig, item: event.Event) -> Code:
    before = digest(rig.world)
    answer = rig.answer(item)
    assert isinstance(answer, Refused), answer
    assert digest(rig.world) == before
    return answer.reason.code


def test_a_job_starts_runs_and_succeeds() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.start(job)
    assert rig.phase(job) == "Running"
    outcome = rig.exit(job)
    assert rig.phase(job) == "Succeeded"
    assert outcome.instructions == [Forget(job, 1, 0, 1)]


def test_an_exit_may_come_before_its_start() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.exit(job)
    assert rig.phase(job) == "Succeeded"
    assert refusal(rig, event.Started(job, 1)) == Code.ALREADY_OVER


@pytest.mark.parametrize("item", [event.Started(5, 1), event.Exited(5, 1, 0)])
def test_nobody_unknown_is_heard(item: event.Event) -> None:
    assert refusal(Rig(nodes=1), item) == Code.UNKNOWN_JOB


def test_the_end_of_a_stranger_is_forgotten() -> None:
    rig = Rig(nodes=1)
    assert rig.feed(event.Exited(5, 3, 0, 2, 4)).instructions == [Forget(5, 3, 2, 4)]


@pytest.mark.parametrize(("first", "count"), [(-1, 1), (0, 0), (0, -1), (0, 3), (2, 1), (1, 2**62)])
def test_a_range_outside_the_job_is_refused(first: int, count: int) -> None:
    rig = Rig(nodes=2)
    job = rig.submit(8, gang=2)
    assert refusal(rig, event.Started(job, 1, first, count)) == Code.BAD_AMOUNT
    assert refusal(rig, event.Exited(job, 1, 0, first, count)) == Code.BAD_AMOUNT


def test_a_stale_epoch_is_refused_and_forgotten() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(retries=1)
    rig.exit(job, 1)
    assert rig.job(job).epoch == 2
    assert refusal(rig, event.Started(job, 1)) == Code.STALE_EPOCH
    assert refusal(rig, event.Exited(job, 1, 0)) == Code.STALE_EPOCH
    assert rig.outcomes[-1].instructions == [Forget(job, 1, 0, 1)]
    assert refusal(rig, event.Exited(job, 3, 0)) == Code.STALE_EPOCH


def test_what_waits_has_no_try_that_could_report() -> None:
    rig = Rig(nodes=1)
    rig.submit(8)
    waiting = rig.submit(8)
    assert refusal(rig, event.Exited(waiting, 0, 0)) == Code.STALE_EPOCH


def test_a_duplicate_changes_nothing() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(8, gang=2)
    rig.start(job)
    before = digest(rig.world)
    assert rig.start(job).facts == []
    rig.exit(job, 0, 0, 1)
    after = digest(rig.world)
    assert rig.exit(job, 0, 0, 1).facts == []
    assert rig.exit(job, 7, 0, 1).facts == [], "the first word about an end counts"
    assert before != after == digest(rig.world)


def test_a_gang_runs_when_every_rank_is_up() -> None:
    rig = Rig(nodes=3)
    job = rig.submit(8, gang=3)
    rig.start(job, 0, 2)
    assert rig.phase(job) == "Starting"
    rig.start(job, 2, 1)
    assert rig.phase(job) == "Running"


def test_a_gang_fails_with_its_first_failed_rank() -> None:
    rig = Rig(nodes=3)
    job = rig.submit(8, gang=3)
    rig.start(job)
    outcome = rig.exit(job, 9, 1, 1)
    assert rig.phase(job) == "Stopping"
    assert Stop(job, 1, 0, 3, 10_000) in outcome.instructions
    rig.exit(job, 143, 0, 1)
    rig.exit(job, 143, 2, 1)
    assert rig.job(job).phase == Failed(rig.now, Why.EXIT, 9)


def test_a_gang_succeeds_with_its_last_rank() -> None:
    rig = Rig(nodes=3)
    job = rig.submit(8, gang=3)
    rig.start(job)
    rig.exit(job, 0, 0, 2)
    assert rig.phase(job) == "Running"
    rig.exit(job, 0, 2, 1)
    assert rig.phase(job) == "Succeeded"


def test_retries_are_counted_and_end() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(retries=2)
    for epoch in (1, 2, 3):
        assert rig.job(job).epoch == epoch
        rig.exit(job, 5)
    assert rig.job(job).phase == Failed(rig.now, Why.EXIT, 5)


def test_a_requeued_job_keeps_its_place_in_the_line() -> None:
    rig = Rig(nodes=1)
    first = rig.submit(8, retries=1)
    second = rig.submit(8)
    rig.exit(first, 1)
    assert rig.phase(first) == "Starting"
    assert rig.phase(second) == "Queued"


def test_tasks_of_an_array_end_each_by_itself() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=6)
    rig.feed(event.Started(job, 1, 0, 6))
    rig.feed(event.Exited(job, 1, 0, 0, 3))
    rig.feed(event.Exited(job, 1, 2, 3, 1))
    assert rig.phase(job) == "Spread"
    rig.feed(event.Exited(job, 1, 0, 2, 4))
    assert rig.phase(job) == "Failed"
    assert rig.world.arrays[job].counts[TaskPhase.SUCCEEDED] == 5
    assert rig.world.arrays[job].counts[TaskPhase.FAILED] == 1


def test_a_task_of_an_array_is_tried_again_with_the_next_epoch() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=2, retries=1)
    outcome = rig.feed(event.Exited(job, 1, 1, 1, 1))
    assert [type(item).__name__ for item in outcome.facts] == ["TasksEnded", "TasksPlaced"]
    assert list(rig.world.arrays[job].epoch) == [1, 2]
    assert rig.feed(event.Exited(job, 1, 0, 1, 1)).facts == [], "the old try has nothing to say"
    rig.feed(event.Exited(job, 2, 0, 1, 1))
    rig.feed(event.Exited(job, 1, 0, 0, 1))
    assert rig.phase(job) == "Succeeded"


def test_tasks_that_end_in_any_order_are_one_fact() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(1, array=16)
    rig.feed(event.Started(job, 1, 3, 1, more=[0, 2, 7, 9]))
    assert [task for task, phase in enumerate(rig.world.arrays[job].phase) if phase == TaskPhase.RUNNING] == [
        *(0, 1, 3),
        *range(7, 16),
    ]
    outcome = rig.feed(event.Exited(job, 1, 0, 9, 2, more=[3, 1, 12, 1, 4, 1]))
    assert outcome.facts == [fact.TasksEnded(job, 3, 2, TaskPhase.SUCCEEDED, more=[9, 2, 12, 1])]
    assert outcome.instructions == [Forget(job, 1, 9, 2, [3, 1, 12, 1, 4, 1])]
    rig.feed(event.Exited(job, 1, 0, 0, 16))
    assert rig.phase(job) == "Succeeded"


@pytest.mark.parametrize("said", [2**62 + 1, 2**64 - 1])
def test_a_try_that_is_no_number_is_refused_for_tasks_of_arrays_too(said: int) -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=8)
    for word in (event.Started(job, said), event.Exited(job, said, 0), event.Progressed(job, said, 1)):
        answer = rig.answer(word)
        assert isinstance(answer, Refused)
        assert answer.reason == Reason(Code.BAD_AMOUNT, "epoch", said, 2**62, "from 1 to 2^62")
        assert rig.outcomes[-1].facts == []


def test_an_end_counts_though_what_was_used_is_no_amount() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1)
    rig.feed(event.Exited(job, 1, 0, cpu_ms=2**63, rss_bytes=5))
    assert rig.phase(job) == "Succeeded"
    assert rig.world.meters[job].cpu_ms == 0
    assert rig.world.meters[job].rss_bytes == 5


def test_an_end_that_is_said_twice_counts_once() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=8, retries=3)
    outcome = rig.feed(event.Exited(job, 1, 1, 2, 3, cpu_ms=500, more=[3, 1, 2, 1, 0, 1, 0, 1]))
    ended = [item for item in outcome.facts if isinstance(item, fact.TasksEnded)]
    assert ended == [fact.TasksEnded(job, 0, 1, TaskPhase.QUEUED, Why.EXIT, 1, more=[2, 3])]
    assert list(rig.world.arrays[job].failures) == [1, 0, 1, 1, 1, 0, 0, 0]
    again = rig.feed(event.Exited(job, 1, 1, 0, 1, cpu_ms=500, more=[2, 3]))
    assert again.facts == [], "what is said of an older try is not heard, and not metered"
    assert rig.world.meters[job].cpu_ms == 500


def test_a_report_may_be_about_an_older_try_of_some_of_its_tasks() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=4, retries=1)
    rig.feed(event.Exited(job, 1, 1, 1, 1, more=[3, 1]))
    assert list(rig.world.arrays[job].epoch) == [1, 2, 1, 2]
    outcome = rig.feed(event.Exited(job, 1, 0, 0, 1, more=[1, 1, 2, 1, 3, 1]))
    assert outcome.facts == [fact.TasksEnded(job, 0, 1, TaskPhase.SUCCEEDED, more=[2, 1])]
    outcome = rig.feed(event.Exited(job, 2, 1, 0, 4))
    assert outcome.facts[0] == fact.TasksEnded(job, 1, 1, TaskPhase.FAILED, Why.EXIT, 1, more=[3, 1])
    assert rig.phase(job) == "Failed"


@pytest.mark.parametrize("more", [[1], [-1, 1], [1, 0], [1, -1], [3, 2], [0, 1, 9, 1], [2**70, 1]])
def test_ranges_that_are_none_are_refused(more: list[int]) -> None:
    rig = Rig(nodes=1)
    array, gang = rig.submit(1, array=4), rig.submit(1, gang=4)
    for job in (array, gang):
        assert refusal(rig, event.Exited(job, 1, 0, 0, 1, more=more)) == Code.BAD_AMOUNT
        assert refusal(rig, event.Started(job, 1, 0, 1, more=more)) == Code.BAD_AMOUNT


def test_ranks_of_a_gang_end_in_any_order_too() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, gang=5)
    rig.feed(event.Started(job, 1, 3, 2, more=[0, 2]))
    assert rig.phase(job) == "Starting"
    rig.feed(event.Started(job, 1, 2, 1))
    assert rig.phase(job) == "Running"
    rig.feed(event.Exited(job, 1, 0, 4, 1, more=[1, 1, 4, 1]))
    assert rig.phase(job) == "Running"
    rig.feed(event.Exited(job, 1, 0, 2, 1, more=[0, 1, 3, 1, 0, 5]))
    assert rig.phase(job) == "Succeeded"


def test_a_gang_fails_with_its_first_failed_rank_wherever_it_is() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, gang=5)
    outcome = rig.feed(event.Exited(job, 1, 7, 4, 1, more=[1, 1, 4, 1]))
    assert sum(isinstance(item, fact.StopAsked) for item in outcome.facts) == 1
    rig.feed(event.Exited(job, 1, 143, 0, 1, more=[2, 2]))
    assert rig.job(job).phase == Failed(rig.now, Why.EXIT, 7)


def test_a_note_goes_into_the_cause() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    outcome = rig.feed(event.Exited(job, 1, 127, note="command not found", cause="node-0"))
    assert outcome.facts[0] == fact.Ended(job, TaskPhase.FAILED, Why.EXIT, 127, "node-0: command not found")
