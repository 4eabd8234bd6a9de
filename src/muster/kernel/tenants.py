"""What an admin says of tenants: where each stands in the tree, and its lines. What contradicts itself is refused.

What is held already is never taken away by a smaller quota, and how much hardware there is does not matter here: a
guarantee that healthy capacity cannot cover is shown as impaired, not refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from muster.kernel.budgets import stop_spenders
from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.budget import BUDGETS_MAX, PERIOD_MIN_MS, UNITS, Budget
from muster.model.phase import TERMINAL
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.spec import is_name
from muster.model.tenant import DEPTH_MAX, LINES_MAX, ROOT, WEIGHT_MAX, Line, Tenant, name_line
from muster.units import AMOUNT_MAX, show_duration
from muster.world.quota import children_of, find_line

Key: TypeAlias = tuple[str, str]


def on_set_tenant(turn: Turn, item: event.SetTenant) -> Done | Refused:
    """Put a tenant into the tree, or change it there; its lines are kept in the order of their names."""
    lines = tuple(sorted(item.tenant.lines, key=lambda line: (line.family, line.scope)))
    budgets = tuple(sorted(item.tenant.budgets, key=lambda budget: (budget.unit, budget.soft)))
    tenant = msgspec.structs.replace(item.tenant, lines=lines, budgets=budgets)
    known = turn.world.tenants
    fault = _find_fault(item.name, tenant) or _find_tree_fault(known, item.name, tenant)
    if fault is not None:
        return fault
    if known.get(item.name) != tenant:
        turn.emit(fact.TenantSet(item.name, tenant, item.cause))
        stop_spenders(turn)
    return DONE


def on_drop_tenant(turn: Turn, item: event.DropTenant) -> Done | Refused:
    """Take a tenant out of the tree, if nobody is below it and nothing of it waits or runs."""
    world, name = turn.world, item.name
    if name not in world.tenants:
        return refuse(Code.UNKNOWN_TENANT, "tenant", detail=name[:128])
    children = sum(tenant.parent == name for tenant in world.tenants.values())
    if children:
        return refuse(Code.TENANT_IN_USE, "tenants below it", children, detail=name)
    jobs = sum(job.spec.tenant == name and not isinstance(job.phase, TERMINAL) for job in world.jobs.values())
    if jobs:
        return refuse(Code.TENANT_IN_USE, "jobs that are not over", jobs, detail=name)
    turn.emit(fact.TenantDropped(name, item.cause))
    return DONE


def _find_fault(name: str, tenant: Tenant) -> Refused | None:
    """What is wrong with a tenant by itself."""
    if not is_name(name):
        return refuse(Code.BAD_NAME, "tenant", len(name), 128, name[:40])
    if not 1 <= tenant.weight <= WEIGHT_MAX:
        return refuse(Code.BAD_AMOUNT, "weight", tenant.weight, WEIGHT_MAX, f"between 1 and {WEIGHT_MAX}")
    if len(tenant.lines) > LINES_MAX:
        return refuse(Code.TOO_LARGE, "lines", len(tenant.lines), LINES_MAX)
    faults = [fault for line in tenant.lines if (fault := _find_line_fault(line)) is not None]
    if faults:
        return faults[0]
    for line, following in itertools.pairwise(tenant.lines):
        if _key(line) == _key(following):
            return refuse(Code.BAD_QUOTA, name_line(*_key(line)), detail="there are two lines for it")
    return _find_budget_fault(tenant.budgets)


def _find_budget_fault(budgets: Sequence[Budget]) -> Refused | None:
    if len(budgets) > BUDGETS_MAX:
        return refuse(Code.TOO_LARGE, "budgets", len(budgets), BUDGETS_MAX)
    for budget in budgets:
        if budget.unit not in UNITS:
            return refuse(Code.BAD_BUDGET, budget.unit[:40], detail=f"the unit is one of {', '.join(UNITS)}")
        if budget.period_ms and budget.period_ms < PERIOD_MIN_MS:
            detail = f"a period is at least {show_duration(PERIOD_MIN_MS)}"
            return refuse(Code.BAD_BUDGET, budget.unit, budget.period_ms, PERIOD_MIN_MS, detail)
        for field in ("amount", "period_ms", "since_ms"):
            if not 0 <= getattr(budget, field) <= AMOUNT_MAX:
                return refuse(Code.BAD_AMOUNT, f"budget.{field}", getattr(budget, field), AMOUNT_MAX, "from 0 to 2^62")
    for budget, following in itertools.pairwise(budgets):
        if (budget.unit, budget.soft) == (following.unit, following.soft):
            return refuse(
                Code.BAD_BUDGET, budget.unit, detail=f"there are two {'soft' if budget.soft else 'hard'} ones"
            )
    return None


def _find_line_fault(line: Line) -> Refused | None:
    for field, text in (("family", line.family), ("scope", line.scope.removeprefix("/"))):
        if not is_name(text) and not (field == "scope" and not line.scope):
            return refuse(Code.BAD_NAME, field, len(text), 128, text[:40])
    for field in ("guaranteed", "limit", "lend"):
        amount = getattr(line, field)
        if amount is not None and not 0 <= amount <= AMOUNT_MAX:
            return refuse(Code.BAD_AMOUNT, f"{line.family}.{field}", amount, AMOUNT_MAX, "from 0 to 2^62")
    if line.limit is not None and line.guaranteed > line.limit:
        return refuse(Code.BAD_QUOTA, name_line(*_key(line)), detail="it guarantees more than its limit")
    return None


def _find_tree_fault(known: Mapping[str, Tenant], name: str, tenant: Tenant) -> Refused | None:
    """What is wrong with the tree that the tenant would stand in."""
    if tenant.parent != ROOT and tenant.parent not in known and tenant.parent != name:
        return refuse(Code.UNKNOWN_TENANT, "parent", detail=tenant.parent[:128])
    tree = {**known, name: tenant}
    above = _above(tree, name)
    if name in above:
        return refuse(Code.TENANT_LOOP, "parent", detail=name)
    children = children_of(tree)
    depth = len(above) + _height(children, name)
    if depth > DEPTH_MAX:
        return refuse(Code.TOO_LARGE, "depth", depth, DEPTH_MAX)
    return _find_overpromise(tree, children, [name, *above])


def _above(tree: Mapping[str, Tenant], name: str) -> list[str]:
    """All above a tenant but the root; a loop is walked once."""
    names: list[str] = []
    parent = tree[name].parent
    while parent != ROOT and parent not in names:
        names.append(parent)
        parent = tree[parent].parent
    return names


def _height(children: Mapping[str, Sequence[str]], name: str) -> int:
    return 1 + max((_height(children, child) for child in children.get(name, ())), default=0)


def _find_overpromise(
    tree: Mapping[str, Tenant], children: Mapping[str, Sequence[str]], path: Iterable[str]
) -> Refused | None:
    """The first on the way up whose children are promised more than it has itself, or than it may hold."""
    for name in path:
        for line in tree[name].lines:
            below = sum(_claim(tree, children, child, _key(line)) for child in children.get(name, ()))
            most = line.guaranteed or line.limit
            if most is not None and below > most:
                return refuse(Code.OVERPROMISED, name_line(*_key(line)), below, most, name)
    return None


def _claim(tree: Mapping[str, Tenant], children: Mapping[str, Sequence[str]], name: str, key: Key) -> int:
    """What a tenant is guaranteed: by its own line, or as the sum of those below it."""
    line = find_line(tree[name], *key)
    if line is not None and line.guaranteed:
        return line.guaranteed
    return sum(_claim(tree, children, child, key) for child in children.get(name, ()))


def _key(line: Line) -> Key:
    return line.family, line.scope
