"""`muster tenants` and `muster quota`: the tree of tenants, who may hold how much of what, and who does.

A line is written KIND=AMOUNT: `gpus`, `cpus` and `memory`, or the name of a family of GPUs; with a colon, only in a
region or cluster (`h100:eu/alpha=16`). What is not named stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

import click
import msgspec

from muster.cli.listing import listing_group
from muster.cli.moments import AT
from muster.cli.naming import find_named
from muster.cli.printing import (
    DRY_RUN,
    Listing,
    detail_options,
    print_detail,
    print_fields,
    print_table,
)
from muster.cli.trying import print_change_trial
from muster.model.budget import Budget, parse_budget, show_budget, show_spending
from muster.model.tenant import CPU, GPU, MEMORY, Line, Tenant, name_line, parse_amount, show_amount
from muster.sdk.client import Client
from muster.units import Limit, show_instant
from muster.wire.views import BudgetView, LineView, TenantView

UNLIMITED: Final = "unlimited"
ALL: Final = "all"
_FAMILIES: Final = {"gpus": GPU, "cpus": CPU}

replace = msgspec.structs.replace


@listing_group
@AT
def tenants(client: Client, at: int | None) -> Listing:
    """List tenants, their quotas and their use; or show, set or drop one."""
    return _list(client.tenants(at_ms=at))


def _list(views: Sequence[TenantView]) -> Listing:
    """The tree with its lines; how many budgets a tenant has, `tenants show` says more of."""
    return Listing(
        heads=("TENANT", "WEIGHT", "LINE", "USED", "GUARANTEED", "LIMIT", "LENDS", "BUDGETS"),
        rows=[row for view in views for row in _rows(views, view)],
        value=views,
        names=[view.name for view in views],
        spare=frozenset({"BUDGETS"}),
        carried=2,
        empty="no tenant is set, and none has jobs now; `muster quota set` sets one",
    )


@tenants.command("show")
@click.argument("name")
@detail_options
def show_tenant(name: str, output: str) -> None:
    """Show one tenant: its lines, and its budgets with what is spent of them."""
    with Client() as client:
        views = client.tenants()
    view = find_named(views, name, "tenant")
    if print_detail(output, view):
        return
    print_fields([("tenant", view.name), ("parent", view.parent), ("weight", str(view.weight))])
    click.echo()
    print_table(("LINE", "USED", "GUARANTEED", "LIMIT", "LENDS"), [row[2:-1] for row in _rows(views, view)])
    if view.budgets:
        click.echo()
        print_table(("BUDGET", "SPENT", "STATE", "NEXT PERIOD"), [_budget_cells(budget) for budget in view.budgets])


@tenants.command("set")
@click.argument("tenant")
@click.argument("limits", nargs=-1, metavar="[KIND=LIMIT]...")
@click.option("--parent", metavar="TENANT", help="Stand below it; '' is the root.")
@click.option("--weight", type=int, metavar="N", help="Its part among its siblings.")
@click.option("--guarantee", multiple=True, metavar="KIND=AMOUNT", help="Its own whenever it wants it; 0 is none.")
@click.option("--budget", multiple=True, metavar="1000h/30d", help="GPU-hours, or money without the h, in each period.")
@click.option("--soft", is_flag=True, help="Budgets named here warn and end borrowing; they do not end starts.")
@click.option("--no-budget", is_flag=True, help="Lift all its budgets first.")
@DRY_RUN
@click.option("--lend", multiple=True, metavar="KIND=AMOUNT", help="Lend no more of an unused guarantee, or `all`.")
def set_quota(
    tenant: str,
    limits: tuple[str, ...],
    parent: str | None,
    weight: int | None,
    guarantee: tuple[str, ...],
    lend: tuple[str, ...],
    budget: tuple[str, ...],
    soft: bool,
    no_budget: bool,
    dry_run: bool,
) -> None:
    """Set limits of TENANT: gpus=16 cpus=64 memory=512Gi h100:eu=8. What is not named stays; `unlimited` lifts one."""
    changes = [*_parse("limit", limits), *_parse("guaranteed", guarantee), *_parse("lend", lend)]
    if not (changes or budget or no_budget) and parent is None and weight is None:
        raise click.UsageError(
            "say what to set: limits such as gpus=16, --guarantee, --lend, --budget, --parent, --weight"
        )
    with Client() as client:
        known = next((view for view in client.tenants() if view.name == tenant), TenantView(tenant))
        after = Tenant(
            known.parent if parent is None else parent,
            known.weight if weight is None else weight,
            _change(known.lines, changes),
            _rebudget(() if no_budget else known.budgets, budget, soft=soft),
        )
        if dry_run:
            print_difference(known, after)
            _print_notes(client, known, after)
            print_change_trial(client.try_tenant(tenant, after))
            return
        client.set_tenant(tenant, after)
        client.settle()
        _print_notes(client, known, after)
    click.echo(f"tenant {tenant} {show_lines(after.lines)}")
    for each in after.budgets:
        click.echo(f"tenant {tenant} may spend {show_budget(each)}")
    is_new = after != _as_it_is(known) or after == Tenant()  # one that has nothing of its own may be no tenant yet
    click.echo("muster undo takes it back" if is_new else "it was so before; nothing was changed", err=True)


def _as_it_is(view: TenantView) -> Tenant:
    return Tenant(view.parent, view.weight, _change(view.lines, []), _rebudget(view.budgets, (), soft=False))


def tenant_of(view: TenantView) -> Tenant:
    """What was set of a tenant, out of what is shown of it."""
    return Tenant(view.parent, view.weight, _change(view.lines, ()), _rebudget(view.budgets, (), soft=False))


def _print_notes(client: Client, known: TenantView, after: Tenant) -> None:
    """What somebody who sets lines may not expect: those of a family that nobody has, and those that are passed."""
    changed = [line for line in after.lines if line not in tenant_of(known).lines]
    named = {line.family for line in changed} - {CPU, MEMORY}
    families = {flavor.family for flavor in client.flavors() if flavor.devices} if named else set()
    there = f"there are {', '.join(sorted(families))}" if families else "there are none at all"
    for family in sorted(named - families):
        kind = "family gpu (what `gpus` stands for)" if family == GPU else f"family {family}"
        click.echo(f"note: no node has GPUs of {kind} now; {there}", err=True)
    for line in changed:
        used = known.used.get(line.family, 0)
        if not line.scope and line.limit is not None and used > line.limit:
            held = show_amount(line.family, used)
            click.echo(f"note: {known.name} holds {held}, which is more: what runs goes on, nothing starts", err=True)


def print_difference(known: TenantView, after: Tenant) -> None:
    """What is, and what would be."""
    lines = tuple(Line(one.family, one.scope, one.guaranteed, one.limit, one.lend) for one in known.lines)
    for words, before, then in (
        ("lines", show_lines(lines), show_lines(after.lines)),
        ("parent", known.parent or "the root", after.parent or "the root"),
        ("weight", str(known.weight), str(after.weight)),
    ):
        if before != then:
            click.echo(f"{words}: {then} (now: {before})")


@tenants.command("drop")
@click.argument("tenant")
def drop_quota(tenant: str) -> None:
    """Take TENANT out of the tree: nobody may be below it, and nothing of it may wait or run."""
    with Client() as client:
        client.drop_tenant(tenant)
        client.settle()
    click.echo(f"tenant {tenant} has no quota and no place in the tree any more")


Change = tuple[str, str, str, Limit]
"""A line's family and scope, the field, and what it shall be."""


