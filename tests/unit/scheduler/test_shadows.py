"""Shadows: who is due and finds no room is not delayed by those who come later."""

from __future__ import annotations

import pytest

from muster.model import event
from muster.model.advice import RUNTIME, Advice
from muster.model.booking import Booking, Window
from muster.model.errors import InvariantError
from muster.model.node import Traits
from muster.model.reason import Code, Refused
from muster.model.spec import Needs, Spec
from muster.model.tenant import GPU, Line, gpu_amount
from muster.model.tier import Tier
from muster.scheduler.reasons import explain, find_shadows
from muster.simulator.inspector import check_nobody_overslept, check_shadows
from muster.testing.planted import PLANTED
from muster.testing.rig import Rig
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.wire.words import put_in_words
from muster.world.laws.end import check_ends
from muster.world.outlook import LATE_MS

ODD = Traits(labels=(("zone", "odd"),))


def rig_with(nodes: int = 4, gpus: int = 8, wait_ms: int = 0, shadows: int = 1) -> Rig:
    rig = Rig(nodes=nodes, gpus=gpus)
    rig.feed(event.SetTier("standard", Tier(200, wait_ms, shadows)))
    return rig


def reason_of(rig: Rig, job: int) -> Code:
    waiting = explain(rig.world, rig.job(job))
    assert waiting is not None
    return waiting.reason.code


