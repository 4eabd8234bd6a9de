"""Advice over HTTP: what is known of each kind, and a way in for those who learn or measure outside."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import ask_change, changed_response
from muster.api.gate import cause_of
from muster.api.pages import page_response
from muster.api.params import read_body, read_world
from muster.control.follower import Follower
from muster.control.views import view_advice
from muster.model.advice import Advice
from muster.model.event import Advise
from muster.units import AMOUNT_MAX


class AdviceBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Advice as a client sends it: it replaces all that was said of its kind. Without a version it is the next one."""

    columns: dict[str, tuple[int, ...]]
    expires_at_ms: Annotated[int, msgspec.Meta(ge=1, le=AMOUNT_MAX)]
    version: Annotated[int, msgspec.Meta(ge=1, le=AMOUNT_MAX)] | None = None


_advice_decoder: Final = msgspec.json.Decoder(AdviceBody)


class AdviceRoutes:
    """The routes below /v1/advice."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/advice", self.advice, methods=["GET"]),
            Route("/v1/advice/{name:path}", self.advise, methods=["PUT"]),
        ]

    async def advice(self, request: Request) -> Response:
        """Every kind of advice that is in force."""
        world = await read_world(request, self._follower)
        return page_response(world, request, view_advice(world))

    async def advise(self, request: Request) -> Response:
        """Say what was learned of a kind, in place of what was said before."""
        body, kind = await read_body(request, _advice_decoder, "advice"), request.path_params["name"]
        known = (await read_world(request, self._follower)).advice.get(kind)
        version = body.version or (1 if known is None else known.version + 1)
        event = Advise(kind, Advice(version, body.expires_at_ms, body.columns), cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))
