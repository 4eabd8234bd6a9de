"""The goodput account as a reader sees it, and the marks of runs."""

from __future__ import annotations

import pytest

from muster.control.goodput import view_goodput
from muster.kernel.progress import UNWRITTEN_MAX
from muster.model import event, fact
from muster.model.goodput import Bucket, Mark
from muster.model.job import BarKind
from muster.model.reason import Code, Done, Refused
from muster.testing.rig import Rig
from muster.testing.scene import Scene
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS, Resources
from muster.world.accounting import read_account
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot


def times(rig: Rig, at: int | None = None) -> dict[Bucket, int]:
    return read_account(rig.world, rig.now if at is None else at)["gpu"]


def test_reading_later_adds_what_nobody_reported_and_changes_nothing() -> None:
    rig = Rig(nodes=1, gpus=8)
    job = rig.submit(2)
    rig.start(job)
    before = digest(rig.world)
    now, later = times(rig), times(rig, rig.now + HOUR_MS)
    assert later[Bucket.PROVISIONAL] - now[Bucket.PROVISIONAL] == 2000 * HOUR_MS
    assert later[Bucket.NO_DEMAND] - now[Bucket.NO_DEMAND] == 6000 * HOUR_MS
    assert digest(rig.world) == before


def test_shares_of_a_device_and_cpu_jobs_count_as_what_they_hold() -> None:
    rig = Rig(nodes=1, gpus=1)
    shared = rig.submit(ask=Resources(cpu_milli=1000, gpu_milli=250))
    rig.submit(0)
    rig.start(shared)
    rig.feed(after_ms=1000)
    begun = times(rig)[Bucket.PROVISIONAL]
    assert begun == 250 * 1000
    rig.exit(shared)
    assert times(rig)[Bucket.USEFUL] == 250 * 1001


def test_a_tenant_sees_what_it_held() -> None:
    rig = Rig(nodes=1, gpus=8)
    jobs = [rig.submit(2, tenant=name) for name in "ab"]
    rig.feed(after_ms=MINUTE_MS)
    for job in jobs:
        rig.exit(job)
    views = [view_goodput(rig.world, rig.now, name) for name in ("a", "b", "c")]
    assert [len(view.flavors) for view in views] == [1, 1, 0]
    fleet = view_goodput(rig.world, 0)
    held = sum(view.flavors[0].time["starting"] for view in views[:2])
    assert (fleet.at_ms, fleet.flavors[0].time["starting"]) == (rig.now, held)


def test_marks_are_those_of_a_run() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, retries=1)
    rig.start(job)
    rig.feed(event.Progressed(job, 1, 5))
    assert rig.world.goodput.marks == {job: Mark(5)}
    outcome = rig.feed(event.Progressed(job, 1, 7, checkpointed=True))
    assert outcome.facts == [fact.Progressed(job, 7, True)]
    assert rig.world.goodput.marks == {job: Mark(7, 7, rig.now)}
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    saved = times(rig)[Bucket.USEFUL]
    rig.feed(event.Progressed(job, 1, 9), after_ms=1000)
    rig.exit(job, 1)
    assert (times(rig)[Bucket.USEFUL], times(rig)[Bucket.LOST]) == (saved, 1000 * 1001)
    assert not rig.world.goodput.marks
    check_world(rig.world)


def test_what_a_run_writes_is_neither_of_use_nor_lost() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, retries=1)
    rig.start(job)
    rig.feed(event.Progressed(job, 1, 5, checkpointing=True), after_ms=1000)
    assert rig.world.goodput.marks == {job: Mark(5, is_writing=True)}
    assert times(rig, rig.now + 50)[Bucket.CHECKPOINTING] == 1000 * 50
    rig.feed(event.Progressed(job, 1, 6), after_ms=100)
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    rig.feed(event.Progressed(job, 1, 7, checkpointing=True), after_ms=1000)
    rig.feed(event.Progressed(job, 1, 7, checkpointed=True), after_ms=100)
    assert (times(rig)[Bucket.USEFUL], times(rig)[Bucket.CHECKPOINTING]) == (1000 * 2000, 1000 * 200)
    rig.feed(event.Progressed(job, 1, 8, checkpointing=True), after_ms=1000)
    rig.feed(after_ms=299)
    rig.exit(job, 1)
    assert (times(rig)[Bucket.LOST], times(rig)[Bucket.CHECKPOINTING]) == (1000 * 1000, 1000 * 500)
    assert times(rig)[Bucket.USEFUL] == 1000 * 2000
    assert not rig.world.goodput.carries
    check_world(rig.world)


def test_who_holds_no_device_writes_for_nothing() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(0)
    rig.start(job)
    rig.feed(event.Progressed(job, 1, 5, checkpointing=True))
    rig.exit(job)
    assert not rig.world.goodput.carries
    check_world(rig.world)


