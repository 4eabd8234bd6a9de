"""`muster tiers`: which classes of service there are, who goes first, and how long a job may wait."""

from __future__ import annotations

from collections.abc import Sequence

import click

from muster.cli.listing import listing_group
from muster.cli.moments import AT
from muster.cli.naming import find_named
from muster.cli.printing import Listing, detail_options, fields_of, print_detail, print_fields
from muster.cli.trying import DRY_RUN, print_change_trial
from muster.model.sharing import INDEXES, Sharing
from muster.model.tier import Promise
from muster.sdk.client import Client
from muster.units import parse_count, parse_duration, parse_share, show_duration, show_share
from muster.wire.views import TierView


@listing_group
@AT
def tiers(client: Client, at: int | None) -> Listing:
    """List tiers, whoever goes first on top; or show or set one."""
    return _list(client.tiers(at_ms=at))


def _list(views: Sequence[TierView]) -> Listing:
    return Listing(_HEADS, [_row(view) for view in views], views, [view.name for view in views])


_HEADS = ("TIER", "RANK", "DUE AFTER", "SHADOWS", "MIN RUN", "EVICTIONS", "MOVES", "PROMISE", "SHARED BY")


@tiers.command("show")
@click.argument("name")
@detail_options
def show_tier(name: str, output: str) -> None:
    """Show one tier."""
    with Client() as client:
        view = find_named(client.tiers(), name, "tier")
    if not print_detail(output, view):
        print_fields(fields_of(_HEADS, _row(view)))


def _row(view: TierView) -> tuple[str, ...]:
    most = "any" if view.evictions_max is None else f"{view.evictions_max} a day"
    due, least = show_duration(view.longest_wait_ms), show_duration(view.min_run_ms) if view.min_run_ms else "-"
    moves = f"{view.moves_max} a day" if view.moves_max else "-"
    kept = (moves, _show_promise(view), "-" if view.sharing is None else _show_sharing(view.sharing))
    return view.name, str(view.rank), due, str(view.shadows), least, "emergency" if view.emergency else most, *kept


def _show_promise(view: TierView) -> str:
    """What a tier promises, to how much, and how many of its jobs will miss some of it."""
    if view.promise is None:
        return "-"
    word = f"{show_share(view.promise.share_milli)} of {show_duration(view.promise.window_ms)}"
    return f"{word}, {view.behind} behind" if view.behind else word


def _show_sharing(sharing: Sharing) -> str:
    return sharing.index if sharing.quantum_ms is None else f"{sharing.index}, {show_duration(sharing.quantum_ms)}"


@tiers.command("set")
@click.argument("name")
@click.option("--rank", required=True, metavar="N", help="The lower one goes first.")
@click.option("--due-after", required=True, metavar="TIME", help="How long a job may wait before it is due: 90m or 2d.")
@click.option("--shadows", default="1", metavar="N", help="How many who are due later jobs may not delay; 0 is none.")
@click.option("--min-run", default="", metavar="TIME", help="How long a run inside its guarantee is left alone.")
@click.option("--evictions", default="", metavar="N", help="How often in a day such a job may be stopped for others.")
@click.option("--moves", default="0", metavar="N", help="How often in a day its runs may be moved so that others fit.")
@click.option("--promise", default="", metavar="SHARE/TIME", help="To be up for so much of its first: 80%/7d.")
@click.option("--shared-by", default="", type=click.Choice(["", *INDEXES]), help="Its jobs take turns, by an index.")
@click.option("--quantum", default="", metavar="TIME", help="How long a turn is at least; else nobody is stopped.")
@click.option("--owed-after", default="", metavar="TIME", help="Who waited so long in a shared tier is owed a turn.")
@DRY_RUN
@click.option("--emergency", is_flag=True, help="It takes from every lower tier, whoever owns what.")
def set_tier(
    name: str,
    rank: str,
    due_after: str,
    shadows: str,
    min_run: str,
    evictions: str,
    moves: str,
    promise: str,
    shared_by: str,
    quantum: str,
    owed_after: str,
    emergency: bool,
    dry_run: bool,
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
        sharing=_parse_sharing(shared_by, quantum, owed_after),
        promise=_parse_promise(promise) if promise else None,
        moves_max=parse_count(moves, "moves"),
    )
    with Client() as client:
        if dry_run:
            print_change_trial(client.try_tier(tier))
            return
        client.set_tier(tier)
        client.settle()
    click.echo(f"tier {name} has rank {number}; a job is due after {show_duration(span_ms)}")


def _parse_promise(text: str) -> Promise:
    """A share and the window that it is of, as 80%/7d."""
    share, _, window = text.partition("/")
    return Promise(parse_share(share), parse_duration(window))


def _parse_sharing(shared_by: str, quantum: str, owed_after: str) -> Sharing | None:
    """How jobs take turns, if they do."""
    if not shared_by:
        if quantum or owed_after:
            raise click.UsageError("--quantum and --owed-after are for a tier that is shared: say --shared-by")
        return None
    spans = [parse_duration(text) if text else None for text in (quantum, owed_after)]
    return Sharing(shared_by, spans[0], owed_after_ms=spans[1])


COMMANDS = {"tiers": tiers}
