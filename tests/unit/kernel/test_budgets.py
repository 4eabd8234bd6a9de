"""Budgets through the door: what is spent ends starts or borrowing and stops what runs, and the next period begins
anew."""

from __future__ import annotations

from unittest import mock

import pytest

from muster.kernel.kernel import Kernel, Outcome
from muster.model import fact
from muster.model.booking import Booking, Window
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.event import (
    Cancel,
    CancelBooking,
    DropTenant,
    Exited,
    NodeSeen,
    Progressed,
    Reserve,
    SetFlavor,
    SetTenant,
    Submit,
)
from muster.model.goodput import Bucket
from muster.model.instruction import Stop
from muster.model.node import Flavor, Traits
from muster.model.phase import TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.model.spec import Needs
from muster.model.tenant import GPU, GPU_ONE, Line, Tenant
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig, spec
from muster.units import HOUR_MS, MINUTE_MS, Resources
from muster.wire.words import put_in_words
from muster.world.accounting import read_account
from muster.world.budgets import SCALE, AccountKey, Budgets
from muster.world.snapshot import digest, restore, snapshot

HOUR = SCALE[GPU_HOURS] * 1_000_000


def budgeted(*budgets: Budget, line: Line | None = None) -> Rig:
    rig = Rig(nodes=2)
    rig.feed(SetTenant("a", Tenant(lines=() if line is None else (line,), budgets=budgets)), after_ms=0)
    return rig


def spent(rig: Rig, unit: str = GPU_HOURS, tenant: str = "a", *, soft: bool = False) -> int:
    return rig.world.budgets.get(AccountKey(tenant, unit, soft)).spent(rig.now)


def reason(rig: Rig, job: int) -> tuple[Code, int, int] | None:
    waiting = explain(rig.world, rig.job(job))
    return None if waiting is None else (waiting.reason.code, waiting.reason.needed, waiting.reason.available)


def test_a_hard_budget_that_is_spent_ends_starts() -> None:
    rig = budgeted(Budget(GPU_HOURS, 3_000_000))
    first = rig.submit(2, tenant="a")
    rig.feed(after_ms=HOUR_MS)
    assert spent(rig) == 2 * HOUR
    second = rig.submit(1, tenant="a")
    assert rig.phase(second) == "Starting", "an hour is left"
    rig.feed(after_ms=HOUR_MS)
    third = rig.submit(1, tenant="a")
    assert [rig.phase(job) for job in (first, second, third)] == ["Stopping", "Stopping", "Queued"]
    assert reason(rig, third) == (Code.BUDGET_SPENT, 5_000_001, 3_000_000)
    waiting = explain(rig.world, rig.job(third))
    assert waiting is not None
    assert put_in_words(waiting.reason).what == (
        "waiting for budget: tenant a has spent 5.000001 GPU-hours of 3 GPU-hours (budget gpu_hours)"
    )
    rig.exit(first)
    assert [rig.phase(job) for job in (first, third)] == ["Queued"] * 2, "what is given back is not unspent"
    assert rig.phase(rig.submit(0, tenant="a")) == "Starting", "what has no devices costs nothing"
    assert rig.phase(rig.submit(1, tenant="b")) == "Starting", "it is the budget of one tenant"
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(GPU_HOURS, 9_000_000),))))
    assert rig.phase(third) == "Starting", "a budget that is raised wakes who waited, and what was spent stays spent"


def test_the_next_period_wakes_who_waited_and_is_counted_from_its_beginning() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000, period_ms=2 * HOUR_MS))
    rig.submit(1, tenant="a")
    rig.feed(after_ms=HOUR_MS)
    waits = rig.submit(1, tenant="a")
    assert rig.phase(waits) == "Queued"
    wake_at = rig.feed(after_ms=0).wake_at
    assert wake_at == 2 * HOUR_MS
    outcome = rig.feed(after_ms=wake_at - rig.now + 5)
    assert fact.BudgetTurned("a", GPU_HOURS, soft=False, since=2 * HOUR_MS, cause="period") in outcome.facts
    assert rig.phase(waits) == "Starting"
    assert spent(rig) == 5 * GPU_ONE, "what runs spends from the first moment of the period"
    rig.feed(after_ms=7 * HOUR_MS)
    account = rig.world.budgets.get(AccountKey("a", GPU_HOURS, soft=False))
    assert account.since == 8 * HOUR_MS, "periods in which nobody looked are skipped"
    assert spent(rig) == 2 * GPU_ONE * (rig.now - 8 * HOUR_MS)


