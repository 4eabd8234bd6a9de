"""`muster notify`: who is told of what happens, and a trial. Routes are set on the server's machine, in a file of its
home: that part is handed over to a process that may check them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from muster.cli.failing import JOB_FAILED, OK
from muster.cli.lab import become
from muster.cli.listing import listing_group
from muster.cli.printing import Listing, show_plain
from muster.sdk.client import Client
from muster.units import show_duration
from muster.wire.notices import Kind
from muster.wire.views import RouteView

F = TypeVar("F", bound=Callable[..., Any])


@listing_group
def notify(client: Client) -> Listing:
    """List who is told of what happens; or add or remove somebody, or send a trial notice."""
    return _list(client.routes())


def _list(views: Sequence[RouteView]) -> Listing:
    return Listing(
        heads=("ROUTE", "KIND", "TO", "ON", "TENANTS", "WAITING"),
        rows=[_row(view) for view in views],
        value=views,
        names=[view.name for view in views],
        wide=frozenset({"WAITING"}),
        spare=frozenset({"TENANTS", "TO"}),
        empty="nobody is told of anything; `muster notify add` on the server's machine adds somebody",
    )


def _row(view: RouteView) -> tuple[str, ...]:
    on = ",".join(view.on) or "jobs that name it"
    return view.name, view.form, view.target, on, ",".join(view.tenants), show_duration(view.waiting_ms)


@notify.command("test")
@click.argument("name")
def test_route(name: str) -> int:
    """Send a trial notice now; leaves with 1 if it does not arrive."""
    with Client() as client:
        delivery = client.try_route(name)
    if delivery.is_delivered:
        click.echo(f"{delivery.id} arrived")
        return OK
    click.echo(f"{delivery.id} did not arrive: {show_plain(delivery.words)}", err=True)
    return JOB_FAILED


@notify.group("add")
def add() -> None:
    """Tell somebody more; on the server's machine."""


def _route_options(command: F) -> F:
    """What a route of either kind is told."""
    kinds = click.Choice([kind.value for kind in Kind if kind is not Kind.TRIAL])
    for option in (
        click.option("--waiting", default="", metavar="TIME", help="When a job has waited too long.  [default: 1h]"),
        click.option("--tenant", multiple=True, metavar="NAME", help="Of this one and all below; else of everybody."),
        click.option("--on", multiple=True, type=kinds, help="What it is told; else only of jobs that name it."),
    ):
        command = option(command)
    return command


@add.command("webhook")
@click.argument("name")
@click.argument("url")
@_route_options
@click.option("--secret-file", default="", metavar="PATH", help="Holds what signs the requests; else one is made.")
@click.option("--unsigned", is_flag=True, help="Do not sign.")
def add_webhook(name: str, url: str, secret_file: str, unsigned: bool, **wanted: Any) -> None:
    """By POST requests: muster notify add webhook team https://hooks.example.org/x --on job_failed"""
    secret = ["--secret-file", secret_file] if secret_file else []
    words = [*_spell(wanted), *secret, *(["--unsigned"] if unsigned else []), "--", name, url]
    become("notify", ("add", "webhook", *words))


@add.command("command")
@click.argument("name")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
@_route_options
def add_command(name: str, argv: tuple[str, ...], **wanted: Any) -> None:
    """By a command, which reads JSON: muster notify add command pager --on node_lost -- /usr/local/bin/page"""
    become("notify", ("add", "command", *_spell(wanted), "--", name, *argv))


def _spell(wanted: dict[str, Any]) -> list[str]:
    """What is wanted, as words of that other program."""
    waiting = ["--waiting", wanted["waiting"]] if wanted["waiting"] else []
    return [*waiting, *(word for key in ("on", "tenant") for value in wanted[key] for word in (f"--{key}", value))]


@notify.command("remove")
@click.argument("name")
def remove_route(name: str) -> None:
    """Tell somebody no more; on the server's machine."""
    become("notify", ("remove", "--", name))


COMMANDS = {"notify": notify}
