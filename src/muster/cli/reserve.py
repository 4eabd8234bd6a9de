"""`muster reserve`, `bookings` and `unreserve`: nodes for a tenant in a window of time, once or again and again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import click

from muster.cli.moments import AT
from muster.cli.printing import DRY_RUN, Listing, listing_options, show_listing
from muster.cli.trying import print_booking_trial
from muster.sdk.client import Client
from muster.sdk.spelling import Wishes
from muster.sdk.windows import EVERY, expand_windows
from muster.units import parse_count, parse_duration, show_instant
from muster.wire.views import BookingView

SHOWN: Final = 3


@click.command()
@click.argument("name", required=False)
@click.option("--tenant", default="default", show_default=True, help="Whose it is.")
@click.option("--nodes", default="1", metavar="N", help="So many whole nodes.  [default: 1]")
@click.option("--gpus", default="0", metavar="N", help="Each with at least so many GPUs.")
@click.option("--flavor", default="", metavar="NAME", help="Of this kind.")
@click.option("--within", default="", metavar="LEVEL", help="All in one rack, block, cluster or region.")
@click.option("--from", "begin", required=True, metavar="TIME", help="2h (from now), or 2026-11-15 14:05.")
@click.option("--for", "span", required=True, metavar="TIME", help="For how long: 2h or 90m.")
@click.option("--every", type=click.Choice(list(EVERY)), help="Again at the same time of day.")
@click.option("--times", metavar="N", help="How often, up to 64.  [default: 7 with --every]")
@click.option("--tz", default="UTC", show_default=True, metavar="ZONE", help="The zone of the time, with its DST.")
@click.option("--flexible", default="", metavar="TIME", help="It may begin so much later.")
@click.option("--shared", is_flag=True, help="For the jobs of all tenants below, too.")
@DRY_RUN
def reserve(
    name: str | None,
    tenant: str,
    nodes: str,
    gpus: str,
    flavor: str,
    within: str,
    begin: str,
    span: str,
    every: str | None,
    times: str | None,
    tz: str,
    flexible: str,
    shared: bool,
    dry_run: bool,
) -> None:
    """Book nodes for a tenant in a window of time: muster reserve night --tenant vision --nodes 4 --from 2h --for 2h"""
    count = parse_count(times, "times") if times else 7 if every else 1
    now_ms = int(time.time() * 1000)
    windows = expand_windows(begin, parse_duration(span), now_ms, every=every or "", times=count, zone=tz)
    called = name or f"{tenant}-{show_instant(windows[0][0])[:16].replace(' ', '-').replace(':', '')}"
    wishes: Wishes = {
        "gpus": parse_count(gpus, "gpus"),
        "flavor": flavor,
        "within": within,
        "shared": shared,
        "flexible_ms": parse_duration(flexible) if flexible else 0,
    }
    booked = (called, tenant, parse_count(nodes, "nodes"), windows)
    with Client() as client:
        if dry_run:
            trial = client.try_reserve(*booked, **wishes)
            click.echo(f"booking {called} would be made, for {tenant}:")
            print_booking_trial(trial)
            return
        client.reserve(*booked, **wishes)
        client.settle()
        made = next((each for each in client.bookings() if each.name == called), None)
    opens_at_ms = made.windows[0].opens_at_ms if made is not None else windows[0][0]
    again = len(windows) - 1
    more = f", and {'once' if again == 1 else f'{again} times'} more" if again else ""
    click.echo(f"booking {called} opens at {show_instant(opens_at_ms)}{more}")


@click.command()
@AT
@listing_options
def bookings(output: str, watch: bool, at: int | None) -> None:
    """List bookings, whatever opens first on top."""
    with Client() as client:
        show_listing(lambda: _list(client.bookings(at_ms=at)), output, watch)


def _list(views: Sequence[BookingView]) -> Listing:
    heads = ("BOOKING", "TENANT", "STATE", "OPENS", "CLOSES", "NODES", "WHERE")
    return Listing(
        heads,
        [row for view in views for row in _rows(view)],
        views,
        [view.name for view in views],
        empty="nothing is booked; `muster reserve` books nodes",
    )


@click.command()
@click.argument("name")
def unreserve(name: str) -> None:
    """Give a booking up; what runs there goes on."""
    with Client() as client:
        client.cancel_booking(name)
        client.settle()
    click.echo(f"booking {name} is given up")


def _rows(view: BookingView) -> list[tuple[str, ...]]:
    """A line per window; one that is short says so."""
    rows: list[tuple[str, ...]] = []
    for window in view.windows:
        here = view.nodes - window.short
        nodes = f"{here} of {view.nodes}: short by {window.short}" if window.short else str(here)
        more = f", {here - SHOWN} more" if here > SHOWN else ""
        times = (show_instant(window.opens_at_ms)[:16], show_instant(window.closes_at_ms)[:16])
        state = "open" if window.is_open else "booked"
        rows.append((view.name, view.tenant, state, *times, nodes, ", ".join(window.nodes[:SHOWN]) + more))
    return rows


COMMANDS = {"reserve": reserve, "bookings": bookings, "unreserve": unreserve}
