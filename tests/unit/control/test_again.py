"""Tasks of an array that failed come back as those of a new one: each once, and with the number that it had."""

from __future__ import annotations

import pytest

from muster.control.again import Failures, find_failures, make_again
from muster.control.story import tell
from muster.model import event, fact
from muster.model.after import After, When
from muster.model.again import Again, find_again_fault, find_place, index_spans, indexes_of
from muster.model.errors import RejectedError
from muster.model.fact import jobs_of
from muster.model.phase import TaskPhase
from muster.model.reason import Code, Done, Refused
from muster.model.spec import Spec, bring_back
from muster.testing.rig import Rig, spec
from muster.wire.codec import Entry
from muster.wire.words import put_in_words
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot

HERE = Again(12, (3, 1, 7, 3), 20)
#              place 0 · places 1, 2, 3


def failed(*tasks: int, array: int = 6, name: str = "") -> Rig:
    """An array whose other tasks succeeded."""
    rig = Rig(nodes=1)
    rig.answer(event.Submit(spec(array=array, name=name)))
    rig.start(1)
    for task in range(array):
        rig.exit(1, 1 if task in tasks else 0, task, 1)
    return rig


def entries_of(rig: Rig, job: int) -> list[Entry]:
    kept = [each for each in rig.outcomes if any(job in jobs_of(item) for item in each.facts)]
    return [Entry(1, each.seq, each.at, each.facts) for each in kept]


def failures(rig: Rig, job: int) -> Failures:
    """What the journal says of it. Nothing here waits for anybody, so that one step is all of it."""

    async def read(number: int) -> list[Entry]:
        return entries_of(rig, number)

    asked = find_failures(read, job, entries_of(rig, job))
    with pytest.raises(StopIteration) as ended:
        asked.send(None)
    found: Failures = ended.value.value
    return found


def bring(rig: Rig, job: int = 1, key: str = "") -> int:
    answer = rig.answer(event.Submit(make_again(failures(rig, job), job, rig.now), key))
    assert isinstance(answer, Done), answer
    return answer.job


def story(rig: Rig, job: int) -> list[str]:
    return [line.what for line in tell(entries_of(rig, job), job, rig.world.fleet.names).lines]


def test_a_task_has_a_place_and_an_index() -> None:
    assert list(indexes_of(HERE, 4)) == [3, 7, 8, 9]
    assert list(indexes_of(None, 4)) == [0, 1, 2, 3]
    assert [find_place(HERE, 4, index) for index in (3, 7, 9, 4, 10)] == [0, 1, 3, None, None]
    assert [find_place(None, 4, index) for index in (0, 3, 4)] == [0, 3, None]
    assert list(index_spans(HERE, [(0, 2), (3, 1)])) == [(3, 1), (7, 1), (9, 1)]
    assert list(index_spans(None, [(0, 2)])) == [(0, 2)]


@pytest.mark.parametrize(
    ("tasks", "count", "code"),
    [
        ((3, 1, 7, 3), 3, Code.BAD_SPEC),
        ((3, 1, 7), 4, Code.BAD_SPEC),
        ((7, 3, 3, 1), 4, Code.BAD_SPEC),
        ((3, 1, 4, 1), 2, Code.BAD_SPEC),
        ((-1, 2), 2, Code.BAD_SPEC),
        ((19, 2), 2, Code.BAD_SPEC),
        ((3, 0), 0, Code.BAD_SPEC),
        ((), 0, Code.BAD_SPEC),
        (tuple(range(40_002)), 1, Code.TOO_LARGE),
    ],
)
def test_ranges_that_are_none_are_refused(tasks: tuple[int, ...], count: int, code: Code) -> None:
    fault = find_again_fault(Again(12, tasks, 20), count)
    assert fault is not None
    assert fault.code == code
    assert find_again_fault(HERE, 4) is None


def test_what_failed_runs_again_as_it_did_and_the_first_stays_over() -> None:
    rig = failed(1, 3, 4, name="sweep")
    assert rig.world.jobs[1].phase.__class__.__name__ == "Failed"
    new = bring(rig)
    made = rig.world.jobs[new].spec
    assert (made.array, made.name, made.again) == (3, "sweep", Again(1, (1, 1, 3, 2), 6))
    assert rig.world.arrays[1].counts[TaskPhase.FAILED] == 3
    rig.start(new)
    rig.exit(new, 0)
    assert story(rig, 1)[-1] == "tasks 1, 3-4 run again as job 2"
    assert story(rig, new) == [
        "accepted: 3 tasks of 1 GPU, 1 CPU, 1Gi, tasks 1, 3-4 of job 1 again, tenant default",
        "tasks 1, 3-4 placed on node-0, devices 0-2",
        "tasks 1, 3-4 running",
        "tasks 1, 3-4 succeeded",
        "ended: succeeded",
    ]
    check_world(rig.world)


