"""How far tasks of an array say that they are: each for itself, in the try that says it, and what that is worth."""

from __future__ import annotations

import pytest

from muster.kernel.kernel import Kernel
from muster.kernel.progress import UNWRITTEN_MAX
from muster.model import event, fact
from muster.model.errors import InvariantError
from muster.model.goodput import Bucket, Mark
from muster.model.instruction import NOT_SAVED, Start
from muster.model.job import BarKind
from muster.model.phase import TaskPhase
from muster.model.reason import Code, Done, Refused
from muster.model.tenant import GPU, GPU_ONE, Line
from muster.testing.rig import Rig
from muster.units import MINUTE_MS
from muster.world.accounting import capacity_time, read_account
from muster.world.laws.invariants import check_world
from muster.world.laws.mark import LAW
from muster.world.snapshot import digest, restore, snapshot
from muster.world.tasks import Tasks


def up(tasks: int = 4, nodes: int = 1, gpus: int = 1, **fields: object) -> tuple[Rig, int]:
    """A rig with one array, all of whose tasks are up."""
    rig = Rig(nodes=nodes)
    job = rig.submit(gpus, array=tasks, **fields)
    rig.start(job)
    return rig, job


def tell(job: int, step: int, *tasks: int, epoch: int = 1, saved: bool = False, saving: bool = False) -> event.Event:
    """The word of a range of tasks."""
    first, count = tasks if len(tasks) == 2 else (tasks[0], 1)
    return event.Progressed(job, epoch, step, saved, "", saving, first, count)


def tasks_of(rig: Rig, job: int) -> Tasks:
    return rig.world.arrays[job]


def times(rig: Rig) -> dict[Bucket, int]:
    """The account, which adds up, and is the same of a restored world."""
    check_world(rig.world)
    account = read_account(rig.world, rig.now)["gpu"]
    assert sum(account.values()) == capacity_time(rig.world, "gpu", rig.now)
    twin = restore(snapshot(rig.world))
    check_world(twin)
    assert (digest(twin), read_account(twin, rig.now)["gpu"]) == (digest(rig.world), account)
    return account


def test_an_array_whose_tasks_say_nothing_has_no_columns_of_it() -> None:
    rig, job = up()
    assert tasks_of(rig, job).marks is None
    rig.feed(tell(job, 3, 1))
    marks = tasks_of(rig, job).marks
    assert marks is not None
    assert [marks.get(task) for task in range(4)] == [Mark(0), Mark(3), Mark(0), Mark(0)]
    rig.exit(job)
    assert tasks_of(rig, job).marks is None
    check_world(rig.world)


def test_what_tasks_say_alike_is_one_fact_of_those_that_can_say_so() -> None:
    rig, job = up()
    rig.exit(job, first=1, count=1)
    rig.feed(tell(job, 9, 3))
    outcome = rig.feed(tell(job, 5, 0, 4, saved=True))
    assert outcome.facts == [fact.TasksProgressed(job, 1, 0, 1, 5, True, more=[2, 1])]
    assert outcome.answers == [Done(job)]


def test_of_a_task_that_is_sent_back_only_what_it_did_since_its_checkpoint_is_lost() -> None:
    rig, job = up(2, gpus=8, nodes=2)
    rig.feed(tell(job, 5, 0, saved=True), after_ms=1000)
    rig.feed(event.RequeueJob(job), after_ms=300)
    account = times(rig)
    assert (account[Bucket.USEFUL], account[Bucket.LOST]) == (8000 * 1000, 8000 * (300 + 1300))
    rig.exit(job, 143)
    rig.start(job)
    rig.feed(event.Exited(job, 2, 0, 0, 2), after_ms=500)
    account = times(rig)
    assert (account[Bucket.USEFUL], account[Bucket.LOST]) == (8000 * (1000 + 2 * 500), 8000 * 1600)


def test_a_lost_node_loses_what_was_not_saved() -> None:
    rig, job = up(2, gpus=8, nodes=2)
    rig.feed(tell(job, 5, 0, 2, saved=True), after_ms=1000)
    rig.feed(event.NodeGone("node-0"), after_ms=400)
    account = times(rig)
    assert (account[Bucket.USEFUL], account[Bucket.LOST]) == (8000 * 2000, 8000 * 400)
    assert account[Bucket.PROVISIONAL] == 8000 * 400
    rig.feed(event.NodeSeen("node-0", rig.world.fleet.capacities[0]))
    marks = tasks_of(rig, job).marks
    assert marks is not None
    assert [marks.get(task).saved_step for task in range(2)] == [0, 5]


