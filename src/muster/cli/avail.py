"""`muster avail`: what would start now, before anything is submitted. The server counts; here it is only laid out."""

from __future__ import annotations

import click

from muster.cli.printing import print_json, print_table, show_ask
from muster.sdk.client import Client
from muster.units import show_money
from muster.wire.views import OpeningView


@click.command()
@click.option("--tenant", default="default", show_default=True, help="Who would pay.")
@click.option("-o", "output", type=click.Choice(["table", "json"]), default="table", help="The format.")
def avail(tenant: str, output: str) -> None:
    """List what would start now for a tenant: how many tasks of each size, and what keeps out more."""
    with Client() as client:
        view = client.avail(tenant)
    if output == "json":
        print_json(view)
    elif not view.openings:
        click.echo("no node has reported yet", err=True)
    else:
        has_prices = any(opening.price_micros for opening in view.openings)
        heads = ("EACH", "TASKS", "LARGEST GANG", "LIMITED BY", *(("PRICE/H",) if has_prices else ()), "FLAGS OF RUN")
        print_table(heads, [_row(opening, has_prices) for opening in view.openings])


def _row(opening: OpeningView, has_prices: bool) -> tuple[str, ...]:
    price = show_money(opening.price_micros) if opening.price_micros else "-"
    counts = (show_ask(opening.ask), str(opening.tasks), str(opening.gang), opening.limited_by)
    return (*counts, *((price,) if has_prices else ()), opening.flags)


COMMANDS = {"avail": avail}
