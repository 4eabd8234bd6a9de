"""`muster avail`: what would start now, before anything is submitted. The server counts; here it is only laid out."""

from __future__ import annotations

import click

from muster.cli.printing import Listing, listing_options, show_ask, show_listing
from muster.sdk.client import Client
from muster.units import show_money
from muster.wire.views import AvailView, OpeningView


@click.command()
@click.option("--tenant", default="", help="Who would pay.  [default: as of `run`]")
@listing_options
def avail(tenant: str, output: str, watch: bool) -> None:
    """List what would start now for a tenant: how many tasks of each size, and what keeps out more."""
    with Client() as client:
        show_listing(lambda: _list(client.avail(tenant)), output, watch)


def _list(view: AvailView) -> Listing:
    return Listing(
        heads=("EACH", "TASKS", "LARGEST GANG", "LIMITED BY", "PRICE/H", "FLAGS OF RUN"),
        rows=[_row(opening) for opening in view.openings],
        value=view,
        names=[opening.flags for opening in view.openings],
        spare=frozenset({"PRICE/H"}),
        empty="no node has reported yet",
    )


def _row(opening: OpeningView) -> tuple[str, ...]:
    price = show_money(opening.price_micros) if opening.price_micros else ""
    return show_ask(opening.ask), str(opening.tasks), str(opening.gang), opening.limited_by, price, opening.flags


COMMANDS = {"avail": avail}
