"""Tenants as a reader sees them: the tree from the root down, each line with what is held and what is impaired, each
budget with what is spent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.model.tenant import FLEET, ROOT, Line
from muster.wire.views import BudgetView, LineView, TenantView
from muster.world.budgets import SCALE, Account
from muster.world.quota import children_of
from muster.world.world import World


def view_tenants(world: World, now: int, present: Iterable[str] = ()) -> list[TenantView]:
    """Every tenant that was named, holds something or is `present` with jobs, if only to wait: each before those below
    it, by name."""
    used: dict[str, dict[str, int]] = {}
    for (name, family, scope), amount in world.ledger.holdings().items():
        if scope == FLEET and name != ROOT:
            used.setdefault(name, {})[family] = amount
    tenants = {name: world.tenant_of(name) for name in (*world.tenants, *used, *present)}
    return [_view_tenant(world, name, used.get(name, {}), now) for name in _walk(children_of(tenants), ROOT)]


def _view_tenant(world: World, name: str, used: dict[str, int], now: int) -> TenantView:
    tenant = world.tenant_of(name)
    lines = [_line(world, name, line) for line in tenant.lines]
    budgets = [_budget(account, now) for account in world.budgets.accounts.get(name, ())]
    return TenantView(name, tenant.parent, tenant.weight, lines, used, budgets)


def _line(world: World, name: str, line: Line) -> LineView:
    share = world.quotas.funds()[(line.family, line.scope)].shares.get(name)
    return LineView(
        family=line.family,
        scope=line.scope,
        guaranteed=line.guaranteed,
        limit=line.limit,
        lend=line.lend,
        used=world.ledger.held(name, line.family, line.scope),
        impaired=0 if share is None or not line.guaranteed else share.claim - share.whole,
    )


def _budget(account: Account, now: int) -> BudgetView:
    budget = account.budget
    return BudgetView(
        unit=budget.unit,
        amount=budget.amount,
        soft=budget.soft,
        period_ms=budget.period_ms,
        since_ms=budget.since_ms,
        spent=account.spent(now) // SCALE[budget.unit],
        turns_at_ms=budget.starts_at(now) + budget.period_ms if budget.period_ms else None,
    )


def _walk(children: dict[str, list[str]], name: str) -> Iterator[str]:
    for child in children.get(name, ()):
        yield child
        yield from _walk(children, child)
