"""An elastic gang starts with what it needs, gets what is left over, and gives it back; in place, or in a new run."""

from __future__ import annotations

import pytest
from stage_kit import settled

from muster.kernel.kernel import Outcome
from muster.model import event, fact
from muster.model.instruction import Start, Stop
from muster.model.job import BarKind
from muster.model.phase import Stopping, Why
from muster.model.reason import Code, Done, Refused
from muster.scheduler.growing import IN_PLACE_MS, RESTART_MS
from muster.testing.rig import Rig, spec
from muster.world.snapshot import digest
from muster.world.widths import width_of


def width(rig: Rig, job: int) -> int:
    return width_of(rig.job(job))


def start_all(rig: Rig, job: int) -> Outcome:
    return rig.start(job, 0, width(rig, job))


def exit_all(rig: Rig, job: int, code: int = 0) -> Outcome:
    return rig.exit(job, code, 0, width(rig, job))


def running(nodes: int = 4, **fields: object) -> Rig:
    """A gang of two to four tasks with a node each, which runs with all that there is."""
    rig = Rig(nodes)
    job = rig.submit(8, gang=2, gang_most=4, **fields)
    start_all(rig, job)
    settled(rig)
    return rig


def test_a_gang_starts_with_all_that_is_left_over_and_is_told_so() -> None:
    rig = Rig(3)
    outcome = rig.feed(event.Submit(spec(8, gang=2, gang_most=8)))
    assert width(rig, 1) == 3
    (start,) = [each for each in outcome.instructions if isinstance(each, Start)]
    assert (start.first, sum(start.counts), start.width) == (0, 3, 3)
    rig.start(1, 0, 2)
    assert rig.phase(1) == "Starting", "one is still to come"
    rig.start(1, 2, 1)
    assert rig.phase(1) == "Running"
    settled(rig)
    exit_all(rig, 1)
    assert rig.phase(1) == "Succeeded"
    settled(rig)


def test_who_waits_is_served_before_anybody_grows() -> None:
    rig = Rig(4)
    rig.feed(event.Submit(spec(8, gang=1, gang_most=4)), event.Submit(spec(8)), event.Submit(spec(8)))
    assert [width(rig, job) for job in (1, 2, 3)] == [2, 1, 1]
    settled(rig)


def test_its_quota_bounds_how_far_it_grows() -> None:
    rig = Rig(4)
    rig.tenant("lab", gpus=24)
    rig.submit(8, gang=1, gang_most=4, tenant="lab")
    assert width(rig, 1) == 3
    settled(rig)


def test_a_gang_in_place_grows_where_it_is_after_a_while() -> None:
    rig = Rig(4)
    rig.submit(8)
    rig.submit(8, gang=2, gang_most=4, in_place=True)
    start_all(rig, 2)
    assert width(rig, 2) == 3
    rig.exit(1)
    assert width(rig, 2) == 3, "not so soon"
    wake_at = rig.outcomes[-1].wake_at
    assert wake_at is not None
    assert wake_at <= rig.run(2).since + IN_PLACE_MS
    outcome = rig.feed(after_ms=IN_PLACE_MS)
    assert width(rig, 2) == 4
    (start,) = outcome.instructions
    assert isinstance(start, Start)
    assert (start.epoch, start.first, start.counts, start.width) == (1, 3, [1], 4)
    assert rig.phase(2) == "Running"
    settled(rig)
    rig.start(2, 3, 1)
    rig.feed(event.Progressed(2, 1, 5, checkpointed=True), after_ms=1000)
    settled(rig)
    exit_all(rig, 2)
    assert rig.phase(2) == "Succeeded"
    settled(rig)


def test_another_gang_is_begun_anew_if_it_gets_half_as_wide_again() -> None:
    rig = Rig(4)
    others = [rig.submit(8), rig.submit(8)]
    rig.submit(8, gang=2, gang_most=4)
    start_all(rig, 3)
    rig.exit(others[0])
    rig.feed(after_ms=RESTART_MS)
    phase = rig.job(3).phase
    assert isinstance(phase, Stopping)
    assert phase.why == Why.RESIZE
    exit_all(rig, 3, 143)
    assert (width(rig, 3), rig.job(3).epoch) == (3, 2)
    assert rig.job(3).evicted == (), "that was no eviction"
    assert rig.job(3).failures == 0
    settled(rig)
    start_all(rig, 3)
    rig.exit(others[1])
    rig.feed(after_ms=RESTART_MS)
    assert rig.phase(3) == "Running", "a third more is not worth it"


