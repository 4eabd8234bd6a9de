"""`muster nodes` and `muster flavors`: what there is, what it counts as, and what is free of it."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec.structs import replace

from muster.cli.bars import show_bars
from muster.cli.listing import listing_group
from muster.cli.moments import AT
from muster.cli.naming import find_named, take_one
from muster.cli.printing import (
    Listing,
    detail_options,
    print_detail,
    print_fields,
    print_table,
)
from muster.model.node import UNITS_ONE, Flavor
from muster.model.partition import parse_partition
from muster.sdk.client import Client
from muster.units import ZERO, Resources, parse_money, show_bytes, show_cpus, show_money, show_resources
from muster.wire.views import DeviceView, FlavorView, LaterView, NodeView

_LABEL_GAP = " "


@listing_group
@click.option("--flavor", multiple=True, callback=take_one, metavar="NAME", help="Only of this kind.")
@click.option("--region", multiple=True, callback=take_one, metavar="NAME", help="Only in this region.")
@click.option("--cluster", multiple=True, callback=take_one, metavar="NAME", help="Only in this cluster.")
@click.option("--rack", multiple=True, callback=take_one, metavar="NAME", help="Only in this rack.")
@click.option(
    "--phase",
    type=click.Choice(["up", "unknown", "gone"]),
    multiple=True,
    callback=take_one,
    help="Only in this phase.",
)
@AT
def nodes(client: Client, phase: str, at: int | None, **wanted: str) -> Listing:
    """List nodes and what is free on them; or show one."""
    is_narrow = bool(phase or any(wanted.values()))
    return _list_nodes(client.nodes(at_ms=at, phase=phase, **wanted), is_narrow)


def _list_nodes(views: Sequence[NodeView], is_narrow: bool) -> Listing:
    return Listing(
        heads=(
            *("NODE", "PHASE", "FLAVOR", "PLACE", "GPUS FREE", "CPUS FREE", "MEMORY FREE", "JOBS"),
            *("LABELS", "TAINTS", "LACKS", "SLOTS FREE", "LOSSES", "ADDRESS", "BARS"),
        ),
        rows=[_node_row(view) for view in views],
        value=views,
        names=[view.name for view in views],
        wide=frozenset({"SLOTS FREE", "LOSSES", "ADDRESS"}),
        spare=frozenset({"PLACE", "LABELS", "TAINTS", "LACKS"}),
        empty="no node is like that" if is_narrow else "no node has reported yet",
    )


def _node_row(view: NodeView) -> tuple[str, ...]:
    whole = view.capacity
    free = _free_of(view)
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
        f"{view.slots_free}/{view.slots}" if view.slots else "-",
        str(view.losses),
        view.address,
        show_bars(view.bars),
    )


def _free_of(view: NodeView) -> Resources:
    """What is free there; what is not there is nobody's to have."""
    return ZERO if view.phase == "gone" else view.free


def show_place(view: NodeView) -> str:
    """Region, cluster, block and rack, as far as they have names: `eu/alpha/b1/r4`."""
    return "/".join(filter(None, (view.region, view.cluster, view.block, view.rack)))


@nodes.command("show")
@click.argument("name")
@detail_options
def show_node(name: str, output: str) -> None:
    """Show one node and its devices."""
    with Client() as client:
        print_node(client, name, output)


def print_node(client: Client, name: str, output: str) -> None:
    """`muster show NODE`."""
    view = client.node(name)
    if print_detail(output, view):
        return
    print_fields(_fields(view))
    if view.devices:
        click.echo()
        print_table(("DEVICE", "ID", "FREE", "PARTITIONS"), [_device_row(device) for device in view.devices])


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
        ("free", show_resources(_free_of(view)) + more),
        ("lacks", "" if view.lacks is None else f"{show_resources(view.lacks)} of what it joined with"),
        ("later", "" if view.later is None else _show_later(view.later)),
        ("losses", f"{view.losses} points of late" if view.losses else ""),
        ("bars", show_bars(view.bars)),
        ("jobs", ", ".join(map(str, view.job_ids))),
    ]


def _show_later(later: LaterView) -> str:
    place = "/".join(filter(None, (later.region, later.cluster, later.block, later.rack)))
    where = f" in {place}" if place else ""
    return f"{later.flavor}{where} with {show_resources(later.capacity)}, once nothing runs there"