def test_a_soft_budget_that_is_spent_ends_borrowing_only() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000, soft=True), line=Line(GPU, guaranteed=4 * GPU_ONE))
    first = rig.submit(1, tenant="a")
    assert rig.phase(rig.submit(4, tenant="a")) == "Starting", "one of them is borrowed"
    rig.feed(after_ms=HOUR_MS)
    waits = rig.submit(1, tenant="a")
    assert rig.phase(waits) == "Queued"
    assert reason(rig, waits) == (Code.SOFT_BUDGET_SPENT, 5_000_001, 1_000_000)
    rig.exit(first)
    assert rig.phase(waits) == "Queued", "still above the guarantee"
    rig.feed(SetTenant("a", Tenant(lines=(Line(GPU, guaranteed=8 * GPU_ONE),), budgets=rig.world.tenants["a"].budgets)))
    assert rig.phase(waits) == "Starting", "inside the guarantee it may start"


def test_a_soft_budget_only_warns_where_nobody_owns_anything() -> None:
    rig = budgeted(Budget(GPU_HOURS, 0, soft=True))
    assert rig.phase(rig.submit(1, tenant="a")) == "Starting"


def test_the_budget_of_a_parent_counts_all_below_it() -> None:
    rig = budgeted(Budget(GPU_HOURS, 2_000_000))
    rig.tenant("child", parent="a")
    rig.submit(2, tenant="child")
    rig.feed(after_ms=HOUR_MS)
    waits = rig.submit(1, tenant="child")
    assert rig.phase(waits) == "Queued"
    assert reason(rig, waits) == (Code.BUDGET_SPENT, 2_000_000, 2_000_000)
    before = spent(rig)
    rig.tenant("child")
    assert rig.phase(waits) == "Starting", "it is somebody else's child now"
    rig.feed(after_ms=HOUR_MS)
    assert spent(rig) == before + 2 * GPU_ONE, "what it spent before it left stays spent, and no more is added"


def test_a_price_is_fixed_when_a_job_begins() -> None:
    rig = Rig(nodes=1)
    rig.feed(SetFlavor(GPU, Flavor(GPU, price_micros=3_000_000)))
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(MONEY, 10**12),))))
    first = rig.submit(2, tenant="a")
    rig.feed(SetFlavor(GPU, Flavor(GPU, price_micros=5_000_000)), after_ms=HOUR_MS)
    rig.submit(1, tenant="a")
    before = spent(rig, MONEY)
    rig.feed(after_ms=HOUR_MS)
    micro = SCALE[MONEY]
    assert spent(rig, MONEY) - before == (2 * 3_000_000 + 1 * 5_000_000) * micro
    twin = restore(snapshot(rig.world))
    assert digest(twin) == digest(rig.world)
    assert twin.budgets.prices == rig.world.budgets.prices == {first: {GPU: 3_000_000}}
    rig.exit(first)
    assert rig.world.budgets.prices == {}, "its next run would pay the new price"


def test_a_budget_counts_from_when_it_is_set() -> None:
    rig = Rig(nodes=1)
    rig.submit(4, tenant="a")
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(GPU_HOURS, 10**9),))), after_ms=HOUR_MS)
    assert spent(rig) == 0
    rig.feed(after_ms=MINUTE_MS)
    assert spent(rig) == 4 * GPU_ONE * MINUTE_MS


def test_what_was_spent_outlives_a_change_of_the_amount_but_not_of_the_period() -> None:
    rig = budgeted(Budget(GPU_HOURS, 10**9))
    rig.submit(1, tenant="a")
    rig.feed(after_ms=HOUR_MS)
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(GPU_HOURS, 5),))), after_ms=0)
    assert spent(rig) == HOUR
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(GPU_HOURS, 5, period_ms=HOUR_MS),))), after_ms=0)
    assert spent(rig) == 0


def test_shares_and_generations_cost_their_part() -> None:
    rig = Rig(nodes=1)
    rig.feed(SetFlavor(GPU, Flavor(GPU, units=1400)))
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(GPU_HOURS, 10**9),))))
    rig.submit(tenant="a", ask=Resources(gpu_milli=250, cpu_milli=1))
    rig.feed(after_ms=HOUR_MS)
    assert spent(rig) == 350_000 * SCALE[GPU_HOURS]


