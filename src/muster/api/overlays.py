"""Overlays over HTTP: which there are, what is left of each, and what an admin makes of them."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import ask_change, changed_response, tagged_response
from muster.api.gate import cause_of
from muster.api.pages import page_response
from muster.api.params import read_body, read_world
from muster.api.problems import RefusedError
from muster.control.follower import Follower
from muster.control.overlays import view_overlays
from muster.model.event import DropOverlay, SetOverlay
from muster.model.overlay import BUDGET_MAX, Overlay
from muster.model.reason import Code, Reason


class OverlayBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An overlay as a client sends it: all of it, as it shall be."""

    resource: str
    budget: Annotated[int, msgspec.Meta(ge=-BUDGET_MAX, le=BUDGET_MAX)]
    nodes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


_decoder: Final = msgspec.json.Decoder(OverlayBody)


class Overlays:
    """The routes below /v1/overlays."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        path = "/v1/overlays/{name:path}"
        self.routes = [
            Route("/v1/overlays", self.overlays, methods=["GET"]),
            Route(path, self.overlay, methods=["GET"]),
            Route(path, self.set_overlay, methods=["PUT"]),
            Route(path, self.drop_overlay, methods=["DELETE"]),
        ]

    async def overlays(self, request: Request) -> Response:
        """Every overlay."""
        world = await read_world(request, self._follower)
        return page_response(world, request, view_overlays(world))

    async def overlay(self, request: Request) -> Response:
        """One overlay."""
        name = request.path_params["name"]
        world = await read_world(request, self._follower)
        for view in view_overlays(world):
            if view.name == name:
                return tagged_response(world, view, world.fleet.overlays.by_name[name])
        raise RefusedError(Reason(Code.UNKNOWN_OVERLAY, "overlay", detail=name[:128]), 404)

    async def set_overlay(self, request: Request) -> Response:
        """Say what an overlay is."""
        body, name = await read_body(request, _decoder, "overlay"), request.path_params["name"]
        overlay = Overlay(*msgspec.structs.astuple(body))
        event = SetOverlay(name, overlay, cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))

    async def drop_overlay(self, request: Request) -> Response:
        """Remove an overlay."""
        event = DropOverlay(request.path_params["name"], cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))
