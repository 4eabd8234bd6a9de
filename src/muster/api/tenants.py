"""Tenants over HTTP: the quota tree, its lines and budgets, what is held and what is spent. A tenant is sent whole; the
kernel judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import ask_change, changed_response, tagged_response
from muster.api.gate import cause_of, check_tenant, sees_of
from muster.api.pages import page_response
from muster.api.params import read_body, read_world
from muster.api.problems import RefusedError
from muster.control.follower import Follower
from muster.control.tenants import view_tenants
from muster.model.access import Role
from muster.model.budget import BUDGETS_MAX, Budget
from muster.model.event import DropTenant, SetTenant
from muster.model.reason import Code, Reason
from muster.model.tenant import LINES_MAX, Line, Tenant
from muster.units import AMOUNT_MAX
from muster.wire.views import TenantView
from muster.world.world import World

Amount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]


class LineBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line as a client sends it: a limit that is left out is none, and without `lend` all that is unused is lent."""

    family: str
    scope: str = ""
    guaranteed: Amount = 0
    limit: Amount | None = None
    lend: Amount | None = None


class BudgetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A budget as a client sends it: hard if nothing is said, and for ever without a period."""

    unit: str
    amount: Amount
    soft: bool = False
    period_ms: Amount = 0
    since_ms: Amount = 0


class TenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tenant as a client sends it; without a parent it stands below the root."""

    parent: str = ""
    weight: Amount = 1
    lines: Annotated[tuple[LineBody, ...], msgspec.Meta(max_length=LINES_MAX)] = ()
    budgets: Annotated[tuple[BudgetBody, ...], msgspec.Meta(max_length=BUDGETS_MAX)] = ()


_decoder: Final = msgspec.json.Decoder(TenantBody)


class Tenants:
    """The routes about tenants."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        path = "/v1/tenants/{name:path}"
        self.routes = [
            Route("/v1/tenants", self.list, methods=["GET"]),
            Route(path, self.show, methods=["GET"]),
            Route(path, self.set, methods=["PUT"]),
            Route(path, self.drop, methods=["DELETE"]),
        ]

    async def list(self, request: Request) -> Response:
        """Every tenant that was named, holds something or has jobs."""
        world = await read_world(request, self._follower)
        is_seen = sees_of(request)
        return page_response(world, request, (view for view in self._view(world) if is_seen(view.name)))

    async def show(self, request: Request) -> Response:
        """One tenant."""
        name = request.path_params["name"]
        check_tenant(request, Role.VIEWER, name)
        world = await read_world(request, self._follower)
        for view in self._view(world):
            if view.name == name:
                return tagged_response(world, view, world.tenants.get(name))
        raise RefusedError(Reason(Code.UNKNOWN_TENANT, "tenant", detail=name[:128]), 404)

    async def set(self, request: Request) -> Response:
        """Put a tenant into the tree, or change it there."""
        tenant, name = await read_tenant(request), request.path_params["name"]
        check_above(request, self._follower, name)
        check_tenant(request, Role.ADMIN, tenant.parent)
        event = SetTenant(name, tenant, cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))

    async def drop(self, request: Request) -> Response:
        """Take a tenant out of the tree."""
        name = request.path_params["name"]
        check_above(request, self._follower, name)
        event = DropTenant(name, cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))

    def _view(self, world: World) -> Sequence[TenantView]:
        return view_tenants(world, max(world.now, self._follower.now_ms()), self._follower.listing.tenants())


async def read_tenant(request: Request) -> Tenant:
    """A tenant as a request describes it."""
    body = await read_body(request, _decoder, "tenant")
    lines = tuple(Line(*msgspec.structs.astuple(line)) for line in body.lines)
    budgets = tuple(Budget(*msgspec.structs.astuple(budget)) for budget in body.budgets)
    return Tenant(body.parent, body.weight, lines, budgets)


def check_above(request: Request, follower: Follower, name: str) -> None:
    """What a tenant has is given by those above it: nobody raises their own quota."""
    if name in follower.world.tenants:
        check_tenant(request, Role.VIEWER, name)
        check_tenant(request, Role.ADMIN, follower.parent_of(name))