def _device_row(device: DeviceView) -> tuple[str, ...]:
    free = "missing" if device.is_missing else show_cpus(device.free_milli)
    return str(device.number), device.id or "-", free, _LABEL_GAP.join(device.partitions) or "-"


def _show_labels(view: NodeView) -> str:
    return _LABEL_GAP.join(f"{key}={value}" for key, value in view.labels.items())


@listing_group
@AT
def flavors(client: Client, at: int | None) -> Listing:
    """List kinds of capacity, what they count as and what is free; or show or set one."""
    return _list_flavors(client.flavors(at_ms=at))


def _list_flavors(views: Sequence[FlavorView]) -> Listing:
    return Listing(
        heads=("FLAVOR", "FAMILY", "UNITS", "PRICE", "NODES", "DEVICES", "FREE", "WATTS"),
        rows=[_flavor_row(view) for view in views],
        value=views,
        names=[view.name for view in views],
        spare=frozenset({"WATTS"}),
        empty="no flavor yet: one appears with its first node or with `muster flavors set`",
    )


@flavors.command("show")
@click.argument("name")
@detail_options
def show_flavor(name: str, output: str) -> None:
    """Show one flavor."""
    with Client() as client:
        view = find_named(client.flavors(), name, "flavor")
    if not print_detail(output, view):
        heads = ("flavor", "family", "units", "price", "nodes", "devices", "free", "watts")
        slots = str(view.slots) if view.partitions else ""
        cut = [("slots", slots), ("partitions", _LABEL_GAP.join(view.partitions))]
        print_fields([*zip(heads, _flavor_row(view), strict=True), *cut])


def _flavor_row(view: FlavorView) -> tuple[str, ...]:
    price = show_money(view.price_micros) if view.price_micros else "-"
    watts = f"{view.watts}" + (f", {view.core_watts} a core" if view.core_watts else "")
    counts = str(view.nodes), str(view.devices), str(view.free)
    return view.name, view.family, str(view.units), price, *counts, watts if view.watts or view.core_watts else ""


@flavors.command("set")
@click.argument("name")
@click.option("--family", metavar="NAME", help="Whose quota lines it shares.")
@click.option("--units", type=int, metavar="N", help=f"What one device counts there; {UNITS_ONE} is one.")
@click.option("--price", metavar="AMOUNT", help="Of one device for an hour, such as 2.50.")
@click.option("--watts", type=int, metavar="N", help="What one device takes of a power feed while it is held.")
@click.option("--core-watts", type=int, metavar="N", help="What one core takes.")
@click.option("--slots", type=int, metavar="N", help="Its devices are cut into so many slots; 0 is not at all.")
@click.option("--partition", multiple=True, metavar="NAME=SLOTS@STARTS", help="What may lie there: 3g.40gb=4@0,4.")
def set_flavor(name: str, price: str | None, partition: tuple[str, ...], **fields: str | int | None) -> None:
    """Say what a flavor is; what is not named stays as it is. Its partitions are said all at once."""
    named = {**fields, "price_micros": None if price is None else parse_money(price)}
    changed: dict[str, object] = {field: value for field, value in named.items() if value is not None}
    if not (changed or partition):
        raise click.UsageError("say what to set: --family, --units, --price, --watts, --slots or --partition")
    with Client() as client:
        known = next((view for view in client.flavors() if view.name == name), FlavorView(name, name, UNITS_ONE))
        parts = tuple(map(parse_partition, partition or ([] if changed.get("slots") == 0 else known.partitions)))
        takes = (known.watts, known.core_watts)
        flavor = replace(Flavor(known.family, known.units, known.price_micros, *takes, known.slots, parts), **changed)
        client.set_flavor(name, flavor)
        client.settle()
    cost = f", {show_money(flavor.price_micros)} an hour" if flavor.price_micros else ""
    power = f", {flavor.watts} W" if flavor.watts else ""
    cut = f", cut into {flavor.slots} slots" if flavor.partitions else ""
    click.echo(f"{name} is {flavor.family}: one device counts {flavor.units}{cost}{power}{cut}")


COMMANDS = {"nodes": nodes, "flavors": flavors}