def test_an_array_that_goes_on_gives_back_what_failed_so_far() -> None:
    rig = Rig(nodes=1)
    rig.submit(array=6)
    rig.start(1)
    rig.exit(1, 1, 2, 1)
    bring(rig)
    rig.exit(1, 1, 4, 1)
    third = bring(rig)
    assert rig.world.jobs[third].spec.again == Again(1, (4, 1), 6), "task 2 is with somebody else"
    check_world(rig.world)


def test_what_fails_a_second_time_is_brought_back_from_there() -> None:
    rig = failed(1, 3, 4)
    second = bring(rig)
    rig.start(second)
    rig.exit(second, 1, 1, 2)
    with pytest.raises(RejectedError, match="what did runs again as job 2"):
        bring(rig)
    rig.exit(second, 0, 0, 1)
    third = bring(rig, second)
    assert rig.world.jobs[third].spec.again == Again(second, (3, 2), 6)
    assert story(rig, third)[0].startswith("accepted: 2 tasks of 1 GPU, 1 CPU, 1Gi, tasks 3-4 of job 2 again")
    check_world(rig.world)


def test_what_was_given_up_is_anybodys_again() -> None:
    rig = failed(1, 3, 4)
    second = bring(rig)
    rig.start(second)
    rig.exit(second, 0, 0, 1)
    rig.feed(event.Cancel(second))
    with pytest.raises(RejectedError):
        bring(rig)
    rig.exit(second, 143, 1, 2)
    third = bring(rig)
    assert rig.world.jobs[third].spec.again == Again(1, (3, 2), 6), "task 1 has succeeded"
    check_world(rig.world)


def test_who_is_quicker_has_them() -> None:
    rig = failed(1, 3)
    wanted = make_again(failures(rig, 1), 1, rig.now)
    assert rig.answer(event.Submit(wanted, "a")) == Done(2)
    assert rig.answer(event.Submit(wanted, "a")) == Done(2), "the same key never makes two"
    answer = rig.answer(event.Submit(wanted, "b"))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.detail) == (Code.NOTHING_FAILED, "task 1 runs again as job 2")


@pytest.mark.parametrize(
    ("again", "tenant", "code"),
    [
        (Again(1, (2, 1), 6), "default", Code.NOTHING_FAILED),
        (Again(1, (1, 2), 6), "default", Code.NOTHING_FAILED),
        (Again(1, (7, 1), 9), "default", Code.NOTHING_FAILED),
        (Again(1, (1, 1), 6), "another", Code.NOTHING_FAILED),
        (Again(2, (0, 1), 1), "default", Code.NOTHING_FAILED),
        (Again(9, (1, 1), 6), "default", Code.UNKNOWN_JOB),
    ],
)
def test_what_did_not_fail_does_not_run_again(again: Again, tenant: str, code: Code) -> None:
    rig = failed(1, 3)
    rig.submit()
    tasks = sum(again.tasks[1::2])
    answer = rig.answer(event.Submit(Spec(("x",), array=tasks, again=again, tenant=tenant)))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code


@pytest.mark.parametrize("tasks", [(), (0, 1)])
def test_nothing_failed(tasks: tuple[int, ...]) -> None:
    rig = failed(*tasks, array=2)
    if tasks:
        bring(rig)
    with pytest.raises(RejectedError) as refused:
        bring(rig)
    why = "what did runs again as job 2" if tasks else "none of its tasks did"
    assert put_in_words(refused.value.reason).what == f"nothing of job 1 failed that could run again: {why}"


def test_it_starts_at_once_whatever_the_first_waited_for() -> None:
    rig = failed(1)
    first = Spec(("x",), array=3, after=(After(1, When.OVER),), due_at=5, held=True)
    made = make_again(Failures(first, bytearray(b"\0\1\0"), {}), 2, now=10)
    assert (made.after, made.held, made.due_at) == ((), False, None)
    assert make_again(Failures(first, bytearray(b"\0\1\0"), {}), 2, now=4).due_at == 5
    assert rig.world.jobs[1].spec.again is None


def test_nobody_follows_some_of_an_array_task_by_task() -> None:
    rig = failed(1, 3)
    second = bring(rig)
    answer = rig.answer(event.Submit(Spec(("x",), array=2, after=(After(second, When.TASK_BY_TASK),))))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.UNLIKE


def test_it_is_content_and_the_first_may_be_long_gone() -> None:
    rig = failed(1, 3)
    second = bring(rig)
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    del rig.world.jobs[1], rig.world.arrays[1]
    answer = rig.answer(event.Submit(bring_back(rig.world.jobs[second].spec, 1, (1, 1))))
    assert isinstance(answer, Refused), "that somebody has it is known all the same"
    assert any(isinstance(item, fact.Accepted) and 1 in jobs_of(item) for item in rig.outcomes[-2].facts)