def test_a_new_try_begins_without_marks_and_an_old_one_is_refused() -> None:
    rig, job = up(1, retries=1)
    rig.feed(tell(job, 5, 0, saved=True))
    rig.exit(job, 1)
    rig.start(job)
    refused(rig, tell(job, 6, 0), Code.STALE_EPOCH)
    assert rig.answer(tell(job, 1, 0, epoch=2)) == Done(job)
    check_world(rig.world)


def refused(rig: Rig, item: event.Event, code: Code) -> Refused:
    """The answer, which is a refusal with that code and no fact."""
    outcome = rig.feed(item)
    answer = outcome.answers[0]
    assert isinstance(answer, Refused)
    assert (answer.reason.code, outcome.facts) == (code, [])
    return answer


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((6, 4), Code.BAD_AMOUNT),
        ((6, 2, 3), Code.BAD_AMOUNT),
        ((6, -1), Code.BAD_AMOUNT),
        ((4, 0), Code.BAD_AMOUNT),
        ((-1, 0), Code.BAD_AMOUNT),
        ((2**63, 0), Code.BAD_AMOUNT),
        ((6, 1), Code.ALREADY_OVER),
        ((6, 2), Code.UNEXPECTED),
    ],
)
def test_a_word_that_makes_no_sense_is_refused(words: tuple[int, ...], code: Code) -> None:
    rig, job = up(4)
    rig.feed(tell(job, 5, 0))
    rig.exit(job, first=1, count=1)
    rig.feed(event.BarNode("node-0", BarKind.DRAIN, "op", lets_finish=False))
    rig.feed(event.UnbarNode("node-0", BarKind.DRAIN, "op"))
    if code is not Code.UNEXPECTED:
        rig = _running_again(rig, job)
    refused(rig, tell(job, *words, epoch=1 if code in (Code.ALREADY_OVER, Code.UNEXPECTED) else 2), code)


def _running_again(rig: Rig, job: int) -> Rig:
    rig.feed(event.Exited(job, 1, 143, 0, 1, more=[2, 2]))
    rig.feed(event.Started(job, 2, 0, 1, more=[2, 2]))
    rig.feed(tell(job, 5, 0, epoch=2))
    return rig


def test_a_job_that_is_over_or_unknown_says_nothing() -> None:
    rig, job = up(1)
    rig.exit(job)
    refused(rig, tell(job, 1, 0), Code.ALREADY_OVER)
    refused(rig, tell(99, 1, 0), Code.UNKNOWN_JOB)


def test_what_a_task_writes_is_neither_of_use_nor_lost() -> None:
    rig, job = up(2, gpus=4)
    rig.feed(tell(job, 1, 0, saving=True), after_ms=1000)
    rig.feed(tell(job, 2, 0), after_ms=100)
    rig.feed(tell(job, 2, 0, saving=True), after_ms=50)
    account = times(rig)
    assert (account[Bucket.CHECKPOINTING], account[Bucket.PROVISIONAL]) == (4000 * 100, 4000 * (1050 + 1150))
    rig.feed(tell(job, 2, 0, saved=True), after_ms=10)
    assert (times(rig)[Bucket.USEFUL], times(rig)[Bucket.CHECKPOINTING]) == (4000 * 1050, 4000 * 110)
    rig.feed(tell(job, 3, 0, saving=True), after_ms=20)
    rig.exit(job, 1, first=0, count=1)
    account = times(rig)
    assert (account[Bucket.LOST], account[Bucket.CHECKPOINTING]) == (4000 * 20, 4000 * 111)


def test_a_checkpoint_is_not_begun_for_ever() -> None:
    rig, job = up(2)
    for step in range(2 * UNWRITTEN_MAX):
        rig.feed(tell(job, step, 0, saving=step % 2 == 0))
    refused(rig, tell(job, 999, 0, saving=True), Code.BAD_SPEC)
    refused(rig, event.Progressed(job, 1, 999, checkpointed=True, checkpointing=True), Code.BAD_SPEC)
    assert rig.answer(tell(job, 999, 0, 2, saving=True)) == Done(job)  # of the other one it counts
    assert rig.answer(tell(job, 999, 0, saved=True)) == Done(job)
    assert rig.answer(tell(job, 999, 0, saving=True)) == Done(job)
    check_world(rig.world)