def _parse(field: str, texts: Iterable[str]) -> list[Change]:
    return [_parse_change(field, text) for text in texts]


def _parse_change(field: str, text: str) -> Change:
    line, equals, amount = text.partition("=")
    kind, colon, scope = line.partition(":")
    if not (equals and kind and amount) or bool(colon) != bool(scope):
        raise click.UsageError(f"{text!r} is not a line such as gpus=16, memory=512Gi or h100:eu/alpha=8")
    family = _FAMILIES.get(kind, kind)
    lifts = {"limit": UNLIMITED, "lend": ALL}
    return family, scope, field, None if amount == lifts.get(field) else parse_amount(family, amount)


def _change(known: Iterable[LineView], changes: Iterable[Change]) -> tuple[Line, ...]:
    """The lines with their changes; one that says nothing any more is left out."""
    lines = {(one.family, one.scope): Line(one.family, one.scope, one.guaranteed, one.limit, one.lend) for one in known}
    for family, scope, field, value in changes:
        before = lines.get((family, scope), Line(family, scope))
        lines[(family, scope)] = replace(before, **{field: value})
    return tuple(lines[key] for key in sorted(lines) if lines[key] != Line(*key))


def _rebudget(known: Iterable[BudgetView], texts: Iterable[str], *, soft: bool) -> tuple[Budget, ...]:
    """The budgets with their changes. Periods go on from where they were counted; new ones are counted from now."""
    budgets = {
        (one.unit, one.soft): Budget(one.unit, one.amount, one.soft, one.period_ms, one.since_ms) for one in known
    }
    for text in texts:
        after = parse_budget(text, soft=soft, since_ms=int(time.time() * 1000))
        before = budgets.get((after.unit, soft))
        if before is not None and before.period_ms == after.period_ms:
            after = replace(after, since_ms=before.since_ms)
        budgets[(after.unit, soft)] = after
    return tuple(budgets[key] for key in sorted(budgets))