def test_who_would_delay_a_due_job_waits_and_who_is_gone_in_time_does_not() -> None:
    rig = rig_with()
    rig.submit(8, gang=3, limit_ms=HOUR_MS)
    due = rig.submit(8, gang=4, limit_ms=HOUR_MS)
    unlimited, long = rig.submit(8), rig.submit(8, limit_ms=HOUR_MS)
    short = rig.submit(8, limit_ms=HOUR_MS // 2)
    phases = [rig.phase(job) for job in (due, unlimited, long, short)]
    assert phases == ["Queued", "Queued", "Queued", "Starting"]
    assert reason_of(rig, due) == Code.DUE
    check_nobody_overslept(rig.world)


def test_who_is_kept_back_is_told_by_whose_shadow_and_not_by_one_elsewhere() -> None:
    rig = rig_with(nodes=2, shadows=2)
    rig.feed(*(event.NodeSeen(f"odd-{number}", Resources(8, 64_000, 2**38), traits=ODD) for number in (0, 1)))
    here, there = Needs(labels=("zone!=odd",)), Needs(labels=("zone=odd",))
    rig.submit(8, needs=here, limit_ms=HOUR_MS)
    rig.submit(8, needs=there, limit_ms=2 * HOUR_MS)
    rig.submit(8, gang=2, needs=here, limit_ms=HOUR_MS)
    due = rig.submit(8, gang=2, needs=there, limit_ms=HOUR_MS)
    waiting = explain(rig.world, rig.job(rig.submit(8, needs=there, limit_ms=DAY_MS)))
    assert waiting is not None
    reason = waiting.reason
    assert (reason.code, reason.needed, reason.available) == (Code.SHADOWED, due, rig.world.ends.find(2))


def test_a_limit_that_is_not_looked_at_is_found() -> None:
    rig = rig_with()
    rig.submit(8, gang=3, limit_ms=HOUR_MS)
    rig.submit(8, gang=4, limit_ms=HOUR_MS)
    before = rig.world.fork()
    with PLANTED["limit_not_looked_at"]():
        outcome = rig.feed(event.Submit(Spec(("late",), ask=Resources(gpus=8), limit_ms=DAY_MS)))
    with pytest.raises(InvariantError, match="no start delays a shadow"):
        check_shadows(before, outcome, rig.world)


def test_tasks_of_an_array_overtake_if_they_are_gone_in_time() -> None:
    """Four nodes, two of them for an hour: the due gang of four starts then, and two nodes are free until then."""
    rig = rig_with()
    blocker = rig.submit(8, gang=2, limit_ms=HOUR_MS)
    due = rig.submit(8, gang=4, limit_ms=HOUR_MS)
    unlimited, long = rig.submit(8, array=3), rig.submit(8, array=3, limit_ms=HOUR_MS)
    short = rig.submit(8, array=3, limit_ms=HOUR_MS // 2)
    held = [rig.world.arrays[job].holding for job in (unlimited, long, short)]
    assert (rig.phase(due), held) == ("Queued", [0, 0, 2])
    assert [reason_of(rig, job) for job in (due, long)] == [Code.DUE, Code.SHADOWED]
    ends_at = rig.run(blocker).since + HOUR_MS
    assert [(shadow.job, shadow.at) for shadow in find_shadows(rig.world)] == [(due, ends_at)], "as before"
    check_nobody_overslept(rig.world)
    rig.start(short)
    rig.feed(after_ms=HOUR_MS // 2 - 2)
    rig.exit(short, 0, 0, 1)
    assert rig.world.arrays[short].holding == 1, "the third would be there for too long by now"
    assert reason_of(rig, short) == Code.SHADOWED


def test_a_shadow_counts_on_the_limits_of_tasks_wherever_they_got() -> None:
    """Tasks of an array have all nodes; each is counted on from when it is up, or told to stop."""
    rig = rig_with()
    array = rig.submit(8, array=4, limit_ms=HOUR_MS)
    placed_at = rig.now
    due = rig.submit(8, gang=3)
    assert [(shadow.job, shadow.at) for shadow in find_shadows(rig.world)] == [(due, placed_at + HOUR_MS)]
    rig.feed(event.Started(array, 1, 0, 1), after_ms=MINUTE_MS)
    rig.feed(event.Started(array, 1, 1, 1), after_ms=MINUTE_MS)
    [shadow] = find_shadows(rig.world)
    assert (shadow.job, shadow.at) == (due, placed_at + 1 + MINUTE_MS + HOUR_MS), (
        "after tasks 2 and 3 the first is gone"
    )
    rig.feed(event.RequeueJob(array))
    assert find_shadows(rig.world)[0].at == rig.now, "they may be gone at any moment"
    rig.feed(event.Submit(Spec(("late",))), after_ms=DAY_MS)
    assert find_shadows(rig.world) == [], "until nobody knows"


def test_what_tasks_share_of_a_device_comes_free_device_by_device() -> None:
    rig = rig_with(nodes=1, gpus=2)
    half = Spec(("part",), array=4, ask=Resources(gpu_milli=500, cpu_milli=100), limit_ms=HOUR_MS)
    rig.feed(event.Submit(half))
    placed_at = rig.now
    rig.feed(event.Started(1, 1, 0, 2), after_ms=MINUTE_MS)
    due = rig.submit(1)
    found = [(shadow.job, shadow.at) for shadow in find_shadows(rig.world)]
    assert found == [(due, placed_at + HOUR_MS)], "the device of tasks 2 and 3"
    due = rig.submit(2)
    assert rig.phase(due) == "Queued"


def test_the_limit_of_an_array_that_is_not_looked_at_is_found() -> None:
    rig = rig_with()
    rig.submit(8, gang=3, limit_ms=HOUR_MS)
    rig.submit(8, gang=4, limit_ms=HOUR_MS)
    before = rig.world.fork()
    with PLANTED["limit_not_looked_at"]():
        outcome = rig.feed(event.Submit(Spec(("late",), ask=Resources(gpus=8), array=2, limit_ms=DAY_MS)))
    with pytest.raises(InvariantError, match="no start delays a shadow"):
        check_shadows(before, outcome, rig.world)


def test_tasks_that_nobody_counts_on_are_found() -> None:
    rig = rig_with()
    with PLANTED["tasks_have_no_end"]():
        rig.submit(8, array=4, limit_ms=HOUR_MS)
    with pytest.raises(InvariantError, match="tasks with a limit are counted on"):
        check_ends(rig.world)


def test_who_is_not_due_yet_holds_up_nobody() -> None:
    rig = rig_with(wait_ms=MINUTE_MS)
    rig.submit(8, gang=3, limit_ms=HOUR_MS)
    gang = rig.submit(8, gang=4, limit_ms=HOUR_MS)
    assert reason_of(rig, gang) == Code.NO_ROOM
    other = rig.submit(8, limit_ms=DAY_MS)
    assert rig.phase(other) == "Starting"
    rig.exit(other)
    rig.feed(after_ms=MINUTE_MS)
    assert rig.phase(rig.submit(8, limit_ms=DAY_MS)) == "Queued"
    assert reason_of(rig, gang) == Code.DUE


def test_a_tier_without_shadows_closes_nothing() -> None:
    rig = rig_with(shadows=0)
    rig.submit(8, gang=3, limit_ms=HOUR_MS)
    gang = rig.submit(8, gang=4)
    assert rig.phase(rig.submit(8)) == "Starting"
    assert reason_of(rig, gang) == Code.NO_ROOM


def test_a_shadow_does_not_cross_a_tier() -> None:
    rig = rig_with()
    rig.submit(8, gang=3, limit_ms=HOUR_MS)
    rig.submit(8, gang=4)
    assert rig.phase(rig.submit(8, tier="opportunistic")) == "Queued"
    assert rig.phase(rig.submit(8, tier="critical")) == "Starting"


def test_who_would_not_fit_at_any_end_casts_none() -> None:
    rig = rig_with()
    rig.submit(8, gang=2, limit_ms=HOUR_MS)
    rig.submit(8)
    gang = rig.submit(8, gang=4)
    assert find_shadows(rig.world) == []
    assert rig.phase(rig.submit(8)) == "Starting"
    assert reason_of(rig, gang) == Code.NO_ROOM


def test_what_a_shadow_leaves_of_a_node_may_be_used() -> None:
    """It needs six of eight GPUs on one node, and two of those are free now: two are left for others."""
    rig = rig_with(nodes=1)
    rig.submit(4, limit_ms=HOUR_MS)
    due = rig.submit(6)
    [shadow] = find_shadows(rig.world)
    assert (shadow.job, shadow.at) == (due, rig.run(1).since + HOUR_MS)
    two, one = rig.submit(2), rig.submit(1)
    assert (rig.phase(two), rig.phase(one)) == ("Starting", "Queued")
    assert reason_of(rig, one) == Code.SHADOWED


def test_who_was_kept_back_starts_as_soon_as_nobody_is_delayed() -> None:
    """And until then it does not wake the kernel."""
    rig = rig_with()
    blocker = rig.submit(8, gang=3, limit_ms=HOUR_MS)
    rig.start(blocker)
    due, other = rig.submit(8, gang=4), rig.submit(8)
    assert rig.feed().wake_at == rig.run(blocker).since + 1 + HOUR_MS
    rig.feed(event.Cancel(due))
    assert rig.phase(other) == "Starting"


def test_who_is_over_its_quota_casts_no_shadow() -> None:
    rig = rig_with()
    rig.tenant("small", gpus=32)
    rig.submit(8, gang=1, tenant="small", limit_ms=HOUR_MS)
    rig.submit(8, gang=2, limit_ms=HOUR_MS)
    over = rig.submit(8, gang=4, tenant="small")
    assert reason_of(rig, over) == Code.OVER_QUOTA
    assert find_shadows(rig.world) == []
    assert rig.phase(rig.submit(8)) == "Starting"


def two_sites() -> Rig:
    """A plain node that its owner has a guarantee on, held by a guest for an hour; and an H100 node of a lender."""
    rig = rig_with(nodes=1)
    rig.feed(event.NodeSeen("other", Resources(8, 64_000, 2**38), traits=Traits("h100")))
    rig.tenant("owner", Line(GPU, guaranteed=gpu_amount(8)))
    rig.tenant("lender", Line("h100", guaranteed=gpu_amount(8)))
    rig.submit(8, tenant="guest", needs=Needs(flavors=("gpu",)), limit_ms=HOUR_MS)
    return rig


def test_who_is_due_inside_its_guarantee_borrows_where_there_is_room_now() -> None:
    rig = two_sites()
    due = rig.submit(8, tenant="owner")
    assert rig.phase(due) == "Starting"
    assert rig.run(due).leases[0].slot == 1


def test_who_finds_its_own_part_in_the_shade_may_borrow_elsewhere_and_stands_as_it_did() -> None:
    """The owner's first job is due and too large for the plain node as it is, and may not take the guest's place; its
    second would delay it there."""
    rig = two_sites()
    rig.exit(1)
    rig.feed(event.SetTier("urgent", Tier(10, HOUR_MS, emergency=True)))
    rig.submit(4, tenant="guest", needs=Needs(flavors=("gpu",)), limit_ms=HOUR_MS, tier="urgent")
    due = rig.submit(8, tenant="owner", needs=Needs(flavors=("gpu",)))
    second = rig.submit(4, tenant="owner")
    assert [shadow.job for shadow in find_shadows(rig.world)] == [due]
    assert (rig.phase(second), rig.run(second).leases[0].slot) == ("Starting", 1)
    third = rig.submit(4, tenant="owner", needs=Needs(flavors=("gpu",)))
    assert reason_of(rig, third) == Code.SHADOWED
    check_nobody_overslept(rig.world)


def test_a_run_that_is_far_past_its_end_is_not_counted_on() -> None:
    rig = rig_with(nodes=1)
    late = rig.submit(4, limit_ms=HOUR_MS)
    rig.submit(8)
    rig.feed(event.SetTier("other", Tier(1, 2)), after_ms=HOUR_MS)
    assert [shadow.at for shadow in find_shadows(rig.world)] == [rig.world.now]
    rig.feed(event.SetTier("other", Tier(1, 1)), after_ms=rig.job(late).spec.grace_ms + LATE_MS)
    assert find_shadows(rig.world) == []


def test_the_second_shadow_counts_with_the_first() -> None:
    rig = rig_with(shadows=2)
    rig.submit(8, gang=2, limit_ms=HOUR_MS)
    rig.submit(8, gang=2, limit_ms=2 * HOUR_MS)
    first, second = rig.submit(8, gang=2, limit_ms=DAY_MS), rig.submit(8, gang=2, priority=-1)
    found = find_shadows(rig.world)
    assert [shadow.job for shadow in found] == [first, second]
    assert [(shadow.at - rig.run(1).since) // HOUR_MS for shadow in found] == [1, 2]
    assert not {lease.slot for lease in found[0].leases} & {lease.slot for lease in found[1].leases}


def test_the_reasons_in_words() -> None:
    rig = rig_with(nodes=1)
    rig.submit(4, limit_ms=HOUR_MS)
    due, kept = rig.submit(8), rig.submit(4)
    words = [put_in_words(found.reason).what for job in (due, kept) if (found := explain(rig.world, rig.job(job)))]
    by = "it is due, and starts by 1970-01-01 01:00:00.003Z at the latest if runs end as they are foreseen to"
    assert words[0] == f"waiting for room: {by}"
    assert words[1].startswith(f"waiting so as not to delay job {due}, which is due and starts by 1970-01-01 01:00:00")


def test_shares_of_a_device_and_plain_cores_can_be_due() -> None:
    rig = rig_with(nodes=1, gpus=1)
    half, cores = Resources(0, 1000, 2**30, 700), Resources(0, 40_000, 2**30)
    rig.submit(ask=half, limit_ms=HOUR_MS)
    rig.submit(ask=cores, limit_ms=HOUR_MS)
    due = [rig.submit(ask=half), rig.submit(ask=cores)]
    assert [shadow.job for shadow in find_shadows(rig.world)] == due[:1]
    assert rig.phase(rig.submit(ask=Resources(0, 1000, 2**30, 300))) == "Queued"


def advise(rig: Rig, version: int = 1, **run_ms: int) -> None:
    """An adviser says how long jobs run: `_1=HOUR_MS`; for two days."""
    columns = {"job": tuple(int(name[1:]) for name in run_ms), "run_ms": tuple(run_ms.values())}
    rig.feed(event.Advise(RUNTIME, Advice(version, rig.now + 2 * DAY_MS, columns)))


def shadow_of(rig: Rig, job: int) -> int | None:
    return next((shadow.at for shadow in find_shadows(rig.world) if shadow.job == job), None)


def test_what_its_owner_expects_and_an_adviser_says_counts_before_the_limit() -> None:
    rig = rig_with()
    first = rig.submit(8, gang=3, limit_ms=DAY_MS, expect_ms=2 * HOUR_MS)
    since = rig.run(first).since
    due = rig.submit(8, gang=4)
    assert shadow_of(rig, due) == since + 2 * HOUR_MS
    advise(rig, _1=HOUR_MS)
    assert shadow_of(rig, due) == since + HOUR_MS, "the adviser knows better"
    assert rig.phase(rig.submit(8, limit_ms=2 * HOUR_MS)) == "Queued", "who overtakes goes by its limit"
    assert rig.phase(rig.submit(8, limit_ms=HOUR_MS // 2)) == "Starting"
    advise(rig, 2)
    assert shadow_of(rig, due) == since + 2 * HOUR_MS, "it says nothing of it any more"


def test_nobody_who_overtakes_goes_by_what_it_expects() -> None:
    rig = rig_with()
    rig.submit(8, gang=3, limit_ms=HOUR_MS)
    rig.submit(8, gang=4)
    assert rig.phase(rig.submit(8, limit_ms=DAY_MS, expect_ms=MINUTE_MS)) == "Queued"


def test_who_goes_on_past_what_was_foretold_ends_at_its_limit_as_far_as_anybody_knows() -> None:
    rig = rig_with()
    first = rig.submit(8, gang=3, limit_ms=DAY_MS, expect_ms=HOUR_MS)
    since, due = rig.run(first).since, rig.submit(8, gang=4)
    later = rig.submit(8, limit_ms=5 * HOUR_MS)
    assert rig.phase(later) == "Queued", "it would delay who is due"
    assert rig.outcomes[-1].wake_at == since + HOUR_MS, "time alone may free it"
    rig.feed(after_ms=since + HOUR_MS - rig.now)
    assert rig.phase(later) == "Starting"
    assert shadow_of(rig, due) == since + DAY_MS


def test_without_a_limit_what_is_foretold_is_all_that_is_known() -> None:
    rig = rig_with()
    first = rig.submit(8, gang=3)
    due = rig.submit(8, gang=4)
    assert shadow_of(rig, due) is None
    advise(rig, _1=HOUR_MS)
    assert shadow_of(rig, due) == rig.run(first).since + HOUR_MS
    rig.exit(first)
    assert rig.phase(due) == "Starting"
    assert not rig.world.ends.told


@pytest.mark.parametrize("columns", [{}, {"job": (1,)}, {"run_ms": (5,)}, {"job": (1, 9), "run_ms": (0,)}])
def test_advice_that_says_nothing_changes_nothing(columns: dict[str, tuple[int, ...]]) -> None:
    rig = rig_with()
    rig.submit(8, gang=3, expect_ms=HOUR_MS)
    before = dict(rig.world.ends.told)
    rig.feed(event.Advise(RUNTIME, Advice(1, rig.now + HOUR_MS, columns)))
    assert rig.world.ends.told == before


def test_bookings_do_not_count_on_what_is_foretold() -> None:
    rig = Rig(nodes=1)
    rig.submit(8, limit_ms=DAY_MS, expect_ms=MINUTE_MS, evictable=False)
    opens = rig.now + 2 * HOUR_MS
    answer = rig.answer(event.Reserve(Booking("b", "default", 1, (Window(opens, opens + HOUR_MS),))))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.NO_NODES_TO_BOOK
