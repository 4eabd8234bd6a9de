"""Rights: what grants allow. A role in a tenant holds in all tenants below it; the root is above every tenant.

The tree is asked for through `parent_of`, so that nothing here knows a world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from muster.model.access import WHOLE, Grant, Role, Token
from muster.model.tenant import DEPTH_MAX, ROOT

ParentOf: TypeAlias = Callable[[str], str]

EVERYWHERE: Final = ROOT


def find_role(grants: Sequence[Grant], tenant: str, parent_of: ParentOf) -> Role | None:
    """The highest role that grants give in a tenant; None if the tenant is none of their business."""
    if WHOLE in grants:
        return WHOLE.role
    held = [grant.role for above in _upwards(tenant, parent_of) for grant in grants if grant.tenant == above]
    return max(held, key=lambda role: role.rank) if held else None


def has_role(grants: Sequence[Grant], role: Role, tenant: str, parent_of: ParentOf) -> bool:
    """Whether grants give at least this role in a tenant."""
    if WHOLE in grants:
        return True
    held = find_role(grants, tenant, parent_of)
    return held is not None and held.rank >= role.rank


def has_role_somewhere(grants: Sequence[Grant], role: Role) -> bool:
    """Whether grants give at least this role in any tenant at all."""
    return any(grant.role.rank >= role.rank for grant in grants)


def narrow(grants: Sequence[Grant], token: Token, parent_of: ParentOf) -> tuple[Grant, ...]:
    """What is left of a user's grants for whoever holds the token."""
    narrowed = (_narrow(grant, token, parent_of) for grant in grants)
    return tuple(grant for grant in narrowed if grant is not None)


def _narrow(grant: Grant, token: Token, parent_of: ParentOf) -> Grant | None:
    role = min(grant.role, token.most, key=lambda each: each.rank)
    if grant.tenant in _upwards(token.tenant, parent_of):
        return Grant(role, token.tenant)
    return Grant(role, grant.tenant) if token.tenant in _upwards(grant.tenant, parent_of) else None


def _upwards(tenant: str, parent_of: ParentOf) -> Iterator[str]:
    """A tenant and all above it, the root last."""
    for _ in range(DEPTH_MAX + 1):
        yield tenant
        if tenant == ROOT:
            return
        tenant = parent_of(tenant)
    yield ROOT
