"""Bars keep new work off a node, are somebody's, and end; only a drain that lets nothing finish stops what runs."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.instruction import Stop
from muster.model.job import BARS_MAX, BarKind, NodePhase
from muster.model.phase import Stopping, TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.testing.rig import Rig
from muster.units import INSTANT_MAX, Resources

NODE = Resources(8, 64_000, 2**38)


def bar(
    kind: BarKind = BarKind.CORDON,
    owner: str = "me",
    *,
    name: str = "node-0",
    reason: str = "",
    until: int | None = None,
    lets_finish: bool = True,
) -> event.BarNode:
    return event.BarNode(name, kind, owner, reason, until, lets_finish)


def drain_now(name: str = "node-0") -> event.BarNode:
    return bar(BarKind.DRAIN, name=name, lets_finish=False)


def unbar(kind: BarKind = BarKind.CORDON, owner: str = "me", *, name: str = "node-0") -> event.UnbarNode:
    return event.UnbarNode(name, kind, owner)


def test_nothing_new_goes_to_a_barred_node_and_what_runs_there_goes_on() -> None:
    rig = Rig(nodes=1)
    running = rig.submit()
    rig.start(running)
    assert rig.answer(bar()) == Done()
    waiting = rig.submit()
    assert (rig.phase(running), rig.phase(waiting)) == ("Running", "Queued")
    rig.exit(running)
    assert rig.phase(waiting) == "Queued", "room on a barred node is no room"
    rig.feed(unbar())
    assert rig.phase(waiting) == "Starting"


def test_a_job_that_only_a_barred_node_could_hold_is_accepted_and_waits() -> None:
    rig = Rig(nodes=1)
    rig.feed(bar())
    assert rig.phase(rig.submit(8)) == "Queued"


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (bar(name="nobody"), Code.UNKNOWN_NODE),
        (unbar(name="nobody"), Code.UNKNOWN_NODE),
        (bar(owner=""), Code.BAD_NAME),
        (bar(owner="no good name"), Code.BAD_NAME),
        (bar(reason="x" * 257), Code.TOO_LARGE),
        (bar(until=0), Code.BAD_AMOUNT),
        (bar(until=2), Code.BAD_AMOUNT),
        (bar(until=INSTANT_MAX + 1), Code.BAD_AMOUNT),
        (bar(lets_finish=False), Code.BAD_SPEC),
    ],
    ids=str,
)
def test_what_is_refused(item: event.Event, code: Code) -> None:
    rig = Rig(nodes=1)
    outcome = rig.feed(item)
    answer = outcome.answers[0]
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert outcome.facts == []


def test_the_longest_reason_and_the_latest_end_are_taken() -> None:
    rig = Rig(nodes=1)
    assert rig.answer(bar(reason="x" * 256, until=INSTANT_MAX)) == Done()
    assert rig.outcomes[-1].wake_at == INSTANT_MAX


def test_a_node_has_a_stated_number_of_bars() -> None:
    rig = Rig(nodes=1)
    for number in range(BARS_MAX):
        assert rig.answer(bar(owner=f"o{number}")) == Done()
    refused = rig.answer(bar(owner="one-more"))
    assert isinstance(refused, Refused)
    assert refused.reason.code == Code.TOO_LARGE
    assert rig.answer(bar(owner="o0", reason="other")) == Done(), "to replace one is not to add one"


def test_saying_the_same_again_changes_nothing_and_otherwise_replaces() -> None:
    rig = Rig(nodes=1)
    rig.feed(bar(reason="disk"))
    since = rig.now
    assert rig.feed(bar(reason="disk")).facts == []
    rig.feed(bar(reason="fan"))
    (only,) = rig.world.fleet.bars[0]
    assert (only.reason, only.since) == ("fan", rig.now)
    assert rig.now > since


def test_who_set_a_bar_lifts_it() -> None:
    rig = Rig(nodes=1)
    rig.feed(bar(owner="b"), bar(owner="a"), bar(BarKind.DRAIN, "a"))
    assert [(x.kind, x.owner) for x in rig.world.fleet.bars[0]] == [("cordon", "a"), ("cordon", "b"), ("drain", "a")]
    job = rig.submit()
    assert rig.feed(unbar(owner="c"), unbar(BarKind.DRAIN, "b")).facts == []
    rig.feed(unbar(owner="a"), unbar(owner="b"))
    assert rig.phase(job) == "Queued"
    rig.feed(unbar(BarKind.DRAIN, "a"))
    assert rig.phase(job) == "Starting"
    assert rig.world.fleet.bars == {}


def test_a_bar_ends_by_itself() -> None:
    rig = Rig(nodes=1)
    until = rig.now + 5000
    assert rig.feed(bar(until=until)).wake_at == until
    job = rig.submit()
    outcome = rig.feed(after_ms=until - rig.now)
    assert outcome.facts[0] == fact.NodeUnbarred(0, BarKind.CORDON, "me", cause="until")
    assert rig.phase(job) == "Starting"


def test_a_bar_that_is_lifted_or_put_off_wakes_nobody_at_its_old_time() -> None:
    rig = Rig(nodes=1)
    assert rig.feed(bar(until=5000), bar(BarKind.DRAIN, until=9000)).wake_at == 5000
    assert rig.feed(bar(until=20_000)).wake_at == 9000
    assert rig.feed(unbar(BarKind.DRAIN)).wake_at == 20_000
    assert rig.feed(bar(until=None)).wake_at is None
    assert rig.feed(after_ms=30_000).facts == []
    assert list(rig.world.fleet.bars) == [0]


def test_bars_outlive_silence_loss_and_a_new_capacity() -> None:
    rig = Rig(nodes=1)
    rig.feed(bar())
    rig.feed(event.NodeSilent("node-0"))
    rig.feed(event.NodeGone("node-0"))
    rig.feed(event.NodeSeen("node-0", Resources(4, 64_000, 2**38)))
    assert rig.world.fleet.phase[0] == NodePhase.UP
    assert rig.world.fleet.find_free(0) is None
    job = rig.submit()
    rig.feed(unbar())
    assert rig.phase(job) == "Starting"


def test_a_node_that_is_not_up_is_not_back_with_its_last_bar() -> None:
    rig = Rig(nodes=1)
    rig.feed(bar(), event.NodeSilent("node-0"))
    rig.feed(unbar())
    assert rig.phase(rig.submit()) == "Queued"


def test_a_drain_lets_finish_unless_it_says_otherwise() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.start(job)
    assert rig.feed(bar(BarKind.DRAIN)).instructions == []
    assert rig.phase(job) == "Running"
    assert rig.feed(drain_now()).instructions == [Stop(job, 1, 0, 1, 10_000)]
    assert rig.phase(job) == "Stopping"
    assert rig.feed(drain_now()).instructions == [], "it was told"


@pytest.mark.parametrize("code", [0, 1, 143])
def test_a_drained_run_waits_again_in_its_old_place_and_did_not_fail(code: int) -> None:
    rig = Rig(nodes=2)
    first = rig.submit(8)
    rig.start(first)
    other = rig.submit(8)
    later = rig.submit(8)
    rig.feed(drain_now())
    rig.exit(first, code)
    assert (rig.phase(first), rig.job(first).failures) == ("Queued", 0)
    rig.exit(other)
    assert (rig.phase(first), rig.run(first).epoch, rig.phase(later)) == ("Starting", 2, "Queued")
    assert rig.run(first).leases[0].slot == 1


def test_a_gang_stops_as_a_whole_and_waits_when_all_of_it_is_over() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(8, gang=2)
    rig.start(job)
    assert rig.feed(drain_now("node-1")).instructions == [Stop(job, 1, 0, 2, 10_000)]
    phase = rig.job(job).phase
    assert isinstance(phase, Stopping)
    assert phase.why == Why.DRAIN
    rig.exit(job, 143, 0, 1)
    assert rig.phase(job) == "Stopping"
    outcome = rig.exit(job, 0, 1, 1)
    assert outcome.facts[0] == fact.Requeued(job, Why.DRAIN)


def test_only_the_tasks_on_the_drained_node_stop() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(4, array=4)
    rig.feed(event.Started(job, 1, 0, 4))
    outcome = rig.feed(drain_now("node-1"))
    assert outcome.instructions == [Stop(job, 1, 2, 2, 10_000)]
    assert bytes(rig.world.arrays[job].phase) == bytes([2, 2, 3, 3])


@pytest.mark.parametrize("code", [0, 1, 143])
def test_drained_tasks_wait_again_whatever_their_code(code: int) -> None:
    """One report covers tasks that were told to stop and tasks that were not."""
    rig = Rig(nodes=2)
    job = rig.submit(4, array=4, retries=1)
    rig.feed(event.Started(job, 1, 0, 4))
    rig.feed(drain_now("node-1"))
    outcome = rig.feed(event.Exited(job, 1, code, 0, 4))
    ended = [item for item in outcome.facts if isinstance(item, fact.TasksEnded)]
    assert ended[0] == fact.TasksEnded(job, 2, 2, TaskPhase.QUEUED, Why.DRAIN, code)
    assert {item.why for item in ended[1:]} == {Why.EXIT}
    assert list(rig.world.arrays[job].failures) == ([1, 1, 0, 0] if code else [0, 0, 0, 0])


def test_a_cancel_of_what_is_being_drained_is_a_cancel() -> None:
    rig = Rig(nodes=1)
    gang, array = rig.submit(), rig.submit(1, array=2)
    rig.feed(drain_now())
    rig.feed(event.Cancel(gang), event.Cancel(array))
    rig.exit(gang, 143)
    rig.feed(event.Exited(array, 1, 143, 0, 2))
    assert (rig.phase(gang), rig.phase(array)) == ("Cancelled", "Cancelled")


def test_what_was_stopping_before_keeps_its_reason() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.feed(event.Cancel(job))
    assert rig.feed(drain_now()).instructions == []
    rig.exit(job, 143)
    assert rig.phase(job) == "Cancelled"


def test_a_drained_node_that_dies_loses_nothing_twice() -> None:
    rig = Rig(nodes=1)
    gang, array = rig.submit(), rig.submit(1, array=2)
    rig.feed(drain_now())
    rig.feed(event.NodeGone("node-0"))
    assert rig.phase(gang) == "Queued"
    assert rig.world.arrays[array].counts[TaskPhase.QUEUED] == 2


def test_a_stop_that_a_drained_node_may_not_have_heard_is_said_again() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=2)
    rig.feed(event.Started(job, 1, 0, 2))
    rig.feed(drain_now())
    outcome = rig.feed(event.NodeSeen("node-0", NODE, (event.Held(job, 1, 0, 2),)))
    assert outcome.instructions == [Stop(job, 1, 0, 2, 10_000)]
