"""Nodes, flavors and the health check over HTTP. Reads are answered by the follower alone; what a flavor is, the kernel
judges."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster import __version__
from muster.api.gate import cause_of, principal_of, sees_of
from muster.api.jobs import answer_response, read_response, read_world
from muster.api.params import read_body
from muster.api.problems import JsonResponse, bad_field
from muster.control.fleet import FILTERS, view_flavors, view_node, view_nodes
from muster.control.follower import Follower
from muster.model.event import SetFlavor
from muster.model.node import UNITS_ONE, Flavor
from muster.model.reason import Refused
from muster.units import AMOUNT_MAX
from muster.wire.views import Changed, Health


class FlavorBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A flavor as a client sends it: all of it, as it shall be. Without a family it is one of its own."""

    family: str = ""
    units: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = UNITS_ONE
    price_micros: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = 0


_flavor_decoder: Final = msgspec.json.Decoder(FlavorBody)


class Fleet:
    """The routes about what there is."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/health", self.health, methods=["GET"]),
            Route("/v1/nodes", self.nodes, methods=["GET"]),
            Route("/v1/nodes/{name:path}", self.node, methods=["GET"]),
            Route("/v1/flavors", self.flavors, methods=["GET"]),
            Route("/v1/flavors/{name:path}", self.set_flavor, methods=["PUT"]),
        ]

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """Whether reads are answered (they are) and whether changes get through."""
        follower = self._follower
        status = "ok" if follower.is_led else "no leader"
        return JsonResponse(Health(status, follower.is_led, follower.world.seq, follower.lag_p99_ms(), __version__))

    async def nodes(self, request: Request) -> Response:
        """Every node, or those of a flavor, a place or a phase."""
        wanted = dict(request.query_params)
        for field in wanted:
            if field not in FILTERS:
                raise bad_field("query", f"{field[:40]!r} is not one of {', '.join(FILTERS)}")
        world = await read_world(request, self._follower)
        return read_response(world, view_nodes(world, wanted))

    async def node(self, request: Request) -> Response:
        """One node, by its address or as much of the end of it as is enough."""
        world = await read_world(request, self._follower)
        return read_response(world, view_node(world, request.path_params["name"], sees_of(request)))

    async def flavors(self, request: Request) -> Response:
        """Every flavor, and what there is of it."""
        world = await read_world(request, self._follower)
        return read_response(world, view_flavors(world))

    async def set_flavor(self, request: Request) -> Response:
        """Say what a flavor is."""
        name = request.path_params["name"]
        body = await read_body(request, _flavor_decoder, "flavor")
        flavor = Flavor(body.family or name, body.units, body.price_micros)
        answer = await self._follower.ask(SetFlavor(name, flavor, cause_of(request)), principal_of(request))
        if isinstance(answer.reply, Refused):
            return answer_response(answer, 200)
        return JsonResponse(Changed(answer.seq), headers={"Muster-Seq": str(answer.seq)})