@pytest.mark.parametrize("in_place", [False, True])
def test_scaled_to_fewer_tasks_it_shrinks(in_place: bool) -> None:
    rig = running(in_place=in_place)
    outcome = rig.feed(event.ScaleJob(1, 3))
    assert isinstance(outcome.answers[0], Done)
    (stop,) = outcome.instructions
    assert isinstance(stop, Stop)
    assert (stop.first, stop.count, stop.width) == ((3, 1, 3) if in_place else (0, 4, 0))
    settled(rig)
    rig.exit(1, 143, stop.first, stop.count)
    assert (width(rig, 1), rig.job(1).epoch) == (3, 1 if in_place else 2)
    assert rig.phase(1) == ("Running" if in_place else "Starting")
    assert rig.world.fleet.free(3).gpus == 8
    settled(rig)
    if not in_place:
        start_all(rig, 1)
    exit_all(rig, 1)
    assert rig.phase(1) == "Succeeded"
    settled(rig)


def test_what_leaves_may_end_in_any_way_and_the_others_go_on() -> None:
    rig = running(in_place=True)
    rig.feed(event.ScaleJob(1, 2))
    rig.exit(1, 1, 2, 1)
    assert width(rig, 1) == 4, "one is still there"
    rig.feed(event.NodeGone("node-3"))
    assert (width(rig, 1), rig.phase(1)) == (2, "Running")
    settled(rig)
    rig.exit(1, 143, 3, 1)
    assert (width(rig, 1), rig.phase(1)) == (2, "Running"), "said again"
    settled(rig)


def test_a_gang_that_ends_while_it_shrinks_ends() -> None:
    rig = running(in_place=True)
    rig.feed(event.ScaleJob(1, 2))
    rig.exit(1, 0, 0, 2)
    assert rig.phase(1) == "Running"
    rig.exit(1, 143, 2, 2)
    assert rig.phase(1) == "Succeeded"
    settled(rig)


def test_a_gang_that_is_cancelled_while_it_shrinks_is_cancelled() -> None:
    rig = running(in_place=True)
    rig.feed(event.ScaleJob(1, 2))
    rig.feed(event.Cancel(1))
    rig.exit(1, 143, 2, 2)
    rig.exit(1, 143, 0, 2)
    assert rig.phase(1) == "Cancelled"
    settled(rig)


@pytest.mark.parametrize("name", ["node-0", "node-2"])
def test_a_node_that_is_lost_while_a_gang_shrinks(name: str) -> None:
    """Who stays is lost with it: the gang is whole again, or waits with the same request."""
    rig = running(in_place=True)
    rig.feed(event.ScaleJob(1, 3))
    rig.feed(event.NodeGone(name))
    exit_all(rig, 1, 143)
    assert (rig.phase(1), rig.job(1).epoch, width(rig, 1)) == ("Starting", 2, 2), "so soon after it shrank, its least"
    assert (rig.job(1).spec.gang, rig.job(1).spec.gang_most) == (2, 3)
    settled(rig)


def test_a_gang_that_is_to_have_more_than_it_has_keeps_its_places() -> None:
    rig = Rig(3)
    rig.submit(8, gang=2)
    rig.submit(8)
    start_all(rig, 1)
    assert isinstance(rig.answer(event.ScaleJob(1, 3, 3)), Done)
    exit_all(rig, 1, 143)
    assert rig.phase(1) == "Queued"
    assert sum(lease.tasks for lease in rig.world.claims[1].leases) == 2
    rig.submit(8, tenant="rival")
    rig.exit(2)
    assert (width(rig, 1), rig.phase(3)) == (3, "Queued")
    settled(rig)


