"""`muster tiers`: which classes of service there are, who goes first, and how long a job may wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
from msgspec.structs import replace

from muster.cli.listing import listing_group
from muster.cli.moments import AT
from muster.cli.naming import find_named
from muster.cli.printing import DRY_RUN, Listing, detail_options, fields_of, print_detail, print_fields
from muster.cli.trying import print_change_trial
from muster.model.sharing import INDEXES, Sharing
from muster.model.tier import Promise
from muster.sdk.client import Client
from muster.units import parse_count, parse_duration, parse_share, show_duration, show_share
from muster.wire.views import TierView

NONE: Final = "none"
ANY: Final = "any"


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
@click.option("--rank", metavar="N", help="The lower one goes first.")
@click.option("--due-after", metavar="TIME", help="How long a job may wait before it is due: 90m or 2d.")
@click.option(
    "--shadows", metavar="N", help="How many who are due later jobs may not delay; 0 is none, 1 of a new one."
)
@click.option("--min-run", metavar="TIME", help="How long a run inside its guarantee is left alone; or none.")
@click.option("--evictions", metavar="N", help="How often in a day such a job may be stopped for others; or any.")
@click.option("--moves", metavar="N", help="How often in a day its runs may be moved so that others fit.")
@click.option("--promise", metavar="SHARE/TIME", help="To be up for so much of its first: 80%/7d; or none.")
@click.option("--shared-by", type=click.Choice([*INDEXES, NONE]), help="Its jobs take turns, by an index.")
@click.option("--quantum", metavar="TIME", help="How long a turn is at least; else nobody is stopped.")
@click.option("--owed-after", metavar="TIME", help="Who waited so long in a shared tier is owed a turn.")
@DRY_RUN
@click.option("--emergency/--no-emergency", default=None, help="It takes from every lower tier, whoever owns what.")
def set_tier(
    name: str,
    dry_run: bool,
    shared_by: str | None,
    quantum: str | None,
    owed_after: str | None,
    **said: Any,
) -> None:
    """Name a tier, or change what it is; what is not named stays as it is: muster tiers set batch --rank 400
    --due-after 7d"""
    named = {_READ[option][0]: _READ[option][1](value) for option, value in said.items() if value is not None}
    turns = _read_sharing(shared_by, quantum, owed_after)
    if not named and not turns:
        raise click.UsageError("say what to set: --rank, --due-after, --promise, --shared-by or another")
    with Client() as client:
        known = next((view for view in client.tiers() if view.name == name), None)
        tier = replace(known or _name_new(name, named), **named)
        if turns:
            tier = replace(tier, sharing=_share(tier.sharing, turns))
        if dry_run:
            print_change_trial(client.try_tier(tier))
            return
        client.set_tier(tier)
        client.settle()
    click.echo(f"tier {name} has rank {tier.rank}; a job is due after {show_duration(tier.longest_wait_ms)}")


def _name_new(name: str, named: Mapping[str, Any]) -> TierView:
    if not {"rank", "longest_wait_ms"} <= set(named):
        raise click.UsageError(f"there is no tier {name!r} yet: say its --rank and its --due-after")
    return TierView(name, 0, 0)


def _parse_promise(text: str) -> Promise:
    """A share and the window that it is of, as 80%/7d."""
    share, _, window = text.partition("/")
    return Promise(parse_share(share), parse_duration(window))


_READ: Final[dict[str, tuple[str, Callable[[Any], Any]]]] = {
    "rank": ("rank", lambda text: parse_count(text, "rank")),
    "due_after": ("longest_wait_ms", parse_duration),
    "shadows": ("shadows", lambda text: parse_count(text, "shadows")),
    "min_run": ("min_run_ms", lambda text: 0 if text == NONE else parse_duration(text)),
    "evictions": ("evictions_max", lambda text: None if text == ANY else parse_count(text, "evictions")),
    "moves": ("moves_max", lambda text: parse_count(text, "moves")),
    "promise": ("promise", lambda text: None if text == NONE else _parse_promise(text)),
    "emergency": ("emergency", bool),
}
"""Which field of a tier an option says, and how it is read."""


def _read_sharing(shared_by: str | None, quantum: str | None, owed_after: str | None) -> dict[str, Any]:
    """What is said of how jobs take turns."""
    turns: dict[str, Any] = {} if shared_by is None else {"index": shared_by}
    spans = {"quantum_ms": quantum, "owed_after_ms": owed_after}
    return turns | {field: parse_duration(text) for field, text in spans.items() if text is not None}


def _share(known: Sharing | None, turns: Mapping[str, Any]) -> Sharing | None:
    """How jobs take turns from now on, if they do."""
    index = turns.get("index", NONE if known is None else known.index)
    if index != NONE:
        return replace(known or Sharing(), **turns)
    if len(turns) > 1 or "index" not in turns:
        raise click.UsageError("--quantum and --owed-after are for a tier that is shared: say --shared-by")
    return None


COMMANDS = {"tiers": tiers}
