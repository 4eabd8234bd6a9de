"""Nodes and the health check over HTTP, answered by the follower alone."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster import __version__
from muster.api.jobs import read_response, read_world
from muster.api.problems import JsonResponse
from muster.control.fleet import get_slot, view_node, view_nodes
from muster.control.follower import Follower
from muster.wire.views import Health


class Fleet:
    """The routes that are not about a job."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/health", self.health, methods=["GET"]),
            Route("/v1/nodes", self.nodes, methods=["GET"]),
            Route("/v1/nodes/{name:path}", self.node, methods=["GET"]),
        ]

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """Whether reads are answered (they are) and whether changes get through."""
        follower = self._follower
        status = "ok" if follower.is_led else "no leader"
        return JsonResponse(Health(status, follower.is_led, follower.world.seq, follower.lag_p99_ms(), __version__))

    async def nodes(self, request: Request) -> Response:
        """Every node."""
        world = await read_world(request, self._follower)
        return read_response(world, view_nodes(world))

    async def node(self, request: Request) -> Response:
        """One node, by its address or as much of the end of it as is enough."""
        world = await read_world(request, self._follower)
        return read_response(world, view_node(world, get_slot(world, request.path_params["name"])))