@pytest.mark.parametrize(
    ("budgets", "code"),
    [
        ((Budget("euros", 1),), Code.BAD_BUDGET),
        ((Budget(MONEY, 1, period_ms=59_999),), Code.BAD_BUDGET),
        ((Budget(MONEY, 1), Budget(GPU_HOURS, 1), Budget(MONEY, 2)), Code.BAD_BUDGET),
        ((Budget(MONEY, -1),), Code.BAD_AMOUNT),
        ((Budget(MONEY, 2**62 + 1),), Code.BAD_AMOUNT),
        ((Budget(MONEY, 1, period_ms=HOUR_MS, since_ms=-1),), Code.BAD_AMOUNT),
        (tuple(Budget(MONEY, number) for number in range(5)), Code.TOO_LARGE),
    ],
)
def test_what_contradicts_itself_is_refused(budgets: tuple[Budget, ...], code: Code) -> None:
    rig = Rig()
    before = digest(rig.world)
    answer = rig.answer(SetTenant("a", Tenant(budgets=budgets)))
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert digest(rig.world) == before


def test_a_tenant_that_is_dropped_takes_its_budget_along() -> None:
    rig = budgeted(Budget(GPU_HOURS, 0, period_ms=HOUR_MS))
    assert rig.feed(after_ms=0).wake_at == HOUR_MS
    outcome = rig.feed(DropTenant("a"))
    assert (rig.world.budgets.accounts, outcome.wake_at) == ({}, None)
    assert rig.phase(rig.submit(1, tenant="a")) == "Starting"


# -- what runs when a hard budget is spent ---------------------------------------------------------------------------


def stops(outcome: Outcome) -> list[tuple[int, Why, str]]:
    return [(item.job, item.why, item.cause) for item in outcome.facts if isinstance(item, fact.StopAsked)]


def told(outcome: Outcome) -> list[tuple[int, int, int, int]]:
    asked = [item for item in outcome.instructions if isinstance(item, Stop)]
    return [(item.job, item.first, item.count, item.grace_ms) for item in asked]


def wake(rig: Rig) -> Outcome:
    """Nothing happens until time alone brings something about."""
    wake_at = rig.feed(after_ms=0).wake_at
    assert wake_at is not None
    return rig.feed(after_ms=wake_at - rig.now)


def test_what_runs_is_told_to_stop_at_the_very_moment_and_waits_for_the_next_period() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000, period_ms=4 * HOUR_MS))
    gang = rig.submit(1, gang=3, tenant="a", grace_ms=7000)
    plain = rig.submit(0, tenant="a")
    rig.start(gang)
    began = rig.now - 2  # it was placed when it was submitted
    outcome = wake(rig)
    assert rig.now == began + HOUR_MS // 3, "an hour of one, a third of an hour of three"
    assert rig.world.budgets.get(AccountKey("a", GPU_HOURS, soft=False)).spent(rig.now - 1) < HOUR <= spent(rig)
    assert stops(outcome) == [(gang, Why.BUDGET, "budget gpu_hours of a")]
    assert told(outcome) == [(gang, 0, 3, 7000)], "with its own grace"
    assert rig.phase(plain) == "Starting", "what has no devices spends nothing"
    assert outcome.wake_at == 4 * HOUR_MS, "nobody is woken for it again"
    assert not rig.feed(after_ms=6999).facts, "it is told once"
    rig.feed(Exited(gang, 1, 143, 0, 3))
    assert rig.phase(gang) == "Queued"
    assert rig.job(gang).failures == 0, "it is nobody's failure"
    assert spent(rig) == HOUR + 3 * GPU_ONE * 7000, "what stops spends until it is gone"
    assert reason(rig, gang) == (Code.BUDGET_SPENT, 1_005_833, 1_000_000)
    wake(rig)
    assert (rig.now, rig.phase(gang), rig.job(gang).epoch) == (4 * HOUR_MS, "Starting", 2)