@pytest.mark.parametrize(
    ("item", "phase"),
    [
        (event.Cancel(1), "Cancelled"),
        (event.RequeueJob(1), "Starting"),
        (event.HoldJob(1), "Queued"),
        (event.BarNode("node-0", BarKind.DRAIN, "op", lets_finish=False), "Queued"),
    ],
    ids=["cancelled", "requeued", "held", "drained"],
)
def test_a_gang_that_is_told_something_else_while_it_is_to_have_more(item: event.Event, phase: str) -> None:
    rig = Rig(3)
    rig.submit(8, gang=2)
    start_all(rig, 1)
    rig.feed(event.ScaleJob(1, 3, 3))
    rig.feed(item)
    settled(rig)
    exit_all(rig, 1, 143)
    assert rig.phase(1) == phase
    assert rig.job(1).spec.gang == 3
    settled(rig)


def test_a_gang_that_waits_may_be_scaled_to_fit() -> None:
    rig = Rig(3)
    rig.submit(8)
    rig.submit(8, gang=3)
    assert rig.phase(2) == "Queued"
    rig.feed(event.ScaleJob(2, 3, 2))
    assert (rig.phase(2), width(rig, 2)) == ("Starting", 2)
    settled(rig)


def test_scaling_to_what_it_is_changes_nothing() -> None:
    rig = running()
    assert not rig.feed(event.ScaleJob(1, 4, 2)).facts
    assert not rig.feed(event.ScaleJob(1, 4)).facts


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (event.ScaleJob(9, 4), Code.UNKNOWN_JOB),
        (event.ScaleJob(1, 2, 4), Code.BAD_WIDTH),
        (event.ScaleJob(1, 0), Code.BAD_WIDTH),
        (event.ScaleJob(1, 4, -2), Code.BAD_WIDTH),
        (event.ScaleJob(1, 100_001), Code.BAD_WIDTH),
        (event.ScaleJob(1, 3, 2), Code.MOST_BELOW_WIDTH),
        (event.ScaleJob(1, 1), Code.BELOW_LEAST),
        (event.ScaleJob(1, 64, 40), Code.NEVER_FITS),
        (event.ScaleJob(2, 4, 2), Code.NO_WIDTH),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(item: event.ScaleJob, code: Code) -> None:
    rig = running()
    rig.submit(0, array=2)
    before = digest(rig.world)
    answer = rig.answer(item)
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert digest(rig.world) == before


def test_what_was_told_to_stop_or_shrinks_or_is_over_is_not_scaled() -> None:
    rig = running(in_place=True)
    rig.feed(event.ScaleJob(1, 3))
    assert refusal(rig, event.ScaleJob(1, 2)) == Code.IS_STOPPING, "it shrinks"
    rig.exit(1, 143, 3, 1)
    rig.feed(event.RequeueJob(1))
    assert refusal(rig, event.ScaleJob(1, 2)) == Code.IS_STOPPING, "in its grace"
    exit_all(rig, 1, 143)
    rig.feed(event.Cancel(1))
    exit_all(rig, 1, 143)
    assert refusal(rig, event.ScaleJob(1, 2)) == Code.ALREADY_OVER


def refusal(rig: Rig, item: event.Event) -> Code:
    answer = rig.answer(item)
    assert isinstance(answer, Refused)
    return answer.reason.code


def test_a_grown_rank_that_a_node_did_not_hear_of_is_said_again() -> None:
    rig = Rig(2)
    rig.submit(8)
    rig.submit(8, gang=1, gang_most=2, in_place=True)
    start_all(rig, 2)
    rig.exit(1)
    rig.feed(after_ms=IN_PLACE_MS)
    (grown,) = [item for item in rig.outcomes[-1].facts if isinstance(item, fact.Grown)]
    name = rig.world.fleet.names[grown.slots[0]]
    outcome = rig.feed(event.NodeSeen(name, rig.world.fleet.capacity(grown.slots[0])))
    (start,) = outcome.instructions
    assert isinstance(start, Start)
    assert (start.first, start.nodes, start.width) == (1, [name], 2)
    rig.feed(event.ScaleJob(2, 1))
    outcome = rig.feed(event.NodeSeen(name, rig.world.fleet.capacity(grown.slots[0])))
    (stop,) = outcome.instructions
    assert isinstance(stop, Stop)
    assert (stop.first, stop.count, stop.width) == (1, 1, 1)


def waiting_for_extras(in_place: bool) -> Rig:
    """A gang of two to four on four nodes, and somebody of no better right who wants one."""
    rig = running(in_place=in_place)
    rig.submit(8, tenant="rival")
    return rig


