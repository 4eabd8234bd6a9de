"""Budgets as people write and read them."""

from __future__ import annotations

import pytest

from muster.model.budget import GPU_HOURS, MONEY, Budget, parse_budget, show_budget, show_spending
from muster.units import DAY_MS, HOUR_MS, AmountError


@pytest.mark.parametrize(
    ("text", "budget", "shown"),
    [
        ("1000h", Budget(GPU_HOURS, 1_000_000_000), "1000 GPU-hours"),
        ("0.5h/1d", Budget(GPU_HOURS, 500_000, period_ms=DAY_MS, since_ms=7), "0.5 GPU-hours every 1d"),
        ("1h/30d", Budget(GPU_HOURS, 1_000_000, period_ms=30 * DAY_MS, since_ms=7), "1 GPU-hour every 30d"),
        ("5000", Budget(MONEY, 5_000_000_000), "5000.00 of money"),
        (
            "12.34/1h30m",
            Budget(MONEY, 12_340_000, period_ms=HOUR_MS * 3 // 2, since_ms=7),
            "12.34 of money every 1h 30m",
        ),
    ],
)
def test_a_budget_is_written_and_shown(text: str, budget: Budget, shown: str) -> None:
    assert parse_budget(text, since_ms=7) == budget
    assert show_budget(budget) == shown


def test_a_soft_one_says_so() -> None:
    assert show_budget(parse_budget("3h", soft=True)) == "3 GPU-hours (soft)"
    assert (show_spending(GPU_HOURS, 1), show_spending(MONEY, 1_500_000)) == ("0.000001 GPU-hours", "1.50")


@pytest.mark.parametrize(
    "text", ["", "h", "-1h", "1000d", "1000h/", "1000h/30", "1e3h", "1.0000001h", "1000h/30d/2", "x"]
)
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(AmountError, match=r"is not GPU-hours such as 1000h/30d"):
        parse_budget(text)


@pytest.mark.parametrize(("now", "start"), [(0, -3), (6, -3), (7, 7), (16, 7), (17, 17), (107, 107)])
def test_periods_follow_each_other_from_their_anchor_both_ways(now: int, start: int) -> None:
    assert Budget(MONEY, 1, period_ms=10, since_ms=7).starts_at(now) == start
