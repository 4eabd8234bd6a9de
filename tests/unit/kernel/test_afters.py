"""Dependencies: a job waits for others, joins its line when the last condition is met, and ends if one never can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.lifecycle.after import STAGES, TABLE, Verdict, judge, render
from muster.model import event, fact
from muster.model.after import AFTER_MAX, After, When
from muster.model.phase import Cancelled, TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig, spec
from muster.testing.scene import Scene
from muster.units import HOUR_MS
from muster.wire.words import put_in_words
from muster.world.invariants import check_world
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
        After(first, When.TASK_BY_TASK): Code.BAD_SPEC,
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
