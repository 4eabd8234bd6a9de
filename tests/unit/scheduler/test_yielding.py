"""Yielding: who gives way when it expects to end may use what is kept for others until then."""

from __future__ import annotations

from typing import Any

import pytest

from muster.model import event, fact
from muster.model.errors import InvariantError
from muster.model.group import Group
from muster.model.phase import Why
from muster.model.reason import Code, Refused
from muster.model.spec import Needs, Spec
from muster.model.tenant import GPU, Line, Tenant, gpu_amount
from muster.model.tier import Tier
from muster.scheduler.consolidation import find_opening
from muster.scheduler.reasons import find_shadows
from muster.scheduler.yielding import find_next_yield, plan_yields
from muster.simulator.inspector import check_nobody_overslept, check_shadows
from muster.testing.planted import PLANTED
from muster.testing.rig import Rig
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot


def rig_with(wait_ms: int = 0, limit_ms: int = HOUR_MS) -> Rig:
    """Four nodes, of which one is free: three are busy for so long."""
    rig = Rig(nodes=4)
    rig.feed(event.SetTier("standard", Tier(200, wait_ms, 1)))
    rig.submit(8, gang=3, limit_ms=limit_ms)
    return rig


def stops(rig: Rig) -> dict[int, Why]:
    return {item.job: item.why for item in rig.outcomes[-1].facts if isinstance(item, fact.StopAsked)}


def start(rig: Rig, *jobs: int) -> None:
    rig.feed(*(event.Started(job, rig.job(job).epoch, 0, rig.job(job).spec.gang) for job in jobs), after_ms=0)


def test_who_yields_in_time_overtakes_and_gives_way_at_the_instant() -> None:
    rig = rig_with()
    due = rig.submit(8, gang=4)
    assert rig.phase(rig.submit(8, expect_ms=HOUR_MS // 2)) == "Queued", "what it expects binds it to nothing"
    before = rig.world.fork()
    guest = rig.submit(8, expect_ms=HOUR_MS // 2, yields=True)
    assert rig.phase(guest) == "Starting"
    check_shadows(before, rig.outcomes[-1], rig.world)
    since = rig.run(guest).since
    start(rig, 1, guest)
    rig.exit(1)
    assert stops(rig) == {}, "it is not over yet, and nobody else is in the way"
    assert find_next_yield(rig.world, rig.now) == since + HOUR_MS // 2
    while rig.now < since + HOUR_MS // 2:
        wake_at = rig.outcomes[-1].wake_at
        assert wake_at is not None
        assert stops(rig) == {}
        rig.feed(after_ms=wake_at - rig.now)
    assert rig.now == since + HOUR_MS // 2, "it is woken for it"
    assert stops(rig) == {guest: Why.YIELD}
    stopped, claimed = rig.outcomes[-1].facts[-2:]
    assert stopped == fact.StopAsked(guest, Why.YIELD, cause=f"for job {due}")
    assert isinstance(claimed, fact.Claimed)
    assert (claimed.job, claimed.slots, claimed.victims) == (due, [0, 1, 2, 3], 0)
    rig.exit(guest, code=143)
    assert rig.phase(due) == "Starting"
    assert rig.phase(guest) == "Queued", "it waits again, and has not failed"
    assert rig.job(guest).failures == 0
    check_world(rig.world)
    check_nobody_overslept(rig.world)


def test_who_yields_too_late_does_not_overtake() -> None:
    rig = rig_with()
    rig.submit(8, gang=4)
    assert rig.phase(rig.submit(8, expect_ms=2 * HOUR_MS, yields=True)) == "Queued"


def test_nobody_gives_way_if_nobody_is_due_or_would_fit() -> None:
    rig = rig_with(wait_ms=6 * HOUR_MS, limit_ms=DAY_MS)
    guest = rig.submit(8, expect_ms=MINUTE_MS, yields=True)
    start(rig, 1, guest)
    large = rig.submit(8, gang=4)
    rig.feed(after_ms=HOUR_MS)
    assert stops(rig) == {}, "it is past its end, and nobody is due"
    assert HOUR_MS < (rig.outcomes[-1].wake_at or 0) <= rig.job(large).accepted_at + 6 * HOUR_MS
    rig.feed(after_ms=6 * HOUR_MS)
    assert stops(rig) == {}, "three nodes are missing besides"
    rig.exit(1)
    assert stops(rig) == {guest: Why.YIELD}


def test_as_few_give_way_as_can_be_and_the_cheapest() -> None:
    rig = Rig(nodes=3)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)))
    guests = [rig.submit(8, expect_ms=MINUTE_MS, yields=True) for _ in range(3)]
    start(rig, *guests)
    rig.feed(event.Progressed(guests[1], 1, 5, checkpointed=True), after_ms=10 * MINUTE_MS)
    rig.submit(8)
    assert stops(rig) == {guests[1]: Why.YIELD}, "it loses the least"
    rig.feed(after_ms=1)
    assert stops(rig) == {}, "there will be room"


