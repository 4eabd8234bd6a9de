"""`muster nodes`: what there is, and what is free of it."""

from __future__ import annotations

import click

from muster.cli.bars import show_bars
from muster.cli.printing import print_json, print_table
from muster.sdk.client import Client
from muster.units import show_bytes, show_cpus
from muster.wire.views import NodeView


@click.command()
@click.option("-o", "output", type=click.Choice(["table", "json", "name"]), default="table", help="The format.")
def nodes(output: str) -> None:
    """List nodes and what is free on them."""
    with Client() as client:
        views = client.nodes()
    if output == "json":
        print_json(views)
    elif output == "name":
        click.echo("".join(f"{view.name}\n" for view in views), nl=False)
    elif not views:
        click.echo("no node has reported yet", err=True)
    else:
        heads = ("NODE", "PHASE", "GPUS FREE", "CPUS FREE", "MEMORY FREE", "JOBS", "BARS")
        print_table(heads, [_node_row(view) for view in views])


def _node_row(view: NodeView) -> tuple[str, ...]:
    free, whole = view.free, view.capacity
    return (
        view.name,
        view.phase,
        f"{free.gpus}/{whole.gpus}",
        f"{show_cpus(free.cpu_milli)}/{show_cpus(whole.cpu_milli)}",
        f"{show_bytes(free.memory_bytes)}/{show_bytes(whole.memory_bytes)}",
        str(view.jobs),
        show_bars(view.bars),
    )


COMMANDS = {"nodes": nodes}
