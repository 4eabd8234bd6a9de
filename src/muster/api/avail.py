"""What would start now, over HTTP. Answered by the follower alone, from its own world."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import read_response
from muster.api.gate import check_tenant, choose_tenant
from muster.api.params import read_world
from muster.control.follower import Follower
from muster.control.offers import view_avail
from muster.model.access import Role
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.model.spec import is_name


class Avail:
    """The route /v1/avail."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [Route("/v1/avail", self.avail, methods=["GET"])]

    async def avail(self, request: Request) -> Response:
        """What a tenant could start now; one that was never named has no quota, as for a submit."""
        said = request.query_params.get("tenant")
        tenant = choose_tenant(request, Role.VIEWER) if said is None else said
        if not is_name(tenant):
            raise RejectedError(Reason(Code.BAD_NAME, "tenant", len(tenant), 128, tenant[:40]))
        check_tenant(request, Role.VIEWER, tenant)
        await read_world(request, self._follower)
        return read_response(*await self._follower.study(lambda _: tenant, view_avail))