def test_a_guest_of_several_groups_loses_what_all_of_them_do() -> None:
    rig = Rig(nodes=3)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)))
    work, drive = Group("work", 2, Resources(8, 1000)), Group("drive", 1, Resources(0, 1000))
    ways: dict[str, Any] = {"expect_ms": MINUTE_MS, "yields": True}
    team = rig.submit(ask=Resources(cpu_milli=1000), gang=3, needs=Needs(groups=(work, drive)), **ways)
    alone = rig.submit(8, **ways)
    start(rig, team, alone)
    rig.feed(after_ms=10 * MINUTE_MS)
    rig.submit(8)
    assert stops(rig) == {alone: Why.YIELD}, "half as many devices"


def test_guests_give_way_to_a_gang_of_several_groups() -> None:
    rig = Rig(nodes=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)))
    guest = rig.submit(8, expect_ms=MINUTE_MS, yields=True)
    start(rig, guest)
    rig.feed(after_ms=10 * MINUTE_MS)
    work, drive = Group("work", 1, Resources(8, 1000)), Group("drive", 1, Resources(0, 1000))
    rig.submit(ask=Resources(cpu_milli=1000), gang=2, needs=Needs(groups=(work, drive)))
    assert stops(rig) == {guest: Why.YIELD}


def test_giving_way_too_early_is_found() -> None:
    rig = Rig(nodes=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)))
    guest = rig.submit(8, expect_ms=HOUR_MS, yields=True)
    start(rig, guest)
    law = "left alone until it expects to end"
    with PLANTED["yields_too_early"](), pytest.raises(InvariantError, match=law):
        rig.submit(8)


@pytest.mark.parametrize(
    "fields",
    [{}, {"expect_ms": DAY_MS, "limit_ms": HOUR_MS}, {"expect_ms": HOUR_MS, "evictable": False}],
)
def test_who_yields_says_when_and_may_be_evicted(fields: dict[str, Any]) -> None:
    rig = rig_with()
    answer = rig.answer(event.Submit(Spec(("train",), ask=Resources(gpus=8), yields=True, **fields)))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.subject) == (Code.BAD_SPEC, "yields")


def test_who_borrows_is_given_way_to_in_a_restored_world_too() -> None:
    """There its line has not been met in any band yet."""
    rig = Rig(nodes=1)
    owner = Tenant(lines=(Line(GPU, guaranteed=gpu_amount(4)),))
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)), event.SetTenant("owner", owner))
    late = rig.submit(8, expect_ms=MINUTE_MS, yields=True)
    start(rig, late)
    rig.submit(8)
    end = rig.run(late).since + MINUTE_MS
    facts = plan_yields(rig.world, end)
    assert [type(item) for item in facts] == [fact.StopAsked, fact.Claimed]
    assert plan_yields(restore(snapshot(rig.world)), end) == facts


