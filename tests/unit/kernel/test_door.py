"""The one door: time never goes back, time alone brings things about, and a quiet batch leaves no trace."""

from __future__ import annotations

import pytest

from muster.kernel.kernel import Kernel
from muster.kernel.reactors import REACTORS
from muster.kernel.turn import Turn
from muster.lifecycle.gang import retires_at
from muster.model import event, fact
from muster.model.errors import RejectedError
from muster.model.instruction import Start, Stop
from muster.model.phase import Failed, Why
from muster.model.reason import Code
from muster.scheduler import cycle
from muster.testing.rig import Rig, spec
from muster.world.snapshot import digest, restore, snapshot


def test_every_kind_of_event_has_its_reactor() -> None:
    assert set(REACTORS) == set(event.Event.__args__)


def test_time_that_goes_back_is_refused_and_changes_nothing() -> None:
    rig = Rig(nodes=1)
    before = digest(rig.world)
    with pytest.raises(RejectedError) as caught:
        rig.kernel.handle([event.Submit(spec())], rig.now - 1)
    assert caught.value.reason.code == Code.TIME_WENT_BACK
    assert (caught.value.reason.needed, caught.value.reason.available) == (rig.now, rig.now - 1)
    assert digest(rig.world) == before
    assert rig.kernel.handle([], rig.now).facts == []


def test_time_counts_also_when_a_batch_led_to_nothing() -> None:
    rig = Rig(nodes=1)
    rig.kernel.handle([], rig.now + 50)
    with pytest.raises(RejectedError):
        rig.kernel.handle([], rig.now + 49)


def test_a_restored_kernel_goes_on_from_its_worlds_time() -> None:
    rig = Rig(nodes=1)
    kernel = Kernel(restore(snapshot(rig.world)))
    with pytest.raises(RejectedError):
        kernel.handle([], rig.now - 1)


def test_a_batch_without_facts_is_no_entry() -> None:
    rig = Rig(nodes=1)
    seq, before = rig.world.seq, digest(rig.world)
    outcome = rig.feed()
    assert (outcome.seq, outcome.facts, outcome.answers, outcome.wake_at) == (seq, [], [], None)
    assert digest(rig.world) == before


def test_later_events_of_a_batch_see_earlier_ones() -> None:
    rig = Rig(nodes=1)
    outcome = rig.feed(event.Submit(spec()), event.Cancel(1), event.Cancel(1))
    assert [type(answer).__name__ for answer in outcome.answers] == ["Done", "Done", "Refused"]
    assert rig.phase(1) == "Cancelled"


def test_a_limit_wakes_the_kernel_and_ends_the_run() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(limit_ms=500, retries=3)
    wakes = [rig.outcomes[-1].wake_at, rig.start(job).wake_at]
    assert wakes == [None, rig.now + 500], "the limit counts from the start of the run"
    assert rig.feed(after_ms=499).facts == []
    outcome = rig.feed(after_ms=1)
    assert outcome.instructions == [Stop(job, 1, 0, 1, 10_000)]
    rig.exit(job, 143)
    assert rig.job(job).phase == Failed(rig.now, Why.LIMIT, 143)


def test_a_run_that_ended_in_time_has_no_limit_any_more() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(limit_ms=500)
    rig.start(job)
    rig.exit(job)
    assert rig.feed(after_ms=1000).facts == []


def test_a_job_that_is_over_retires_in_time() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.exit(job)
    wake_at = rig.outcomes[-1].wake_at
    assert wake_at == retires_at(rig.now)
    assert rig.feed(after_ms=wake_at - rig.now - 1).facts == []
    rig.feed(after_ms=1)
    assert job not in rig.world.jobs
    assert (rig.world.accepted, rig.world.retired) == (1, 1)


def test_a_key_is_free_again_when_its_job_has_retired() -> None:
    rig = Rig(nodes=1)
    rig.feed(event.Submit(spec(), "k"))
    rig.exit(1)
    rig.feed(after_ms=10**7)
    assert not rig.world.keys


def test_what_one_cycle_leaves_over_wakes_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycle, "STARTS_MAX", 2)
    rig = Rig(nodes=1)
    outcome = rig.feed(*(event.Submit(spec()) for _ in range(5)))
    wakes, starts = [outcome.wake_at], [len(outcome.instructions)]
    for _ in range(2):
        outcome = rig.feed(after_ms=0)
        wakes.append(outcome.wake_at)
        starts.append(len(outcome.instructions))
    assert starts == [2, 2, 1]
    assert wakes == [rig.now, rig.now, None]


def test_what_a_fact_says_of_starts_is_what_the_runs_say() -> None:
    rig = Rig(nodes=3)
    rig.feed(event.Submit(spec(8, gang=2)), event.Submit(spec(2)), event.Submit(spec(1, gang=3)))
    (placed,) = [item for item in rig.outcomes[-1].facts if isinstance(item, fact.Placed)]
    turn = Turn(rig.world, rig.now)
    for number in placed.jobs:
        turn.start_gang(rig.world.jobs[number])
    assert turn.instructions == rig.outcomes[-1].instructions
    assert [len(start.nodes) for start in turn.instructions if isinstance(start, Start)] == placed.widths == [1, 1, 2]
