"""Due times: a wish about the order among a tenant's own jobs, said early when it may not be kept."""

from __future__ import annotations

import pytest

from muster.control.views import view_why
from muster.model import event
from muster.model.reason import Code, Done, Refused
from muster.model.tier import Tier
from muster.scheduler.reasons import find_lateness
from muster.testing.rig import Rig, spec
from muster.units import HOUR_MS, INSTANT_MAX, MINUTE_MS
from muster.wire.words import put_in_words
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot


def lateness(rig: Rig, job: int) -> Code | None:
    reason = find_lateness(rig.job(job), rig.now)
    return None if reason is None else reason.code


def test_the_earliest_due_time_goes_first_and_who_has_none_last() -> None:
    rig = Rig(nodes=1)
    blocker = rig.submit(8)
    none, late, soon = (rig.submit(8, due_at=due) for due in (None, 9 * HOUR_MS, 5 * HOUR_MS))
    order: list[int] = []
    for _ in range(3):
        rig.exit(order[-1] if order else blocker)
        order.append(next(job for job in (none, late, soon) if job not in order and rig.phase(job) == "Starting"))
    assert order == [soon, late, none]


def test_who_leaves_the_line_leaves_its_due_time() -> None:
    rig = Rig(nodes=1)
    blocker = rig.submit(8)
    jobs = [rig.submit(8, due_at=HOUR_MS + number) for number in range(200)]
    for job in jobs[:150]:
        rig.feed(event.Cancel(job))
    rig.feed(event.HoldJob(jobs[150]))
    rig.feed(event.ReleaseJob(jobs[150]))
    check_world(rig.world)
    (line,) = {rig.world.queue.line_of(rig.job(job)) for job in jobs[150:]}
    assert len(line.dated) < 150 + 64, "it clears away those who left"
    rig.exit(blocker)
    assert rig.phase(jobs[150]) == "Starting"


@pytest.mark.parametrize(("due_at", "code"), [(2, Code.DUE_ALREADY), (0, Code.BAD_AMOUNT), (-1, Code.BAD_AMOUNT)])
def test_a_due_time_that_is_past_is_refused(due_at: int, code: Code) -> None:
    rig = Rig(nodes=1)
    answer = rig.feed(event.Submit(spec(due_at=due_at)), after_ms=1).answers[0]
    assert isinstance(answer, Refused)
    assert answer.reason.code == code


def test_the_last_instant_can_be_due_and_none_after_it() -> None:
    rig = Rig(nodes=1)
    assert isinstance(rig.answer(event.Submit(spec(due_at=INSTANT_MAX))), Done)
    assert isinstance(rig.answer(event.Submit(spec(due_at=INSTANT_MAX + 1))), Refused)


def test_the_same_key_is_the_same_job_though_its_due_time_is_past() -> None:
    rig = Rig(nodes=1)
    asked = event.Submit(spec(due_at=HOUR_MS), key="k")
    answer = rig.answer(asked)
    rig.feed(after_ms=2 * HOUR_MS)
    assert rig.answer(asked) == answer


def test_it_is_said_early_that_it_may_be_late() -> None:
    rig = Rig(nodes=1)
    blocker = rig.submit(8)
    job = rig.submit(8, due_at=3 * HOUR_MS, limit_ms=HOUR_MS)
    assert lateness(rig, job) is None
    rig.feed(after_ms=2 * HOUR_MS - rig.now)
    assert lateness(rig, job) is None, "exactly in time"
    rig.exit(blocker)
    assert lateness(rig, job) == Code.MAY_BE_LATE
    rig.start(job)
    rig.feed(after_ms=MINUTE_MS)
    assert lateness(rig, job) == Code.MAY_BE_LATE, "its limit counts from when it began"
    rig.feed(after_ms=HOUR_MS)
    assert lateness(rig, job) == Code.IS_LATE
    rig.exit(job)
    assert lateness(rig, job) is None


def test_a_restored_world_and_a_fork_keep_due_times() -> None:
    rig = Rig(nodes=1)
    rig.submit(8)
    jobs = [rig.submit(8, due_at=HOUR_MS * due) for due in (9, 3, 5)]
    for twin in (restore(snapshot(rig.world)), rig.world.fork()):
        assert digest(twin) == digest(rig.world)
        check_world(twin)
        assert twin.queue.line_of(rig.job(jobs[0])).first(-1) == rig.world.queue.line_of(rig.job(jobs[0])).first(-1)


def test_what_it_expects_says_earlier_and_better_whether_it_can_make_it() -> None:
    rig = Rig(nodes=1)
    rig.submit(8)
    due = 2 * HOUR_MS
    safe = rig.submit(8, due_at=due, limit_ms=5 * HOUR_MS, expect_ms=HOUR_MS)
    assert lateness(rig, safe) is None, "its limit alone would say that it may be late"
    tight = rig.submit(8, due_at=due, expect_ms=3 * HOUR_MS)
    reason = find_lateness(rig.job(tight), rig.now)
    assert reason is not None
    assert put_in_words(reason).what.startswith("due at 1970-01-01 02:00:00.000Z; if it takes as long as it expects")


def test_a_job_that_may_start_only_when_it_is_too_late_says_so_at_once() -> None:
    rig = Rig(nodes=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)))
    rig.submit(8, limit_ms=3 * HOUR_MS)
    job = rig.submit(8, due_at=4 * HOUR_MS, limit_ms=2 * HOUR_MS)
    assert lateness(rig, job) is None, "if it started now"
    late = view_why(rig.world, rig.job(job)).late
    assert late.startswith("due at 1970-01-01 04:00:00.000Z; if it takes its whole limit, it ends at 1970-01-01 05:00")
