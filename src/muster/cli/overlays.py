"""`muster overlays`: power feeds and uplinks, who is behind them, and what is left of their budgets."""

from __future__ import annotations

import click

from muster.cli.listing import listing_group
from muster.cli.moments import AT
from muster.cli.naming import find_named
from muster.cli.printing import Listing, detail_options, fields_of, print_detail, print_fields
from muster.model.overlay import NETWORK, POWER, UNITS, Overlay
from muster.sdk.client import Client
from muster.units import parse_count
from muster.wire.views import OverlayView

_HEADS = ("OVERLAY", "OF", "BUDGET", "TAKEN", "LEFT", "NODES", "MEMBERS")
_SHOWN = 3


@listing_group
@AT
def overlays(client: Client, at: int | None) -> Listing:
    """List power feeds and uplinks, and what is left of each; or show, set or remove one."""
    views = client.overlays(at_ms=at)
    return Listing(
        heads=_HEADS,
        rows=[_row(view) for view in views],
        value=views,
        names=[view.name for view in views],
        empty="no overlay yet: `muster overlays set` makes one",
    )


def _row(view: OverlayView) -> tuple[str, ...]:
    left = f"over by {_show(view, view.over)}" if view.over else _show(view, view.left)
    amounts = _show(view, view.budget), _show(view, view.taken), left
    return view.name, view.resource, *amounts, str(len(view.nodes)), _show_members(view)


def _show(view: OverlayView, amount: int) -> str:
    return f"{amount:,} {view.unit}"


def _show_members(view: OverlayView) -> str:
    more = f" and {len(view.named) - _SHOWN} more" if len(view.named) > _SHOWN else ""
    return " ".join([*view.labels, *view.named[:_SHOWN]]) + more


@overlays.command("show")
@click.argument("name")
@detail_options
def show_overlay(name: str, output: str) -> None:
    """Show one overlay and its nodes."""
    with Client() as client:
        view = find_named(client.overlays(), name, "overlay")
    if not print_detail(output, view):
        fields = fields_of(_HEADS, _row(view))[:5]
        print_fields([*fields, ("labels", " ".join(view.labels)), ("nodes", " ".join(view.nodes))])


@overlays.command("set")
@click.argument("name")
@click.option("--power", default="", metavar="WATTS", help="What its nodes may take together of power.")
@click.option("--network", default="", metavar="MBIT", help="What they may take together of the network, in Mbit/s.")
@click.option("--node", "nodes", multiple=True, metavar="NODE", help="A node that is behind it; may be given again.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Nodes with all these labels are, too.")
def set_overlay(name: str, power: str, network: str, nodes: tuple[str, ...], labels: tuple[str, ...]) -> None:
    """Name an overlay, or change what it is: muster overlays set row-a --power 120000 --label feed=a

    What is not named of one that is there stays as it is. What runs is left alone.
    """
    if power and network:
        raise click.UsageError("an overlay has one budget: --power or --network")
    with Client() as client:
        known = next((view for view in client.overlays() if view.name == name), None)
        if known is None and not (power or network):
            raise click.UsageError("say its budget: --power or --network")
        overlay = _merge(known, power, network, nodes, labels)
        client.set_overlay(name, overlay)
        client.settle()
    click.echo(f"overlay {name} has a budget of {overlay.budget:,} {UNITS[overlay.resource]}")


def _merge(
    known: OverlayView | None, power: str, network: str, nodes: tuple[str, ...], labels: tuple[str, ...]
) -> Overlay:
    """What an overlay shall be: what was typed, and where nothing was, what it is."""
    resource = POWER if power else NETWORK
    budget = parse_count(power or network, resource) if power or network else 0
    if known is None:
        return Overlay(resource, budget, nodes, labels)
    if not (power or network):
        resource, budget = known.resource, known.budget
    is_same = not (nodes or labels)
    return Overlay(
        resource, budget, tuple(known.named) if is_same else nodes, tuple(known.labels) if is_same else labels
    )


@overlays.command("remove")
@click.argument("name")
def remove_overlay(name: str) -> None:
    """Remove an overlay: its budget binds nobody any more."""
    with Client() as client:
        client.drop_overlay(name)
        client.settle()
    click.echo(f"overlay {name} is removed")


COMMANDS = {"overlays": overlays}
