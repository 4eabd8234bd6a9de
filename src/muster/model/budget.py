"""Budgets: what a tenant, with all below it, may spend in a period, in GPU-hours or in money.

The words, and how a budget is written and shown. What is spent is kept in `muster.world.budgets`.
"""

from __future__ import annotations

from typing import Final

from muster.model.record import Record
from muster.units import (
    HOUR_MS,
    MICRO,
    MINUTE_MS,
    AmountError,
    parse_duration,
    parse_millionths,
    show_duration,
    show_millionths,
    show_money,
)

GPU_HOURS: Final = "gpu_hours"
MONEY: Final = "money"
UNITS: Final = (GPU_HOURS, MONEY)
PERIOD_MIN_MS: Final = MINUTE_MS
BUDGETS_MAX: Final = 4


class Budget(Record, frozen=True):
    """The most to spend: `amount` is in millionths of a GPU-hour or of the currency. Periods follow each other from
    `since_ms` on; without `period_ms` there is only one. A soft budget that is spent warns and ends borrowing; a hard
    one ends starts and stops what runs."""

    unit: str
    amount: int
    soft: bool = False
    period_ms: int = 0
    since_ms: int = 0

    def starts_at(self, now: int) -> int:
        """When the period began that a moment lies in; a budget without periods has none, and no beginning."""
        return self.since_ms + (now - self.since_ms) // self.period_ms * self.period_ms if self.period_ms else 0


def parse_budget(text: str, *, soft: bool = False, since_ms: int = 0) -> Budget:
    """`1000h` GPU-hours, or `5000` of money; `1000h/30d` in every thirty days."""
    amount, slash, period = text.partition("/")
    unit = GPU_HOURS if amount.endswith("h") else MONEY
    try:
        most = parse_millionths(amount.removesuffix("h"))
        period_ms = parse_duration(period) if slash else 0
    except AmountError as error:
        raise AmountError(f"budget {text!r} is not GPU-hours such as 1000h/30d, or money such as 5000/30d") from error
    return Budget(unit, most, soft, period_ms, since_ms if period_ms else 0)


def show_spending(unit: str, amount: int) -> str:
    """An amount of a budget: `12.5 GPU-hours`, or `12.50` of money."""
    if unit == MONEY:
        return show_money(amount)
    return f"{show_millionths(amount)} GPU-hour{'' if amount == MICRO else 's'}"


def show_budget(budget: Budget) -> str:
    """`1000 GPU-hours every 30d`, `5000.00 of money (soft)`."""
    kind = " of money" if budget.unit == MONEY else ""
    every = f" every {show_duration(budget.period_ms)}" if budget.period_ms else ""
    return f"{show_spending(budget.unit, budget.amount)}{kind}{every}{' (soft)' if budget.soft else ''}"


def show_device_time(amount: int) -> str:
    """Thousandths of devices times milliseconds as GPU-hours, to a hundredth."""
    return show_spending(GPU_HOURS, amount * MICRO // (1000 * HOUR_MS) // 10_000 * 10_000)
