"""Budgets through the door: what is spent ends starts or borrowing, and the next period begins anew."""

from __future__ import annotations

import pytest

from muster.model import fact
from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.event import DropTenant, SetFlavor, SetTenant
from muster.model.node import Flavor
from muster.model.reason import Code, Refused
from muster.model.tenant import GPU, GPU_ONE, Line, Tenant
from muster.scheduler.reasons import explain
from muster.testing.rig import Rig
from muster.units import HOUR_MS, MINUTE_MS, Resources
from muster.wire.words import put_in_words
from muster.world.budgets import SCALE, AccountKey
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
    assert [rig.phase(job) for job in (first, second, third)] == ["Starting", "Starting", "Queued"], "what runs goes on"
    assert reason(rig, third) == (Code.BUDGET_SPENT, 5_000_001, 3_000_000)
    waiting = explain(rig.world, rig.job(third))
    assert waiting is not None
    assert put_in_words(waiting.reason).what == (
        "waiting for budget: tenant a has spent 5.000001 GPU-hours of 3 GPU-hours (budget gpu_hours)"
    )
    rig.exit(first)
    assert rig.phase(third) == "Queued", "what is given back is not unspent"
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
