"""Goodput over HTTP: what every moment of every accelerator was spent on."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import read_response
from muster.api.gate import check_tenant
from muster.api.params import read_world
from muster.control.follower import Follower
from muster.control.goodput import view_goodput
from muster.model.access import Role


class Goodput:
    """The route /v1/goodput."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [Route("/v1/goodput", self.goodput, methods=["GET"])]

    async def goodput(self, request: Request) -> Response:
        """The account of the fleet, or of one `tenant`."""
        tenant = request.query_params.get("tenant", "")
        check_tenant(request, Role.VIEWER, tenant)
        world = await read_world(request, self._follower)
        return read_response(world, view_goodput(world, self._follower.now_ms(), tenant))
