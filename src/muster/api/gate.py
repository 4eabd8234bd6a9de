"""The gate: the one place where it is decided whether whoever asks may do what they ask for.

`RIGHTS` has a row for every route: the role that it needs, and where. A route without a row stops the server from
starting. Somebody else's object is answered exactly like one that does not exist.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple, TypeAlias, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.access.rights import EVERYWHERE, find_role, has_role, has_role_somewhere
from muster.api.params import read_job, read_world
from muster.api.problems import RefusedError, unknown_job
from muster.api.router import Endpoint
from muster.control.desk import Desk
from muster.control.follower import Follower
from muster.model.access import Principal, Role
from muster.model.errors import InvariantError, RejectedError
from muster.model.reason import Code, Reason
from muster.model.spec import DEFAULT_TENANT

Sees: TypeAlias = Callable[[str], bool]

PRINCIPAL: Final = "muster.principal"
GATE: Final = "muster.gate"
TENANTS_NAMED: Final = 8


class Where(enum.Enum):
    """Where a role must be held."""

    NOWHERE = "a token is not even needed"
    ANYWHERE = "in any tenant; what is shown is what the asker may see"
    NAMED = "in the tenant that the request names; the handler says which with `check_tenant`"
    JOB = "in the tenant of the job that the path names"
    FLEET = "at the root of the tree"


class Need(NamedTuple):
    """What a route needs."""

    role: Role
    where: Where


RIGHTS: Final[dict[str, Need]] = {
    "GET /v1/health": Need(Role.VIEWER, Where.NOWHERE),
    "GET /v1/ready": Need(Role.VIEWER, Where.NOWHERE),
    "GET /v1/openapi.json": Need(Role.VIEWER, Where.NOWHERE),
    "GET /v1/metrics": Need(Role.VIEWER, Where.FLEET),
    "GET /v1/watch": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/me": Need(Role.VIEWER, Where.ANYWHERE),
    "POST /v1/jobs": Need(Role.USER, Where.NAMED),
    "POST /v1/jobs/bulk": Need(Role.USER, Where.NAMED),
    "GET /v1/jobs": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/jobs/{job}": Need(Role.VIEWER, Where.JOB),
    "GET /v1/jobs/{job}/why": Need(Role.VIEWER, Where.JOB),
    "GET /v1/jobs/{job}/forecast": Need(Role.VIEWER, Where.JOB),
    "GET /v1/jobs/{job}/story": Need(Role.VIEWER, Where.JOB),
    "GET /v1/jobs/{job}/logs": Need(Role.VIEWER, Where.JOB),
    "GET /v1/jobs/{job}/logs/follow": Need(Role.VIEWER, Where.JOB),
    "POST /v1/jobs/{job}/cancel": Need(Role.USER, Where.JOB),
    "POST /v1/jobs/{job}/hold": Need(Role.USER, Where.JOB),
    "POST /v1/jobs/{job}/release": Need(Role.USER, Where.JOB),
    "POST /v1/jobs/{job}/requeue": Need(Role.USER, Where.JOB),
    "POST /v1/jobs/{job}/scale": Need(Role.USER, Where.JOB),
    "POST /v1/jobs/{job}/migrate": Need(Role.USER, Where.JOB),
    "POST /v1/jobs/{job}/progress": Need(Role.USER, Where.JOB),
    "GET /v1/nodes": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/nodes/{name:path}": Need(Role.VIEWER, Where.ANYWHERE),
    "PUT /v1/nodes/{name:path}/bars/{kind}": Need(Role.OPERATOR, Where.FLEET),
    "DELETE /v1/nodes/{name:path}/bars/{kind}": Need(Role.OPERATOR, Where.FLEET),
    "GET /v1/flavors": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/flavors/{name:path}": Need(Role.VIEWER, Where.ANYWHERE),
    "PUT /v1/flavors/{name:path}": Need(Role.ADMIN, Where.FLEET),
    "GET /v1/tenants": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/tenants/{name:path}": Need(Role.VIEWER, Where.NAMED),
    "PUT /v1/tenants/{name:path}": Need(Role.ADMIN, Where.NAMED),
    "DELETE /v1/tenants/{name:path}": Need(Role.ADMIN, Where.NAMED),
    "GET /v1/avail": Need(Role.VIEWER, Where.NAMED),
    "GET /v1/goodput": Need(Role.VIEWER, Where.NAMED),
    "GET /v1/usage": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/bookings": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/bookings/{name:path}": Need(Role.VIEWER, Where.NAMED),
    "PUT /v1/bookings/{name:path}": Need(Role.OPERATOR, Where.NAMED),
    "DELETE /v1/bookings/{name:path}": Need(Role.OPERATOR, Where.NAMED),
    "GET /v1/tiers": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/tiers/{name:path}": Need(Role.VIEWER, Where.ANYWHERE),
    "PUT /v1/tiers/{name:path}": Need(Role.ADMIN, Where.FLEET),
    "GET /v1/overlays": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/overlays/{name:path}": Need(Role.VIEWER, Where.ANYWHERE),
    "PUT /v1/overlays/{name:path}": Need(Role.ADMIN, Where.FLEET),
    "DELETE /v1/overlays/{name:path}": Need(Role.ADMIN, Where.FLEET),
    "GET /v1/profiles": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/profiles/{name:path}": Need(Role.VIEWER, Where.ANYWHERE),
    "PUT /v1/profiles/{name:path}": Need(Role.ADMIN, Where.FLEET),
    "POST /v1/profiles/{name:path}/use": Need(Role.ADMIN, Where.FLEET),
    "GET /v1/advice": Need(Role.VIEWER, Where.ANYWHERE),
    "PUT /v1/advice/{name:path}": Need(Role.OPERATOR, Where.FLEET),
    "GET /v1/notify": Need(Role.VIEWER, Where.ANYWHERE),
    "POST /v1/trials/notify/{name:path}": Need(Role.OPERATOR, Where.FLEET),
    "GET /v1/users": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/users/{name:path}": Need(Role.VIEWER, Where.ANYWHERE),
    "PUT /v1/users/{name:path}": Need(Role.ADMIN, Where.ANYWHERE),
    "DELETE /v1/users/{name:path}": Need(Role.ADMIN, Where.ANYWHERE),
    "GET /v1/tokens": Need(Role.VIEWER, Where.ANYWHERE),
    "POST /v1/tokens": Need(Role.VIEWER, Where.ANYWHERE),
    "DELETE /v1/tokens/{id}": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/audit": Need(Role.ADMIN, Where.FLEET),
    "GET /v1/audit/verify": Need(Role.ADMIN, Where.FLEET),
    "GET /v1/past/{at}/jobs": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/past/{at}/jobs/{job}": Need(Role.VIEWER, Where.JOB),
    "GET /v1/past/{at}/jobs/{job}/why": Need(Role.VIEWER, Where.JOB),
    "GET /v1/past/{at}/nodes": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/past/{at}/tenants": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/past/{at}/bookings": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/past/{at}/goodput": Need(Role.VIEWER, Where.NAMED),
    "GET /v1/past/{at}/flavors": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/past/{at}/tiers": Need(Role.VIEWER, Where.ANYWHERE),
    "GET /v1/past/{at}/overlays": Need(Role.VIEWER, Where.ANYWHERE),
    "POST /v1/trials/jobs": Need(Role.USER, Where.NAMED),
    "POST /v1/trials/jobs/{job}/cancel": Need(Role.USER, Where.JOB),
    "POST /v1/trials/jobs/{job}/hold": Need(Role.USER, Where.JOB),
    "POST /v1/trials/jobs/{job}/release": Need(Role.USER, Where.JOB),
    "POST /v1/trials/jobs/{job}/requeue": Need(Role.USER, Where.JOB),
    "POST /v1/trials/jobs/{job}/scale": Need(Role.USER, Where.JOB),
    "POST /v1/trials/jobs/{job}/migrate": Need(Role.USER, Where.JOB),
    "PUT /v1/trials/bookings/{name:path}": Need(Role.OPERATOR, Where.NAMED),
    "PUT /v1/trials/nodes/{name:path}/bars/{kind}": Need(Role.OPERATOR, Where.FLEET),
    "DELETE /v1/trials/nodes/{name:path}/bars": Need(Role.OPERATOR, Where.FLEET),
    "PUT /v1/trials/tenants/{name:path}": Need(Role.ADMIN, Where.NAMED),
    "PUT /v1/trials/tiers/{name:path}": Need(Role.ADMIN, Where.FLEET),
}
OPEN_PATHS: Final = tuple(key.split()[1] for key, need in RIGHTS.items() if need.where is Where.NOWHERE)


class Gate:
    """Stands before every handler of one follower's API."""

    def __init__(self, follower: Follower, desk: Desk | None = None) -> None:
        self._follower = follower
        self._desk = desk or Desk(follower)

    def guard(self, routes: Iterable[Route]) -> list[Route]:
        """The same routes, each behind its need."""
        return [self._guard(route) for route in routes]

    def _guard(self, route: Route) -> Route:
        [method] = (route.methods or set()) - {"HEAD"}
        key, endpoint = f"{method} {route.path}", cast("Endpoint", route.endpoint)
        if key not in RIGHTS:
            raise InvariantError("every route has its row in RIGHTS", key)
        need = RIGHTS[key]
        is_open = need.where is Where.NOWHERE

        async def check_first(request: Request) -> Response:
            await self._check(request, need)
            return await endpoint(request)

        def guarded(request: Request) -> Awaitable[Response]:
            scope = request.scope
            scope[GATE] = self
            if is_open or self._holds(scope[PRINCIPAL], need.role):
                return endpoint(request)
            return check_first(request)

        return Route(route.path, guarded, methods=[method], name=route.name)

    def _holds(self, principal: Principal, role: Role) -> bool:
        """Whether somebody has a role above every tenant: then there is no more to look at."""
        return has_role(principal.grants, role, EVERYWHERE, self._follower.parent_of)

    async def _check(self, request: Request, need: Need) -> None:
        grants = principal_of(request).grants
        if need.where is Where.FLEET:
            raise not_allowed(need.role, EVERYWHERE)
        if need.where is Where.JOB:
            await self._check_job(request, need.role)
        elif not has_role_somewhere(grants, need.role):
            raise RejectedError(Reason(Code.NOT_ALLOWED, need.role.value, detail="any tenant"))

    async def _check_job(self, request: Request, role: Role) -> None:
        number = read_job(request)
        await read_world(request, self._follower)  # a job of which the asker knows is there
        tenant = await self.find_tenant(number)
        held = None if tenant is None else find_role(principal_of(request).grants, tenant, self._follower.parent_of)
        if tenant is None or held is None:
            raise unknown_job(number)
        if held.rank < role.rank:
            raise not_allowed(role, tenant)

    async def find_tenant(self, number: int) -> str | None:
        """Whose job it is, also long after its end; None if there never was one."""
        job = self._follower.world.jobs.get(number)
        if job is not None:
            return job.spec.tenant
        found = await self._follower.find_finished(number)
        return None if found is None else found.finished.tenant

    def check_tenant(self, principal: Principal, role: Role, tenant: str, missing: int) -> None:
        """Raise unless somebody has a role in a tenant; a tenant that they may not see is not there."""
        parent_of = self._follower.parent_of
        if has_role(principal.grants, role, tenant, parent_of):
            return
        if tenant != EVERYWHERE and find_role(principal.grants, tenant, parent_of) is None:
            raise RefusedError(Reason(Code.UNKNOWN_TENANT, "tenant", detail=tenant[:128]), missing)
        raise not_allowed(role, tenant)

    def choose_tenant(self, principal: Principal, role: Role) -> str:
        """The tenant that whoever names none means: `default` if they have the role there, else their only one."""
        if has_role(principal.grants, role, DEFAULT_TENANT, self._follower.parent_of):
            return DEFAULT_TENANT
        mine = sorted({grant.tenant for grant in principal.grants if grant.role.rank >= role.rank})
        if len(mine) != 1:
            named = ", ".join(mine[:TENANTS_NAMED]) + (", …" if len(mine) > TENANTS_NAMED else "")
            raise RejectedError(Reason(Code.WHICH_TENANT, "tenant", needed=len(mine), detail=named))
        return mine[0]

    def check_notified(self, names: Iterable[str]) -> None:
        """Raise if a job is to be told of where nobody is."""
        for name in names:
            self._desk.get(name)

    def sees(self, principal: Principal) -> Sees:
        """Whether somebody may see what is a tenant's, for as many tenants as one answer is about."""
        parent_of = self._follower.parent_of
        if find_role(principal.grants, EVERYWHERE, parent_of) is not None:
            return lambda tenant: True  # noqa: ARG005 - all of them
        known: dict[str, bool] = {}

        def is_seen(tenant: str) -> bool:
            if tenant not in known:
                known[tenant] = find_role(principal.grants, tenant, parent_of) is not None
            return known[tenant]

        return is_seen

    def find_tenants(self, principal: Principal) -> tuple[str, ...] | None:
        """The tenants whose past somebody may see: None if all."""
        if find_role(principal.grants, EVERYWHERE, self._follower.parent_of) is not None:
            return None
        is_seen = self.sees(principal)
        named = (*(grant.tenant for grant in principal.grants), *self._follower.world.tenants)
        return tuple(sorted({tenant for tenant in named if is_seen(tenant)}))


def principal_of(request: Request) -> Principal:
    """Whoever asks."""
    principal: Principal = request.scope[PRINCIPAL]
    return principal


def gate_of(request: Request) -> Gate:
    """The gate that a request came through."""
    gate: Gate = request.scope[GATE]
    return gate


def cause_of(request: Request) -> str:
    """How what somebody asks for is signed in the journal."""
    return principal_of(request).cause


def check_tenant(request: Request, role: Role, tenant: str, missing: int = 404) -> None:
    """Raise unless whoever asks has a role in the tenant that the request turned out to be about."""
    gate_of(request).check_tenant(principal_of(request), role, tenant, missing)


def choose_tenant(request: Request, role: Role) -> str:
    """The tenant that a request is about which names none."""
    return gate_of(request).choose_tenant(principal_of(request), role)


def sees_of(request: Request) -> Sees:
    """Whether whoever asks may see what is a tenant's."""
    return gate_of(request).sees(principal_of(request))


def not_allowed(role: Role, tenant: str) -> RejectedError:
    """A role is missing."""
    place = f"tenant {tenant}" if tenant else "the whole fleet"
    return RejectedError(Reason(Code.NOT_ALLOWED, role.value, detail=place))