def test_money_is_spent_at_the_price_that_each_run_began_with() -> None:
    rig = Rig(nodes=1)
    rig.feed(SetFlavor(GPU, Flavor(GPU, price_micros=3_000_000)))
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(MONEY, 12_000_000),))))
    first = rig.submit(2, tenant="a")
    began = rig.now
    rig.feed(SetFlavor(GPU, Flavor(GPU, price_micros=9_000_000)), after_ms=HOUR_MS)
    assert rig.feed(after_ms=0).wake_at == began + 2 * HOUR_MS, "6 in each hour, as before"
    second = rig.submit(1, tenant="a")
    left = 12_000_000 * SCALE[MONEY] - spent(rig, MONEY)
    outcome = wake(rig)
    assert rig.now == began + HOUR_MS + 1 + -(-left // (15_000_000 * 1000)), "15 in each hour from then on"
    assert [job for job, _, _ in stops(outcome)] == [first, second]


def test_what_costs_nothing_goes_on() -> None:
    """Node 0 costs something, node 1 nothing: a budget of money stops only what is on the first."""
    rig = Rig()
    rig.feed(SetFlavor("h100", Flavor("hopper", price_micros=1_000_000)))
    rig.feed(NodeSeen("n0", Resources(4, 64_000, 2**38), traits=Traits("h100")))
    rig.feed(SetTenant("a", Tenant(budgets=(Budget(MONEY, 4_000_000),))))
    costly = rig.submit(4, tenant="a")
    rig.feed(NodeSeen("n1", Resources(4, 64_000, 2**38)))
    free = rig.submit(4, tenant="a")
    assert stops(wake(rig)) == [(costly, Why.BUDGET, "budget money of a")]
    assert rig.phase(free) == "Starting"


def test_the_budget_of_a_parent_stops_all_below_it_and_nobody_else() -> None:
    rig = budgeted(Budget(GPU_HOURS, 3_000_000))
    rig.tenant("child", parent="a")
    rig.tenant("grandchild", parent="child")
    rig.tenant("other")
    jobs = [rig.submit(1, tenant=name) for name in ("grandchild", "a", "other", "child")]
    outcome = wake(rig)
    assert [job for job, _, _ in stops(outcome)] == [jobs[0], jobs[1], jobs[3]]
    assert rig.phase(jobs[2]) == "Starting"


def test_the_tasks_of_an_array_are_stopped_and_wait_again() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000))
    array = rig.submit(4, array=6, tenant="a", grace_ms=5)
    rig.start(array, 0, 2)
    rig.feed(Exited(array, 1, 0, 1, 1))
    outcome = wake(rig)
    moved = fact.TasksMoved(array, 0, 1, TaskPhase.STOPPING, "budget gpu_hours of a", [2, 3], Why.BUDGET)
    assert outcome.facts == [moved], "those that are up and those that are about to be"
    assert told(outcome) == [(array, 0, 1, 5), (array, 2, 3, 5)]
    rig.feed(Exited(array, 1, 143, 0, 1), Exited(array, 1, 143, 2, 3))
    tasks = rig.world.arrays[array]
    assert not tasks.counts[TaskPhase.STOPPING]
    assert tasks.counts[TaskPhase.QUEUED] == 5
    assert rig.phase(array) == "Spread"


def test_what_stops_already_keeps_its_reason_and_a_cancel_is_a_cancel() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000))
    leaving, stopped = rig.submit(1, tenant="a"), rig.submit(1, tenant="a")
    rig.feed(Cancel(leaving))
    assert [job for job, _, _ in stops(wake(rig))] == [stopped]
    rig.feed(Cancel(stopped))
    rig.exit(leaving, 143)
    rig.exit(stopped, 143)
    assert [rig.phase(job) for job in (leaving, stopped)] == ["Cancelled"] * 2


def test_what_was_saved_before_a_budget_was_spent_stays_useful() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000))
    job = rig.submit(1, tenant="a")
    rig.start(job)
    rig.feed(Progressed(job, 1, 7, checkpointed=True), after_ms=HOUR_MS // 2)
    wake(rig)
    rig.feed(Exited(job, 1, 143), after_ms=MINUTE_MS)
    held = read_account(rig.world, rig.now, "a")[GPU]
    assert held[Bucket.USEFUL] == 1000 * HOUR_MS // 2
    assert held[Bucket.LOST] == 1000 * (HOUR_MS // 2 - 1), "it took a moment to start"
    assert held[Bucket.STOPPING] == 1000 * MINUTE_MS


def test_two_budgets_that_are_spent_at_one_moment_stop_each_run_once() -> None:
    rig = budgeted(Budget(GPU_HOURS, 2_000_000))
    rig.feed(SetTenant("child", Tenant("a", budgets=(Budget(GPU_HOURS, 1_000_000),))), after_ms=0)
    rig.feed(after_ms=10)
    child, own = rig.kernel.handle([Submit(spec(1, tenant="child")), Submit(spec(1, tenant="a"))], rig.now).answers
    outcome = rig.kernel.handle([], rig.now + HOUR_MS)
    assert isinstance(child, Done)
    assert isinstance(own, Done)
    assert stops(outcome) == [
        (child.job, Why.BUDGET, "budget gpu_hours of a"),
        (own.job, Why.BUDGET, "budget gpu_hours of a"),
    ]


def test_a_budget_that_is_raised_in_time_stops_nothing() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000))
    job = rig.submit(1, tenant="a")
    began = rig.now
    rig.feed(after_ms=HOUR_MS - 1)
    outcome = rig.feed(SetTenant("a", Tenant(budgets=(Budget(GPU_HOURS, 2_000_000),))), after_ms=0)
    assert outcome.wake_at == began + 2 * HOUR_MS
    assert not rig.feed(after_ms=HOUR_MS).facts
    assert stops(rig.feed(after_ms=1)) == [(job, Why.BUDGET, "budget gpu_hours of a")]