def _rows(views: Sequence[TenantView], view: TenantView) -> list[tuple[str, ...]]:
    """A row for each line, and for each family that is held without one; the name stands on the first."""
    depth = _depth({other.name: other.parent for other in views}, view.name)
    held = [
        family for family in sorted(view.used) if all((line.family, line.scope) != (family, "") for line in view.lines)
    ]
    lines = [*view.lines, *(LineView(family, used=view.used[family]) for family in held)]
    cells = [_cells(line) for line in lines] or [("-", "-", "-", "-", "-")]
    heads = [("  " * depth + view.name, str(view.weight)), *[("", "")] * (len(cells) - 1)]
    budgets = ", ".join(_show_spent(budget) for budget in view.budgets)
    ends = [budgets, *[""] * (len(cells) - 1)]
    return [(*head, *rest, end) for head, rest, end in zip(heads, cells, ends, strict=True)]


def _show_spent(view: BudgetView) -> str:
    """`12h of 1000h/30d, spent`."""
    budget = Budget(view.unit, view.amount, view.soft, view.period_ms, view.since_ms)
    return f"{show_spending(view.unit, view.spent)} of {show_budget(budget)}" + ", spent" * (view.spent >= view.amount)


def _cells(line: LineView) -> tuple[str, ...]:
    def show(amount: int | None, none: str) -> str:
        return none if amount is None else show_amount(line.family, amount)

    guaranteed = show(line.guaranteed or None, "-")
    if line.impaired:
        guaranteed += f" ({show(line.guaranteed - line.impaired, '')} healthy)"
    lends = show(line.lend, ALL) if line.guaranteed else "-"
    return name_line(line.family, line.scope), show(line.used, "-"), guaranteed, show(line.limit, "-"), lends


def _budget_cells(view: BudgetView) -> tuple[str, ...]:
    budget = Budget(view.unit, view.amount, view.soft, view.period_ms, view.since_ms)
    state = "within"
    if view.spent >= view.amount:
        state = "spent: may not borrow" if view.soft else "spent: starts nothing"
    turns = "-" if view.turns_at_ms is None else show_instant(view.turns_at_ms)
    return show_budget(budget), show_spending(view.unit, view.spent), state, turns


def _depth(parents: dict[str, str], name: str) -> int:
    depth = 0
    while parents.get(name):
        name, depth = parents[name], depth + 1
    return depth


def show_lines(lines: Iterable[Line]) -> str:
    shown = "; ".join(_show_line(line) for line in lines)
    return f"may hold {shown}" if shown else "has no line of its own"


def _show_line(line: Line) -> str:
    """`gpu: at most 64 GPUs, 32 GPUs guaranteed, lends 8 GPUs`."""
    parts = [] if line.limit is None else [f"at most {show_amount(line.family, line.limit)}"]
    if line.guaranteed:
        parts.append(f"{show_amount(line.family, line.guaranteed)} guaranteed")
    if line.lend is not None:
        parts.append(f"lends {show_amount(line.family, line.lend)}")
    return f"{name_line(line.family, line.scope)}: {', '.join(parts)}"


COMMANDS = {"tenants": tenants, "quota": tenants}