def test_who_waits_gets_what_others_have_beyond_their_least_in_place() -> None:
    rig = waiting_for_extras(in_place=True)
    stops = [each for each in rig.outcomes[-1].instructions if isinstance(each, Stop)]
    assert [(stop.first, stop.count, stop.width) for stop in stops] == [(3, 1, 3)], "no more than is needed"
    settled(rig)
    rig.exit(1, 143, 3, 1)
    assert (rig.phase(1), width(rig, 1), rig.phase(2)) == ("Running", 3, "Starting")
    assert rig.job(1).evicted == ()
    settled(rig)


def test_another_run_is_begun_anew_with_its_least() -> None:
    rig = waiting_for_extras(in_place=False)
    phase = rig.job(1).phase
    assert isinstance(phase, Stopping)
    assert phase.why == Why.SHRINK
    exit_all(rig, 1, 143)
    assert (rig.phase(1), width(rig, 1), rig.phase(2)) == ("Starting", 2, "Starting")
    assert rig.job(1).evicted == ()
    settled(rig)
    rig.feed(after_ms=RESTART_MS - 10)
    assert width(rig, 1) == 2, "it does not grow again so soon"


def test_the_least_of_a_gang_goes_to_nobody_of_no_better_right() -> None:
    rig = Rig(2)
    rig.submit(8, gang=2, gang_most=4)
    start_all(rig, 1)
    rig.submit(8, tenant="rival")
    assert (rig.phase(1), rig.phase(2)) == ("Running", "Queued")


def test_extras_go_before_anybody_is_stopped() -> None:
    """A job that could be preempted stays, for the extra part of another is enough."""
    rig = Rig(4)
    rig.submit(8, tier="opportunistic")
    rig.submit(8, gang=2, gang_most=3, in_place=True, tier="critical")
    start_all(rig, 1)
    start_all(rig, 2)
    assert width(rig, 2) == 3
    rig.submit(8, tier="standard")
    assert rig.phase(1) == "Running"
    rig.exit(2, 143, 2, 1)
    assert (rig.phase(1), rig.phase(3), width(rig, 2)) == ("Running", "Starting", 2)
    settled(rig)


def test_extras_and_victims_together_make_room_for_a_large_gang() -> None:
    rig = Rig(4)
    rig.submit(8, tier="opportunistic")
    rig.submit(8, gang=1, gang_most=3, in_place=True, tier="critical")
    start_all(rig, 1)
    start_all(rig, 2)
    rig.submit(8, gang=3, tier="critical")
    assert (rig.phase(1), rig.phase(2)) == ("Stopping", "Running")
    rig.exit(2, 143, 1, 2)
    rig.exit(1, 143)
    assert (rig.phase(2), width(rig, 2), rig.phase(3)) == ("Running", 1, "Starting")
    settled(rig)


def test_quota_that_an_extra_part_takes_up_is_given_back_for_its_own_tenant() -> None:
    rig = Rig(4)
    rig.tenant("lab", gpus=16)
    rig.submit(8, gang=1, gang_most=3, in_place=True, tenant="lab")
    start_all(rig, 1)
    assert width(rig, 1) == 2
    rig.submit(8, tenant="lab")
    rig.exit(1, 143, 1, 1)
    assert (width(rig, 1), rig.phase(2)) == (1, "Starting")
    settled(rig)


def test_who_joins_after_others_left_has_another_rank() -> None:
    """A late word about the rank that left is about nobody."""
    rig = waiting_for_extras(in_place=True)
    rig.exit(1, 143, 3, 1)
    rig.start(2)
    rig.exit(2)
    rig.feed(after_ms=IN_PLACE_MS)
    assert width(rig, 1) == 4
    (start,) = rig.outcomes[-1].instructions
    assert isinstance(start, Start)
    assert (start.first, start.width) == (4, 4)
    rig.exit(1, 143, 3, 1)
    assert (rig.phase(1), width(rig, 1)) == ("Running", 4)
    rig.start(1, 4, 1)
    settled(rig)
    rig.feed(event.NodeGone(rig.world.fleet.names[rig.run(1).leases[-1].slot]))
    assert (rig.phase(1), width(rig, 1)) == ("Running", 3), "rank 4 is lost, and the others go on"
    rig.exit(1, 0, 0, 3)
    assert rig.phase(1) == "Succeeded"
    settled(rig)