def test_a_checkpoint_is_begun_or_written_and_not_both_nor_begun_for_ever() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1)
    rig.start(job)
    answers = [rig.answer(event.Progressed(job, 1, 5, checkpointed=True, checkpointing=True))]
    for step in range(2 * UNWRITTEN_MAX):
        rig.feed(event.Progressed(job, 1, step, checkpointing=step % 2 == 1))
    begins = event.Progressed(job, 1, 9999, checkpointing=True)
    answers.append(rig.answer(begins))
    assert [isinstance(each, Refused) and each.reason.code for each in answers] == [Code.BAD_SPEC, Code.BAD_SPEC]
    rig.feed(event.Progressed(job, 1, 9999, checkpointed=True))
    assert rig.answer(begins) == Done(job)


@pytest.mark.parametrize(
    ("epoch", "step", "code"),
    [(2, 9, Code.STALE_EPOCH), (1, 4, Code.BAD_AMOUNT), (1, -1, Code.BAD_AMOUNT), (1, 2**63, Code.BAD_AMOUNT)],
)
def test_a_mark_that_makes_no_sense_is_refused(epoch: int, step: int, code: Code) -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1)
    rig.start(job)
    rig.feed(event.Progressed(job, 1, 5))
    answer = rig.answer(event.Progressed(job, epoch, step))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code


def test_who_does_not_run_has_no_marks() -> None:
    rig = Rig(nodes=1)
    starting, array = rig.submit(1), rig.submit(1, array=2)
    over = rig.submit(1)
    rig.exit(over)
    codes = []
    for job in (starting, array, over, 99):
        answer = rig.answer(event.Progressed(job, 1, 5))
        assert isinstance(answer, Refused)
        codes.append(answer.reason.code)
    assert codes == [Code.UNEXPECTED, Code.UNEXPECTED, Code.ALREADY_OVER, Code.UNKNOWN_JOB]


def test_the_tasks_of_an_array_are_judged_each_at_its_end() -> None:
    rig = Rig(nodes=1, gpus=4)
    job = rig.submit(1, array=4, retries=1)
    rig.feed(event.Started(job, 1, 0, 4))
    rig.feed(after_ms=1000)
    rig.feed(event.Exited(job, 1, 0, 0, 2))
    rig.feed(event.Exited(job, 1, 1, 2, 1))
    ran = 1001
    assert times(rig)[Bucket.USEFUL] == 2 * 1000 * ran
    assert times(rig)[Bucket.LOST] == 1000 * (ran + 1)
    rig.feed(event.Started(job, 2, 2, 1), after_ms=500)
    assert times(rig)[Bucket.RESTARTING] == 1000 * 500
    assert digest(restore(snapshot(rig.world))) == digest(rig.world)
    check_world(rig.world)


def test_a_device_that_is_not_there_is_gone() -> None:
    scene = Scene().cluster(nodes=1, gpus=4, ids=True).job("train", gpus=1, minutes=30).run()
    scene.lose_device("node-0", 3).advance(minutes=10)
    account = read_account(scene.body.world, scene.body.agenda.now)["gpu"]
    assert 0 < 1000 * 10 * MINUTE_MS - account[Bucket.GONE] < 1000 * SECOND_MS, "from when it was heard of"
    scene.mend_devices("node-0", "node-0.gpu-0", "node-0.gpu-1", "node-0.gpu-2", "node-0.gpu-3").advance(minutes=25)
    account = read_account(scene.body.world, scene.body.agenda.now)["gpu"]
    assert account[Bucket.USEFUL] == 1000 * 30 * MINUTE_MS


def test_what_is_claimed_is_not_idle_and_a_cordon_comes_first() -> None:
    rig = Rig(nodes=1, gpus=4)
    low = [rig.submit(2, tier="opportunistic", grace_ms=HOUR_MS) for _ in range(2)]
    rig.submit(3, tier="critical")
    rig.exit(low[0], 143)
    spent = []
    for item in (event.BarNode("node-0", BarKind.CORDON, "op"), event.UnbarNode("node-0", BarKind.CORDON, "op")):
        before = times(rig)
        rig.feed(after_ms=MINUTE_MS)
        spent.append({bucket: time - before[bucket] for bucket, time in times(rig).items() if time != before[bucket]})
        check_world(rig.world)
        assert digest(restore(snapshot(rig.world))) == digest(rig.world)
        rig.feed(item)
    stopping = {Bucket.STOPPING: 2000 * MINUTE_MS}
    assert spent == [stopping | {each: 2000 * MINUTE_MS} for each in (Bucket.CLAIMED, Bucket.BARRED)]
