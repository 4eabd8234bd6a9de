"""`muster nodes` and `muster flavors`: what there is, what it counts as, and what is free of it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from muster.cli.bars import show_bars
from muster.cli.printing import print_fields, print_for_programs, print_json, print_table
from muster.model.node import UNITS_ONE, Flavor
from muster.sdk.client import Client
from muster.units import parse_money, show_bytes, show_cpus, show_money, show_resources
from muster.wire.views import DeviceView, FlavorView, NodeView

_LABEL_GAP = " "


@click.command()
@click.option("--flavor", default="", metavar="NAME", help="Only of this kind.")
@click.option("--region", default="", metavar="NAME", help="Only in this region.")
@click.option("--cluster", default="", metavar="NAME", help="Only in this cluster.")
@click.option("--rack", default="", metavar="NAME", help="Only in this rack.")
@click.option("--phase", type=click.Choice(["up", "unknown", "gone"]), default=None, help="Only in this phase.")
@click.option("-o", "output", type=click.Choice(["table", "json", "name"]), default="table", help="The format.")
def nodes(output: str, phase: str | None, **wanted: str) -> None:
    """List nodes and what is free on them."""
    with Client() as client:
        views = client.nodes(phase=phase or "", **wanted)
    if print_for_programs(output, views):
        return
    if not views:
        click.echo("no node is like that" if phase or any(wanted.values()) else "no node has reported yet", err=True)
    else:
        _print_columns(_HEADS, [_node_row(view) for view in views])


_HEADS = (
    *("NODE", "PHASE", "FLAVOR", "PLACE", "GPUS FREE", "CPUS FREE", "MEMORY FREE", "JOBS"),
    *("LABELS", "TAINTS", "LACKS", "BARS"),
)
_SPARE = frozenset({"PLACE", "LABELS", "TAINTS", "LACKS"})


def _print_columns(heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    """A table without the columns that could be left out and in which nobody has anything."""
    kept = [at for at, head in enumerate(heads) if head not in _SPARE or any(row[at] for row in rows)]
    print_table([heads[at] for at in kept], [tuple(row[at] for at in kept) for row in rows])


def _node_row(view: NodeView) -> tuple[str, ...]:
    free, whole = view.free, view.capacity
    return (
        view.name,
        view.phase,
        view.flavor,
        show_place(view),
        f"{free.gpus}/{whole.gpus}",
        f"{show_cpus(free.cpu_milli)}/{show_cpus(whole.cpu_milli)}",
        f"{show_bytes(free.memory_bytes)}/{show_bytes(whole.memory_bytes)}",
        str(view.jobs),
        _show_labels(view),
        _LABEL_GAP.join(view.taints),
        "" if view.lacks is None else show_resources(view.lacks),
        show_bars(view.bars),
    )


def show_place(view: NodeView) -> str:
    """Region, cluster, block and rack, as far as they have names: `eu/alpha/b1/r4`."""
    return "/".join(filter(None, (view.region, view.cluster, view.block, view.rack)))


def print_node(client: Client, name: str, output: str) -> None:
    """`muster show NODE`."""
    view = client.node(name)
    if output == "json":
        print_json(view)
        return
    print_fields(_fields(view))
    if view.devices:
        click.echo()
        print_table(("DEVICE", "ID", "FREE"), [_device_row(device) for device in view.devices])


def _fields(view: NodeView) -> list[tuple[str, str]]:
    more = f" of {show_resources(view.capacity)}"
    return [
        ("node", view.address),
        ("phase", view.phase),
        ("flavor", view.flavor),
        *[(field, getattr(view, field)) for field in ("region", "cluster", "block", "rack")],
        ("torus", f"{view.torus}: {view.spot}" if view.torus else ""),
        ("labels", _show_labels(view)),
        ("taints", _LABEL_GAP.join(view.taints)),
        ("free", show_resources(view.free) + more),
        ("lacks", "" if view.lacks is None else f"{show_resources(view.lacks)} of what it joined with"),
        ("losses", f"{view.losses} points of late" if view.losses else ""),
        ("bars", show_bars(view.bars)),
        ("jobs", ", ".join(map(str, view.job_ids))),
    ]


def _device_row(device: DeviceView) -> tuple[str, ...]:
    free = "missing" if device.is_missing else show_cpus(device.free_milli)
    return str(device.number), device.id or "-", free


def _show_labels(view: NodeView) -> str:
    return _LABEL_GAP.join(f"{key}={value}" for key, value in view.labels.items())


@click.group(invoke_without_command=True)
@click.option("-o", "output", type=click.Choice(["table", "json", "name"]), default="table", help="The format.")
@click.pass_context
def flavors(context: click.Context, output: str) -> None:
    """List kinds of capacity, what they count as and what is free, or set one."""
    if context.invoked_subcommand is not None:
        return
    with Client() as client:
        views = client.flavors()
    if print_for_programs(output, views):
        return
    if not views:
        click.echo("no flavor yet: one appears with its first node or with `muster flavors set`", err=True)
    else:
        heads = ("FLAVOR", "FAMILY", "UNITS", "PRICE", "NODES", "DEVICES", "FREE")
        print_table(heads, [_flavor_row(view) for view in views])


def _flavor_row(view: FlavorView) -> tuple[str, ...]:
    price = show_money(view.price_micros) if view.price_micros else "-"
    return view.name, view.family, str(view.units), price, str(view.nodes), str(view.devices), str(view.free)


@flavors.command("set")
@click.argument("name")
@click.option("--family", metavar="NAME", help="Whose quota lines it shares.")
@click.option("--units", type=int, metavar="N", help=f"What one device counts there; {UNITS_ONE} is one.")
@click.option("--price", metavar="AMOUNT", help="Of one device for an hour, such as 2.50.")
def set_flavor(name: str, family: str | None, units: int | None, price: str | None) -> None:
    """Say what a flavor is; what is not named stays as it is."""
    if family is None and units is None and price is None:
        raise click.UsageError("say what to set: --family, --units or --price")
    micros = None if price is None else parse_money(price)
    with Client() as client:
        known = next((view for view in client.flavors() if view.name == name), FlavorView(name, name, UNITS_ONE))
        flavor = Flavor(
            known.family if family is None else family,
            known.units if units is None else units,
            known.price_micros if micros is None else micros,
        )
        client.set_flavor(name, flavor)
        client.settle()
    cost = f", {show_money(flavor.price_micros)} an hour" if flavor.price_micros else ""
    click.echo(f"{name} is {flavor.family}: one device counts {flavor.units}{cost}")


COMMANDS = {"nodes": nodes, "flavors": flavors}