def test_a_guest_takes_nobodys_place() -> None:
    """Or an alarm that yields would be back at once, and lose all that it did again and again."""
    rig = Rig(nodes=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, 1)), event.SetTier("alarm", Tier(50, 0, emergency=True)))
    alarm = rig.submit(8, tier="alarm", expect_ms=MINUTE_MS, yields=True)
    start(rig, alarm)
    due = rig.submit(8)
    rig.feed(after_ms=HOUR_MS)
    assert stops(rig) == {alarm: Why.YIELD}
    rig.exit(alarm, code=143)
    start(rig, due)
    rig.feed(after_ms=HOUR_MS)
    assert (stops(rig), rig.phase(due)) == ({}, "Running")
    other = rig.submit(8, tier="alarm")
    assert rig.phase(due) == "Stopping", "who does not yield takes it, behind one who does"
    assert other in rig.world.claims


def test_no_guest_gives_way_to_another() -> None:
    rig = Rig(nodes=1)
    rig.feed(event.SetTier("standard", Tier(200, 0, shadows=1)))
    first = rig.submit(8, expect_ms=MINUTE_MS, yields=True)
    start(rig, first)
    second = rig.submit(8, expect_ms=MINUTE_MS, yields=True)
    rig.feed(after_ms=HOUR_MS)
    assert stops(rig) == {}, "they would take turns for ever"
    third = rig.submit(4)
    assert stops(rig) == {first: Why.YIELD}, "who is no guest ends some day"
    rig.exit(first, code=143)
    assert rig.phase(third) == "Starting", "by the order, the place would be the first one's again"
    assert [rig.phase(each) for each in (first, second)] == ["Queued", "Queued"]


def test_a_guest_is_not_begun_anew_to_be_wider() -> None:
    """Its stay would begin anew, and others count on when it said that it would give way."""
    rig = Rig(nodes=2)
    other = rig.submit(8)
    guest = rig.submit(8, gang_most=2, expect_ms=HOUR_MS, yields=True)
    host = rig.submit(8, gang_most=2)
    start(rig, guest)
    rig.exit(other)
    assert rig.phase(host) == "Starting"
    rig.exit(host)
    rig.feed(after_ms=6 * HOUR_MS)
    assert stops(rig) == {}


def test_a_guest_that_is_due_counts_on_no_guest_that_is_late() -> None:
    """Nobody gives way to it: it starts by the limit of who is there, and others may use what is free until then."""
    rig = Rig(nodes=2)
    rig.feed(event.SetTier("standard", Tier(200, 0, shadows=1)))
    late = rig.submit(8, expect_ms=MINUTE_MS, limit_ms=6 * HOUR_MS, yields=True)
    start(rig, late)
    ends_at = rig.run(late).since + 6 * HOUR_MS
    rig.feed(after_ms=HOUR_MS)
    guest = rig.submit(8, gang=2, expect_ms=MINUTE_MS, yields=True)
    assert [(shadow.job, shadow.at) for shadow in find_shadows(rig.world)] == [(guest, ends_at)]
    before = rig.world.fork()
    assert rig.phase(rig.submit(8, limit_ms=HOUR_MS)) == "Starting", "it is gone by then"
    check_shadows(before, rig.outcomes[-1], rig.world)
    check_world(rig.world)


def test_no_guest_overtakes_another_by_its_word() -> None:
    rig = Rig(nodes=2)
    rig.feed(event.SetTier("standard", Tier(200, 0, shadows=1)))
    rig.submit(8, limit_ms=6 * HOUR_MS)
    rig.submit(8, gang=2, expect_ms=MINUTE_MS, yields=True)
    assert rig.phase(rig.submit(8, expect_ms=MINUTE_MS, yields=True)) == "Queued", "it would not give way"
    assert rig.phase(rig.submit(8, expect_ms=MINUTE_MS, limit_ms=HOUR_MS, yields=True)) == "Starting"


def test_what_a_move_gains_for_a_guest_counts_on_no_guest_that_is_late() -> None:
    rig = Rig(nodes=1)
    late = rig.submit(8, expect_ms=MINUTE_MS, limit_ms=3 * HOUR_MS, yields=True)
    start(rig, late)
    rig.feed(after_ms=HOUR_MS)
    line = rig.world.queue.line_of(rig.job(rig.submit(8, expect_ms=MINUTE_MS, yields=True)))
    opens = [find_opening(rig.world, rig.now, line.shape, None, for_guest=is_guest) for is_guest in (False, True)]
    assert opens == [rig.now, rig.run(late).since + 3 * HOUR_MS]