def test_a_budget_that_is_lowered_below_what_is_spent_stops_at_once() -> None:
    rig = budgeted(Budget(GPU_HOURS, 9_000_000))
    job = rig.submit(1, tenant="a")
    outcome = rig.feed(SetTenant("a", Tenant(budgets=(Budget(GPU_HOURS, 1_000_000),))), after_ms=HOUR_MS)
    assert [each for each, _, _ in stops(outcome)] == [job]
    other = rig.submit(1, tenant="b")
    outcome = rig.feed(SetTenant("b", Tenant("a")))
    assert [each for each, _, _ in stops(outcome)] == [other], "who comes below a budget that is spent stops, too"


def test_a_turn_comes_before_the_end() -> None:
    """What is spent at the moment at which a period begins is spent in the next one."""
    rig = budgeted(Budget(GPU_HOURS, 2_000_000, period_ms=2 * HOUR_MS, since_ms=3))
    job = rig.submit(1, tenant="a")
    assert rig.now == 3
    for period in range(1, 4):
        outcome = wake(rig)
        assert rig.now == 3 + period * 2 * HOUR_MS
        assert [type(item) for item in outcome.facts] == [fact.BudgetTurned]
    assert rig.phase(job) == "Starting"


def test_a_soft_budget_stops_nothing() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000, soft=True))
    job = rig.submit(1, tenant="a")
    assert rig.feed(after_ms=0).wake_at is None
    assert not rig.feed(after_ms=9 * HOUR_MS).facts
    assert rig.phase(job) == "Starting"


@pytest.mark.parametrize("later_ms", [0, 1, HOUR_MS - 1, HOUR_MS, HOUR_MS + 1])
def test_a_restored_world_stops_them_at_the_same_moment(later_ms: int) -> None:
    rig = budgeted(Budget(GPU_HOURS, 2_000_000, period_ms=30 * HOUR_MS))
    job = rig.submit(2, tenant="a")
    rig.start(job)
    rig.feed(after_ms=later_ms)
    twin = Kernel(restore(snapshot(rig.world)))
    assert twin.handle([], rig.now).wake_at == rig.feed(after_ms=0).wake_at
    for moment in (rig.now + HOUR_MS, rig.now + 2 * HOUR_MS):
        assert twin.handle([], moment) == rig.kernel.handle([], moment)


def test_a_world_whose_maker_stopped_nobody_is_put_in_order() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000))
    job = rig.submit(1, tenant="a")
    with mock.patch.object(Budgets, "overspent", return_value=[]):
        rig.kernel.handle([NodeSeen("n9", Resources(1))], rig.now + 2 * HOUR_MS)
    old = Kernel(restore(snapshot(rig.world)))
    outcome = old.handle([], rig.now + 2 * HOUR_MS)
    assert stops(outcome) == [(job, Why.BUDGET, "budget gpu_hours of a")]
    assert outcome.wake_at is None


def test_what_was_promised_in_a_booking_goes_on_as_long_as_it_is_booked() -> None:
    rig = budgeted(Budget(GPU_HOURS, 1_000_000))
    answer = rig.answer(Reserve(Booking("b", "a", 1, (Window(rig.now + 10, rig.now + 10 + 9 * HOUR_MS),))))
    assert isinstance(answer, Done), answer
    wake(rig)
    job = rig.submit(1, tenant="a", needs=Needs(booking="b"))
    assert rig.phase(job) == "Starting"
    outcome = rig.feed(after_ms=2 * HOUR_MS)
    assert not stops(outcome)
    assert outcome.wake_at is not None
    assert outcome.wake_at > rig.now, "nobody is woken for it again and again"
    outcome = rig.feed(CancelBooking("b"))
    assert [each for each, _, _ in stops(outcome)] == [job]
