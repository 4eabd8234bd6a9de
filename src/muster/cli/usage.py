"""`muster usage`, which is `muster report cost` for those who pay: who used how much of what, and what it cost."""

from __future__ import annotations

import sys
import time
from typing import Final

import click

from muster.cli.printing import Listing, listing_options, show_listing
from muster.sdk.client import Client
from muster.units import HOUR_MS, parse_past, show_instant, show_money
from muster.wire.views import UsageRow, UsageView

GROUPS: Final = ("tenant", "user", "flavor", "hour")
DEVICE_HOUR: Final = 1000 * HOUR_MS
FOCUS: Final = "focus"
FOCUS_HEADS: Final = (
    *("BilledCost", "ChargeCategory", "ChargePeriodStart", "ChargePeriodEnd", "ConsumedQuantity", "ConsumedUnit"),
    *("ServiceName", "SkuId", "SubAccountId", "x_User", "x_CpuHours", "x_Jobs"),
)
"""Columns of the FinOps FOCUS specification; those of our own begin with `x_`."""


@click.command()
@click.option("--by", multiple=True, type=click.Choice(GROUPS), help="What to sum by; may be given more than once.")
@click.option("--since", default="30d", show_default=True, metavar="TIME", help="From the hour of then on.")
@click.option("--until", default=None, metavar="TIME", help="To the hour of then (default: now).")
@click.option("--tenant", default="", help="Only this tenant's.")
@click.option("--format", "form", type=click.Choice((FOCUS,)), help="As CSV with the columns of FinOps FOCUS.")
@listing_options
def usage(
    by: tuple[str, ...], since: str, until: str | None, tenant: str, form: str | None, output: str, watch: bool
) -> None:
    """Say who used how much of what, and what it cost. Times are as in `10m` (ago), `03:10` or `2026-11-15 14:05`."""
    groups = by or (GROUPS if form == FOCUS else GROUPS[:1])
    with Client() as client:

        def look() -> UsageView:
            now = int(time.time() * 1000)
            since_ms = parse_past(since, now)
            until_ms = now if until is None else parse_past(until, now)
            if until_ms < since_ms:
                raise click.UsageError(f"--since {since} is later than {f'--until {until}' if until else 'now'}")
            return client.usage(by=groups, since_ms=since_ms, until_ms=until_ms, tenant=tenant)

        if form == FOCUS:
            _print_charges(look())
            return
        show_listing(lambda: _list(look(), groups), output, watch)


def _list(view: UsageView, groups: tuple[str, ...]) -> Listing:
    return Listing(
        heads=(*(group.upper() for group in groups), "GPU-HOURS", "USEFUL", "CPU-HOURS", "JOBS", "COST"),
        rows=[_row(row, groups) for row in view.rows],
        value=view,
        names=["/".join(_names(row, groups)) for row in view.rows],
        empty="nothing was used then",
        note=f"in full hours, {show_instant(view.since_ms)[:16]} to {show_instant(view.until_ms)[:16]} UTC",
    )


def _row(row: UsageRow, groups: tuple[str, ...]) -> tuple[str, ...]:
    held = sum(row.time.values())
    share = f"{1000 * row.time.get('useful', 0) // held / 10:.1f}%" if held else "-"
    hours = (_show_hours(held, DEVICE_HOUR), share, _show_hours(row.cpu_ms, HOUR_MS))
    return (*_names(row, groups), *hours, str(row.jobs), show_money(row.cost_micros))


def _names(row: UsageRow, groups: tuple[str, ...]) -> list[str]:
    named = {"tenant": row.tenant, "user": row.user, "flavor": row.flavor or "-"}
    named["hour"] = "" if row.hour_ms is None else show_instant(row.hour_ms)[:16]
    return [named[group] for group in groups]


def _show_hours(time_ms: int, one: int) -> str:
    whole, part = divmod(1000 * time_ms // one, 1000)
    return f"{whole}.{part:03d}"


def _print_charges(view: UsageView) -> None:
    """As CSV; unlike in our own, the heads are spelt as the specification spells them."""
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(FOCUS_HEADS)
    writer.writerows(_charge(row, view) for row in view.rows)


def _charge(row: UsageRow, view: UsageView) -> tuple[str, ...]:
    begin, end = (view.since_ms, view.until_ms) if row.hour_ms is None else (row.hour_ms, row.hour_ms + HOUR_MS)
    quantity = _show_hours(sum(row.time.values()), DEVICE_HOUR)
    return (
        *(show_money(row.cost_micros), "Usage", _iso(begin), _iso(end), quantity, "GPU-Hours"),
        *("muster", row.flavor or "cpu", row.tenant, row.user, _show_hours(row.cpu_ms, HOUR_MS), str(row.jobs)),
    )


def _iso(at_ms: int) -> str:
    return show_instant(at_ms)[:19].replace(" ", "T") + "Z"


@click.group()
def report() -> None:
    """Reports for those who pay."""


report.add_command(usage, "cost")

COMMANDS = {"usage": usage, "report": report}
