"""`muster nodes`, `tenants` and `quota set`: what there is, and who may hold how much of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import click
import msgspec

from muster.cli.bars import show_bars
from muster.cli.printing import print_json, print_table
from muster.model.job import Quota
from muster.sdk.client import Client
from muster.units import Limit, parse_bytes, parse_count, parse_cpus, show_bytes, show_cpus
from muster.wire.views import NodeView, TenantView

UNLIMITED: Final = "unlimited"
_PARSERS: Final[dict[str, tuple[str, Callable[[str], int]]]] = {
    "gpus": ("gpus", parse_count),
    "cpus": ("cpu_milli", parse_cpus),
    "memory": ("memory_bytes", parse_bytes),
}


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


@click.command()
@click.option("-o", "output", type=click.Choice(["table", "json", "name"]), default="table", help="The format.")
def tenants(output: str) -> None:
    """List tenants, their quotas and their use."""
    with Client() as client:
        views = client.tenants()
    if output == "json":
        print_json(views)
    elif output == "name":
        click.echo("".join(f"{view.name}\n" for view in views), nl=False)
    elif not views:
        click.echo("no tenant yet: one appears with its first job or with `muster quota set`", err=True)
    else:
        print_table(("TENANT", "GPUS", "CPUS", "MEMORY"), [_tenant_row(view) for view in views])


def _tenant_row(view: TenantView) -> tuple[str, ...]:
    used = view.used
    return (
        view.name,
        f"{used.gpus}/{'-' if view.gpus is None else view.gpus}",
        f"{show_cpus(used.cpu_milli)}/{'-' if view.cpu_milli is None else show_cpus(view.cpu_milli)}",
        f"{show_bytes(used.memory_bytes)}/{'-' if view.memory_bytes is None else show_bytes(view.memory_bytes)}",
    )


@click.group()
def quota() -> None:
    """Set what a tenant may hold at once."""


@quota.command("set")
@click.argument("tenant")
@click.argument("limits", nargs=-1, required=True, metavar="KIND=AMOUNT...")
def set_quota(tenant: str, limits: tuple[str, ...]) -> None:
    """Set limits of TENANT: gpus=16 cpus=64 memory=512Gi. Kinds not named keep theirs; `unlimited` lifts one."""
    changes = dict(_parse_limit(text) for text in limits)
    with Client() as client:
        known = next((view for view in client.tenants() if view.name == tenant), None)
        before = Quota() if known is None else Quota(known.gpus, known.cpu_milli, known.memory_bytes)
        after = msgspec.structs.replace(before, **changes)
        client.set_quota(tenant, after)
        client.settle()
    click.echo(f"tenant {tenant} may hold {_show_quota(after)}")


def _parse_limit(text: str) -> tuple[str, Limit]:
    kind, equals, amount = text.partition("=")
    if not equals or kind not in _PARSERS:
        raise click.UsageError(f"{text!r} is not a limit such as gpus=16, cpus=64 or memory=512Gi")
    field, parse = _PARSERS[kind]
    return field, None if amount == UNLIMITED else parse(amount)


def _show_quota(quota: Quota) -> str:
    shows = (("gpus", "GPUs", str), ("cpu_milli", "CPUs", show_cpus), ("memory_bytes", "memory", show_bytes))
    parts = []
    for field, word, shown in shows:
        limit = getattr(quota, field)
        parts.append(f"{UNLIMITED if limit is None else shown(limit)} {word}")
    return ", ".join(parts)


COMMANDS = {"nodes": nodes, "tenants": tenants, "quota": quota}