def test_tasks_without_devices_have_marks_and_no_account() -> None:
    rig, job = up(2, gpus=0)
    rig.feed(tell(job, 1, 0, 2, saving=True))
    rig.feed(tell(job, 1, 0, saved=True))
    rig.exit(job)
    check_world(rig.world)


def test_who_has_saved_more_is_taken_first() -> None:
    """An owner takes back one of two places; both tasks are as old, and one has a checkpoint."""
    rig = Rig(nodes=1, gpus=2)
    rig.tenant("owner", Line(GPU, guaranteed=2 * GPU_ONE))
    job = rig.submit(1, array=2, tenant="guest")
    rig.start(job)
    rig.feed(tell(job, 5, 0, saved=True), after_ms=30 * MINUTE_MS)
    rig.feed(after_ms=MINUTE_MS)
    rig.submit(1, tenant="owner")
    rig.feed(after_ms=MINUTE_MS)
    phases = [TaskPhase(phase) for phase in tasks_of(rig, job).phase]
    assert phases == [TaskPhase.STOPPING, TaskPhase.RUNNING]


def test_a_fork_has_marks_of_its_own() -> None:
    rig, job = up(2)
    rig.feed(tell(job, 5, 0, saving=True), after_ms=1000)
    twin = rig.world.fork()
    rig.feed(tell(job, 6, 0, saved=True))
    marks = twin.arrays[job].marks
    assert marks is not None
    assert marks.rows() == [(0, Mark(5, is_writing=True), 1003, ((3, 1003),))]


def test_the_laws_see_marks_of_what_does_not_run() -> None:
    rig, job = up(2)
    rig.feed(tell(job, 5, 0, saved=True))
    marks = tasks_of(rig, job).marks
    assert marks is not None
    rig.feed(event.RequeueJob(job))
    marks.step[1] = 7
    with pytest.raises(InvariantError, match=LAW):
        check_world(rig.world)


def starts_of(rig: Rig, *events: event.Event) -> list[tuple[int, int, list[int]]]:
    """What a batch tells to start: which try of which tasks, and where they could resume."""
    told = [item for item in rig.feed(*events).instructions if isinstance(item, Start)]
    return [(start.epoch, start.first, start.resumes) for start in told]


def test_who_starts_again_is_told_of_its_last_checkpoint() -> None:
    rig, job = up(3, retries=2)
    rig.feed(tell(job, 0, 0, saved=True), tell(job, 5, 2, saved=True), tell(job, 9, 2))
    assert starts_of(rig, event.Exited(job, 1, 1, 0, 3)) == [(2, 0, [0, NOT_SAVED, 5])]
    check_world(rig.world)
    rig.start(job)
    twin = restore(snapshot(rig.world))
    rig.feed(tell(job, 2, 1, epoch=2, saved=True))
    assert starts_of(rig, event.Exited(job, 2, 1, 0, 2)) == [(3, 0, [0, 2])], "it outlives a try that saves nothing"
    told = Kernel(twin).handle([event.Exited(job, 2, 1, 2, 1)], rig.now).instructions
    assert [item.resumes for item in told if isinstance(item, Start)] == [[5]]


def test_who_never_saved_is_told_nothing() -> None:
    rig, job = up(2, retries=1)
    rig.feed(tell(job, 4, 0))
    assert starts_of(rig, event.Exited(job, 1, 1, 0, 2)) == [(2, 0, [])]


def test_a_gang_is_told_of_its_last_checkpoint_until_it_is_over() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, gang=2, retries=2)
    rig.start(job)
    rig.feed(event.Progressed(job, 1, 7, checkpointed=True), event.Progressed(job, 1, 9))
    assert starts_of(rig, event.Exited(job, 1, 1, 0, 2)) == [(2, 0, [7])]
    assert starts_of(rig, event.Exited(job, 2, 1, 0, 2)) == [(3, 0, [7])]
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    rig.exit(job)
    assert not rig.world.goodput.saves
    check_world(rig.world)
