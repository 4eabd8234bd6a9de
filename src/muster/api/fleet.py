"""Nodes, flavors and the health check over HTTP. Reads are answered by the follower alone; what a flavor is, the kernel
judges."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster import __version__
from muster.api.answers import ask_change, changed_response, tagged_response
from muster.api.gate import cause_of, sees_of
from muster.api.pages import array_response, page_response, read_limit
from muster.api.params import read_body, read_number, read_world
from muster.api.problems import JsonResponse, RefusedError
from muster.control.fleet import view_flavors, view_node, walk_nodes
from muster.control.follower import Follower
from muster.control.tags import find_bars
from muster.model.event import SetFlavor
from muster.model.node import UNITS_ONE, Flavor
from muster.model.overlay import WATTS_MAX
from muster.model.partition import PARTITIONS_MAX, SLOTS_MAX, parse_partition
from muster.model.reason import Code, Reason
from muster.units import AMOUNT_MAX
from muster.wire.views import Health
from muster.world.world import World


class FlavorBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A flavor as a client sends it: all of it, as it shall be. Without a family it is one of its own."""

    family: str = ""
    units: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = UNITS_ONE
    price_micros: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = 0
    watts: Annotated[int, msgspec.Meta(ge=0, le=WATTS_MAX)] = 0
    core_watts: Annotated[int, msgspec.Meta(ge=0, le=WATTS_MAX)] = 0
    slots: Annotated[int, msgspec.Meta(ge=0, le=SLOTS_MAX)] = 0
    partitions: Annotated[list[str], msgspec.Meta(max_length=PARTITIONS_MAX)] = []


_flavor_decoder: Final = msgspec.json.Decoder(FlavorBody)


class Fleet:
    """The routes about what there is."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/health", self.health, methods=["GET"]),
            Route("/v1/ready", self.ready, methods=["GET"]),
            Route("/v1/nodes", self.nodes, methods=["GET"]),
            Route("/v1/nodes/{name:path}", self.node, methods=["GET"]),
            Route("/v1/flavors", self.flavors, methods=["GET"]),
            Route("/v1/flavors/{name:path}", self.flavor, methods=["GET"]),
            Route("/v1/flavors/{name:path}", self.set_flavor, methods=["PUT"]),
        ]

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """Whether reads are answered (they are) and whether changes get through."""
        return JsonResponse(self._health())

    async def ready(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """The same as a status: 200 if changes get through, 503 if not."""
        view = self._health()
        return JsonResponse(view, 200 if view.leader else 503)

    def _health(self) -> Health:
        follower = self._follower
        status = "ok" if follower.is_led else "no leader"
        return Health(status, follower.is_led, follower.world.seq, follower.lag_p99_ms(), __version__)

    async def nodes(self, request: Request) -> Response:
        """Every node, or those of a flavor, a place or a phase; `after` is the cursor of the page before."""
        return nodes_response(await read_world(request, self._follower), request)

    async def node(self, request: Request) -> Response:
        """One node, by its address or as much of the end of it as is enough. Its tag is of the bars that it has."""
        world, name = await read_world(request, self._follower), request.path_params["name"]
        return tagged_response(world, view_node(world, name, sees_of(request)), find_bars(world, name))

    async def flavors(self, request: Request) -> Response:
        """Every flavor, and what there is of it."""
        world = await read_world(request, self._follower)
        return page_response(world, request, view_flavors(world))

    async def flavor(self, request: Request) -> Response:
        """One flavor."""
        name = request.path_params["name"]
        world = await read_world(request, self._follower)
        for view in view_flavors(world):
            if view.name == name:
                return tagged_response(world, view, world.flavors.get(name))
        raise RefusedError(Reason(Code.NOT_FOUND, f"flavor {name[:128]!r}"), 404)

    async def set_flavor(self, request: Request) -> Response:
        """Say what a flavor is."""
        name = request.path_params["name"]
        body = await read_body(request, _flavor_decoder, "flavor")
        partitions = tuple(map(parse_partition, body.partitions))
        takes = (body.watts, body.core_watts)
        flavor = Flavor(body.family or name, body.units, body.price_micros, *takes, body.slots, partitions)
        return changed_response(await ask_change(request, self._follower, SetFlavor(name, flavor, cause_of(request))))


def nodes_response(world: World, request: Request) -> Response:
    """A page of the nodes of one world that the request wants to see."""
    wanted = dict(request.query_params)
    after = read_number(wanted.pop("after", None), "after", default=-1, most=AMOUNT_MAX)
    wanted.pop("limit", None)
    rows = ((str(slot), view) for slot, view in walk_nodes(world, wanted, after))
    return array_response(world, rows, read_limit(request))
