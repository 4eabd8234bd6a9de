"""Dependencies: a job waits for others, joins its line when the last condition is met, and ends if one never can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.lifecycle.after import STAGES, TABLE, Verdict, judge, render
from muster.model import event, fact
from muster.model.after import AFTER_MAX, After, When
from muster.model.phase import Cancelled, TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.model.tenant import GPU, Line, gpu_amount
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig, spec
from muster.testing.scene import Scene
from muster.units import HOUR_MS
from muster.wire.words import put_in_words
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "dependencies.md"


def test_the_page_shows_the_table() -> None:
    assert render() in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("when", TABLE)
def test_what_is_over_leaves_nothing_open(when: When) -> None:
    assert len(TABLE[when]) == len(STAGES)
    for stage in (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED):
        assert judge(when, stage) != Verdict.OPEN


def after(when: When, *jobs: int) -> tuple[After, ...]:
    return tuple(After(job, when) for job in jobs)


def code_of(answer: Done | Refused) -> Code:
    assert isinstance(answer, Refused), answer
    return answer.reason.code


@pytest.mark.parametrize(
    ("when", "code", "becomes"),
    [
        (When.SUCCEEDED, 0, "Starting"),
        (When.SUCCEEDED, 1, "Cancelled"),
        (When.OVER, 0, "Starting"),
        (When.OVER, 1, "Starting"),
        (When.NOT_SUCCEEDED, 0, "Cancelled"),
        (When.NOT_SUCCEEDED, 1, "Starting"),
    ],
)
def test_what_becomes_of_who_waits_for_an_end(when: When, code: int, becomes: str) -> None:
    rig = Rig(nodes=2)
    first = rig.submit()
    second = rig.submit(after=after(when, first))
    rig.start(first)
    assert (rig.phase(second), rig.job(second).waits) == ("Queued", (first,))
    rig.exit(first, code)
    assert (rig.phase(second), rig.job(second).waits) == (becomes, ())
    check_world(rig.world)


def test_after_is_met_when_the_other_gets_a_place() -> None:
    rig = Rig(nodes=2)
    running, first = rig.submit(8, gang=2), rig.submit(8)
    second = rig.submit(after=after(When.STARTED, first))
    outcome = rig.exit(running)
    assert fact.AfterMet(first, [second], f"job {first} started") in outcome.facts
    assert outcome.wake_at == rig.now, "it is worth a try at once"
    rig.feed(after_ms=0)
    assert rig.phase(second) == "Starting"


def test_after_of_an_array_is_met_with_its_first_task() -> None:
    rig = Rig(nodes=1)
    array = rig.submit(8, array=3)
    second = rig.submit(0, after=after(When.STARTED, array))
    assert (rig.phase(second), rig.job(second).waits) == ("Starting", ())


def test_it_waits_for_the_last_of_several_and_keeps_its_place() -> None:
    rig = Rig(nodes=1)
    first, second = rig.submit(4), rig.submit(4)
    third = rig.submit(8, after=after(When.SUCCEEDED, second, first))
    later = rig.submit(8)
    rig.exit(second)
    assert rig.job(third).waits == (first,)
    rig.exit(first)
    assert (rig.phase(third), rig.phase(later)) == ("Starting", "Queued")


def test_a_chain_ends_with_its_first_link() -> None:
    """Who waits for one that failed is cancelled; who waits for that is cancelled too, or starts, as it says."""
    rig = Rig(nodes=2)
    first = rig.submit()
    second = rig.submit(after=after(When.SUCCEEDED, first))
    third = rig.submit(1, array=3, after=after(When.SUCCEEDED, second))
    cleaner = rig.submit(after=after(When.NOT_SUCCEEDED, third))
    outcome = rig.exit(first, 1)
    assert [rig.phase(job) for job in (second, third, cleaner)] == ["Cancelled", "Cancelled", "Starting"]
    assert rig.job(second).phase == Cancelled(rig.now, Why.DEPENDENCY)
    ended = [item for item in outcome.facts if isinstance(item, fact.Ended)]
    assert [(item.job, item.cause) for item in ended[1:]] == [
        (second, f"job {first} failed"),
        (third, f"job {second} cancelled"),
    ]
    assert not rig.world.successors
    check_world(rig.world)


def test_a_chain_of_a_thousand_ends_in_one_batch() -> None:
    rig = Rig(nodes=1)
    jobs = [rig.submit()]
    for _ in range(1000):
        jobs.append(rig.submit(after=after(When.SUCCEEDED, jobs[-1])))
    rig.feed(event.Cancel(jobs[1]))
    assert {rig.phase(job) for job in jobs[1:]} == {"Cancelled"}


def test_many_who_wait_for_one_are_one_fact() -> None:
    rig = Rig(nodes=1)
    first = rig.submit(8)
    waiting = [rig.submit(after=after(When.OVER, first)) for _ in range(20)]
    met = [item for item in rig.exit(first).facts if isinstance(item, fact.AfterMet)]
    assert met == [fact.AfterMet(first, waiting, f"job {first} succeeded")]


def test_a_lost_run_is_not_an_end() -> None:
    rig = Rig(nodes=1)
    first = rig.submit(retries=1)
    second = rig.submit(after=after(When.OVER, first))
    rig.exit(first, 1)
    assert (rig.job(first).epoch, rig.job(second).waits) == (2, (first,))


def test_what_waits_can_be_cancelled_and_held() -> None:
    rig = Rig(nodes=1)
    first = rig.submit()
    gone, kept = (rig.submit(after=after(When.OVER, first)) for _ in range(2))
    rig.feed(event.Cancel(gone), event.HoldJob(kept))
    reason = explain(rig.world, rig.job(kept))
    assert reason is not None
    assert reason.reason.code == Code.HELD
    rig.exit(first)
    assert (rig.phase(gone), rig.phase(kept)) == ("Cancelled", "Queued")
    rig.feed(event.ReleaseJob(kept))
    assert rig.phase(kept) == "Starting"


def test_why_names_who_it_waits_for() -> None:
    rig = Rig(nodes=1)
    first, second = rig.submit(), rig.submit()
    third = rig.submit(after=(*after(When.SUCCEEDED, first), *after(When.OVER, second)))
    found = explain(rig.world, rig.job(third))
    assert found is not None
    assert (found.reason.code, found.position) == (Code.WAITS_FOR_OTHERS, 0)
    assert put_in_words(found.reason).what == f"waiting for 2 other jobs: afterok:{first}, afterany:{second}"


def test_what_cannot_be_waited_for_is_refused() -> None:
    """A job cannot wait for itself, nor can there be a loop: it gets its number after all that it names."""
    rig = Rig(nodes=1)
    first = rig.submit()
    itself = rig.world.next_job
    refused = {
        After(0): Code.UNKNOWN_PREDECESSOR,
        After(-3): Code.UNKNOWN_PREDECESSOR,
        After(itself): Code.UNKNOWN_PREDECESSOR,
        After(first, When.TASK_BY_TASK): Code.UNLIKE,
    }
    for each, code in refused.items():
        assert code_of(rig.answer(event.Submit(spec(after=(each,))))) == code
    twice = after(When.OVER, first, first)
    assert code_of(rig.answer(event.Submit(spec(after=twice)))) == Code.BAD_SPEC
    many = after(When.OVER, *range(AFTER_MAX + 1))
    assert code_of(rig.answer(event.Submit(spec(after=many)))) == Code.TOO_LARGE
    assert rig.world.next_job == itself


def test_what_could_never_start_is_refused() -> None:
    rig = Rig(nodes=1)
    first = rig.submit()
    rig.exit(first, 1)
    answer = rig.answer(event.Submit(spec(after=after(When.SUCCEEDED, first))))
    assert code_of(answer) == Code.NEVER_AFTER
    assert rig.phase(rig.submit(after=after(When.NOT_SUCCEEDED, first))) == "Starting"


def test_a_job_that_retired_is_known_by_its_end_alone() -> None:
    rig = Rig(nodes=1)
    first = rig.submit()
    rig.exit(first)
    rig.feed(after_ms=HOUR_MS)
    assert first not in rig.world.jobs
    asked = spec(after=after(When.SUCCEEDED, first))
    assert code_of(rig.answer(event.Submit(asked))) == Code.PREDECESSOR_RETIRED
    assert code_of(rig.answer(event.Submit(asked, past={first: TaskPhase.FAILED}))) == Code.NEVER_AFTER
    answer = rig.answer(event.Submit(asked, past={first: TaskPhase.SUCCEEDED}))
    assert isinstance(answer, Done)
    assert rig.phase(answer.job) == "Starting"


def test_nobody_loses_what_it_waits_for_to_retirement() -> None:
    """The first of two retires long before the second ends: what it was waited for was met when it ended."""
    rig = Rig(nodes=1)
    first, second = rig.submit(4), rig.submit(4)
    third = rig.submit(8, after=after(When.SUCCEEDED, first, second))
    rig.exit(first)
    rig.feed(after_ms=HOUR_MS)
    assert first not in rig.world.jobs
    rig.exit(second)
    assert rig.phase(third) == "Starting"


def test_the_same_key_and_spec_are_the_same_job() -> None:
    """Also when the condition could not be met any more by a new one."""
    rig = Rig(nodes=1)
    first = rig.submit()
    asked = event.Submit(spec(after=after(When.SUCCEEDED, first)), key="k")
    answer = rig.answer(asked)
    rig.exit(first, 1)
    assert rig.answer(asked) == answer
    other = event.Submit(spec(after=after(When.OVER, first)), key="k")
    assert code_of(rig.answer(other)) == Code.KEY_REUSED


def test_a_restored_world_and_a_fork_wait_on() -> None:
    rig = Rig(nodes=1)
    first = rig.submit(8)
    second = rig.submit(8, after=after(When.SUCCEEDED, first))
    for twin in (restore(snapshot(rig.world)), rig.world.fork()):
        assert digest(twin) == digest(rig.world)
        assert twin.successors == {first: {second: None}}
        check_world(twin)


def test_a_story_of_a_pipeline() -> None:
    """prepare, then train and a watcher beside it; a report of the one that failed."""
    scene = Scene().cluster(nodes=1, gpus=8).job("prepare", gpus=1, minutes=10)
    scene.job("train", gpus=4, minutes=60, codes=[3], after=after(When.SUCCEEDED, scene.number("prepare")))
    scene.job("watch", gpus=1, minutes=5, after=after(When.STARTED, scene.number("train")))
    scene.job("publish", after=after(When.SUCCEEDED, scene.number("train")))
    scene.job("post-mortem", gpus=0, minutes=5, after=after(When.NOT_SUCCEEDED, scene.number("train"))).run()
    scene.expect(running="prepare", reason=dict.fromkeys(("train", "watch", "publish"), Code.WAITS_FOR_OTHERS))
    scene.advance(minutes=11).expect(running=["train", "watch"], succeeded="prepare")
    scene.advance(minutes=61).expect(running="post-mortem", failed="train", cancelled="publish")
    scene.advance(minutes=5).expect(succeeded=["prepare", "watch", "post-mortem"])


def follow(rig: Rig, *others: int, tasks: int = 4, **fields: Any) -> int:
    """An array that follows others task by task."""
    return rig.submit(array=tasks, after=after(When.TASK_BY_TASK, *others), **fields)


def phases(rig: Rig, job: int) -> list[str]:
    return [TaskPhase(phase).name.lower() for phase in rig.world.arrays[job].phase]


def test_a_task_follows_its_like_whatever_the_others_do() -> None:
    rig = Rig(nodes=2)
    first = rig.submit(array=4)
    second = follow(rig, first)
    assert phases(rig, second) == ["blocked"] * 4
    rig.start(first, count=4)
    rig.exit(first, first=2, count=1)
    assert phases(rig, second) == ["blocked", "blocked", "starting", "blocked"]
    rig.exit(first, first=1, count=1, code=1)
    assert phases(rig, second) == ["blocked", "cancelled", "starting", "blocked"]
    rig.exit(first, first=0, count=1)
    rig.exit(first, first=3, count=1)
    assert phases(rig, second) == ["starting", "cancelled", "starting", "starting"]
    assert rig.job(second).waits == ()
    check_world(rig.world)


def test_an_array_whose_likes_all_fail_is_over_and_so_is_the_one_behind_it() -> None:
    rig = Rig(nodes=2)
    first = rig.submit(array=4)
    second = follow(rig, first)
    third = follow(rig, second)
    rig.start(first, count=4)
    outcome = rig.exit(first, count=4, code=1)
    for job in (second, third):
        assert phases(rig, job) == ["cancelled"] * 4
        assert isinstance(rig.job(job).phase, Cancelled)
    ends = [item for item in outcome.facts if isinstance(item, fact.Ended)]
    assert [item.why for item in ends] == [Why.EXIT, Why.DEPENDENCY, Why.DEPENDENCY]
    check_world(rig.world)


def test_a_task_with_two_likes_follows_the_last_of_them() -> None:
    rig = Rig(nodes=3)
    one, two = rig.submit(array=4), rig.submit(array=4)
    both = follow(rig, one, two)
    rig.start(one, count=4)
    rig.start(two, count=4)
    rig.exit(one, count=4)
    assert phases(rig, both) == ["blocked"] * 4
    rig.exit(two, first=1, count=2)
    assert phases(rig, both) == ["blocked", "starting", "starting", "blocked"]
    check_world(rig.world)


def test_who_follows_a_job_that_is_over_is_decided_at_once() -> None:
    rig = Rig(nodes=2)
    first = rig.submit(array=4)
    rig.start(first, count=4)
    rig.exit(first, first=0, count=3)
    rig.exit(first, first=3, count=1, code=1)
    second = follow(rig, first)
    assert phases(rig, second) == ["starting", "starting", "starting", "cancelled"]
    assert not rig.world.successors
    check_world(rig.world)


def test_a_cancelled_array_takes_those_with_it_that_follow_what_had_not_begun() -> None:
    rig = Rig(nodes=1, gpus=2)
    first = rig.submit(1, array=4)
    second = follow(rig, first)
    rig.feed(event.Cancel(first))
    assert phases(rig, second) == ["blocked", "blocked", "cancelled", "cancelled"]
    check_world(rig.world)
    rig.feed(event.Cancel(second))
    assert isinstance(rig.job(second).phase, Cancelled)
    assert not rig.world.successors
    check_world(rig.world)


@pytest.mark.parametrize("tasks", [0, 3, 5])
def test_only_arrays_of_one_length_have_likes(tasks: int) -> None:
    rig = Rig(nodes=1)
    first = rig.submit(array=4)
    asked = spec(array=tasks, after=after(When.TASK_BY_TASK, first))
    before = digest(rig.world)
    assert code_of(rig.answer(event.Submit(asked))) == Code.UNLIKE
    assert digest(rig.world) == before


def test_a_blocked_array_says_whom_it_waits_for_and_is_the_same_when_restored() -> None:
    rig = Rig(nodes=1)
    first = rig.submit(array=4)
    second = follow(rig, first)
    waiting = explain(rig.world, rig.job(second))
    assert waiting is not None
    assert put_in_words(waiting.reason).what == "waiting for another job: aftercorr:1"
    twin = restore(snapshot(rig.world))
    assert digest(twin) == digest(rig.world)
    assert twin.successors == rig.world.successors
    check_world(twin)


def test_an_array_that_is_cancelled_while_some_of_it_runs_waits_for_nobody() -> None:
    rig = Rig(nodes=2)
    first = rig.submit(array=4)
    second = follow(rig, first)
    rig.start(first, count=4)
    rig.exit(first, first=0, count=1)
    rig.feed(event.Cancel(second))
    assert phases(rig, second) == ["stopping", "cancelled", "cancelled", "cancelled"]
    assert rig.job(second).waits == ()
    rig.exit(first, first=1, count=3)
    rig.exit(second, first=0, count=1)
    assert isinstance(rig.job(second).phase, Cancelled)
    check_world(rig.world)


def test_who_claims_places_for_all_its_tasks_that_wait_stops_waiting_for_the_one_it_follows() -> None:
    """An array that claims for all of them is in no line: there was none to take it out of."""
    rig = Rig(nodes=1)
    rig.tenant("owner", Line(GPU, guaranteed=gpu_amount(8)))
    first = rig.submit(1, array=2, tenant="owner")
    guest = rig.submit(6, tenant="guest")
    rig.start(first)
    rig.start(guest)
    second = rig.submit(4, array=2, tenant="owner", after=after(When.TASK_BY_TASK, first))
    rig.exit(first, first=0, count=1)
    assert rig.world.claims[second].width == 1
    assert rig.world.arrays[second].counts[TaskPhase.QUEUED] == 1
    rig.exit(first, code=1, first=1, count=1)
    assert rig.job(second).waits == ()
    check_world(rig.world)
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    rig.exit(guest, code=143)
    assert rig.world.arrays[second].counts[TaskPhase.STARTING] == 1
