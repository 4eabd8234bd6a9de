"""Tiers over HTTP: which there are, and what each is."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import answer_response, ask_change, tagged_response
from muster.api.gate import cause_of
from muster.api.pages import page_response
from muster.api.params import read_body, read_world
from muster.api.problems import JsonResponse, RefusedError
from muster.control.follower import Follower
from muster.control.views import view_tiers
from muster.model.event import SetTier
from muster.model.reason import Code, Reason, Refused
from muster.model.sharing import Sharing
from muster.model.tier import EVICTIONS_MAX, RANK_MAX, SHADOWS_MAX, Promise, Tier
from muster.units import AMOUNT_MAX
from muster.wire.views import TierView


class TierBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tier as a client sends it."""

    rank: Annotated[int, msgspec.Meta(ge=0, le=RANK_MAX)]
    longest_wait_ms: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]
    shadows: Annotated[int, msgspec.Meta(ge=0, le=SHADOWS_MAX)] = 1
    min_run_ms: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = 0
    evictions_max: Annotated[int, msgspec.Meta(ge=0, le=EVICTIONS_MAX)] | None = None
    emergency: bool = False
    sharing: Sharing | None = None
    promise: Promise | None = None
    moves_max: Annotated[int, msgspec.Meta(ge=0, le=EVICTIONS_MAX)] = 0


_tier_decoder: Final = msgspec.json.Decoder(TierBody)


class Tiers:
    """The routes below /v1/tiers."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/tiers", self.tiers, methods=["GET"]),
            Route("/v1/tiers/{name:path}", self.tier, methods=["GET"]),
            Route("/v1/tiers/{name:path}", self.set_tier, methods=["PUT"]),
        ]

    async def tiers(self, request: Request) -> Response:
        """Every tier."""
        world = await read_world(request, self._follower)
        return page_response(world, request, view_tiers(world))

    async def tier(self, request: Request) -> Response:
        """One tier."""
        name = request.path_params["name"]
        world = await read_world(request, self._follower)
        for view in view_tiers(world):
            if view.name == name:
                return tagged_response(world, view, world.tiers[name])
        raise RefusedError(Reason(Code.UNKNOWN_TIER, "tier", detail=name[:128]), 404)

    async def set_tier(self, request: Request) -> Response:
        """Name a tier, or change what it is."""
        tier, name = await read_tier(request), request.path_params["name"]
        answer = await ask_change(request, self._follower, SetTier(name, tier, cause_of(request)))
        if isinstance(answer.reply, Refused):
            return answer_response(answer, 200)
        view = TierView(name, *msgspec.structs.astuple(tier))
        return JsonResponse(view, headers={"Muster-Seq": str(answer.seq)})


async def read_tier(request: Request) -> Tier:
    """A tier as a request describes it."""
    body = await read_body(request, _tier_decoder, "tier")
    return Tier(*msgspec.structs.astuple(body))
