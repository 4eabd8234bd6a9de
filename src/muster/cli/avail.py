"""`muster avail`: what would start now, before anything is submitted. The server counts; here it is only laid out."""

from __future__ import annotations

import click

from muster.cli.printing import print_json, print_table, show_ask
from muster.sdk.client import Client
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
        heads = ("EACH", "TASKS", "LARGEST GANG", "LIMITED BY", "FLAGS OF RUN")
        print_table(heads, [_row(opening) for opening in view.openings])


def _row(opening: OpeningView) -> tuple[str, ...]:
    return (show_ask(opening.ask), str(opening.tasks), str(opening.gang), opening.limited_by, opening.flags)


COMMANDS = {"avail": avail}
