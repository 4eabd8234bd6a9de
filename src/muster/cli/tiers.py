"""`muster tiers`: which classes of service there are, who goes first, and how long a job may wait."""

from __future__ import annotations

from collections.abc import Sequence

import click

from muster.cli.naming import find_named
from muster.cli.printing import Listing, detail_options, listing_options, print_detail, print_fields, show_listing
from muster.cli.trying import DRY_RUN, print_change_trial
from muster.sdk.client import Client
from muster.units import parse_count, parse_duration, show_duration
from muster.wire.views import TierView


@click.group(invoke_without_command=True)
@listing_options
@click.pass_context
def tiers(context: click.Context, output: str, watch: bool) -> None:
    """List tiers, whoever goes first on top; or show or set one."""
    if context.invoked_subcommand is not None:
        return
    with Client() as client:
        show_listing(lambda: _list(client.tiers()), output, watch)


def _list(views: Sequence[TierView]) -> Listing:
    return Listing(_HEADS, [_row(view) for view in views], views, [view.name for view in views])


_HEADS = ("TIER", "RANK", "DUE AFTER", "SHADOWS", "MIN RUN", "EVICTIONS")


@tiers.command("show")
@click.argument("name")
@detail_options
def show_tier(name: str, output: str) -> None:
    """Show one tier."""
    with Client() as client:
        view = find_named(client.tiers(), name, "tier")
    if not print_detail(output, view):
        print_fields([(head.lower(), cell) for head, cell in zip(_HEADS, _row(view), strict=True)])


def _row(view: TierView) -> tuple[str, ...]:
    most = "any" if view.evictions_max is None else f"{view.evictions_max} a day"
    due, least = show_duration(view.longest_wait_ms), show_duration(view.min_run_ms) if view.min_run_ms else "-"
    return view.name, str(view.rank), due, str(view.shadows), least, "emergency" if view.emergency else most


@tiers.command("set")
@click.argument("name")
@click.option("--rank", required=True, metavar="N", help="The lower one goes first.")
@click.option("--due-after", required=True, metavar="TIME", help="How long a job may wait before it is due: 90m or 2d.")
@click.option("--shadows", default="1", metavar="N", help="How many who are due later jobs may not delay; 0 is none.")
@click.option("--min-run", default="", metavar="TIME", help="How long a run inside its guarantee is left alone.")
@click.option("--evictions", default="", metavar="N", help="How often in a day such a job may be stopped for others.")
@DRY_RUN
@click.option("--emergency", is_flag=True, help="It takes from every lower tier, whoever owns what.")
def set_tier(
    name: str, rank: str, due_after: str, shadows: str, min_run: str, evictions: str, emergency: bool, dry_run: bool
) -> None:
    """Name a tier, or change what it is: muster tiers set batch --rank 400 --due-after 7d"""
    number, span_ms = parse_count(rank, "rank"), parse_duration(due_after)
    tier = TierView(
        name,
        number,
        span_ms,
        parse_count(shadows, "shadows"),
        min_run_ms=parse_duration(min_run) if min_run else 0,
        evictions_max=parse_count(evictions, "evictions") if evictions else None,
        emergency=emergency,
    )
    with Client() as client:
        if dry_run:
            print_change_trial(client.try_tier(tier))
            return
        client.set_tier(tier)
        client.settle()
    click.echo(f"tier {name} has rank {number}; a job is due after {show_duration(span_ms)}")


COMMANDS = {"tiers": tiers}
