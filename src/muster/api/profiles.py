"""Profiles over HTTP: which are stored, how each weighs the score terms, and which one is in use."""

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
from muster.api.problems import bad_field
from muster.control.follower import Follower
from muster.control.views import view_profiles
from muster.model.errors import RejectedError
from muster.model.event import SetProfile, UseProfile
from muster.model.profile import TERM_WEIGHT_MAX, TERMS, Profile
from muster.model.reason import Code, Reason
from muster.units import AMOUNT_MAX


class ProfileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A profile as a client sends it: a term that is not named has its usual weight."""

    weights: dict[str, Annotated[int, msgspec.Meta(ge=0, le=TERM_WEIGHT_MAX)]]
    of_version: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] | None = None


_profile_decoder: Final = msgspec.json.Decoder(ProfileBody)


class Profiles:
    """The routes below /v1/profiles."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/profiles", self.profiles, methods=["GET"]),
            Route("/v1/profiles/{name:path}/use", self.use_profile, methods=["POST"]),
            Route("/v1/profiles/{name:path}", self.profile, methods=["GET"]),
            Route("/v1/profiles/{name:path}", self.set_profile, methods=["PUT"]),
        ]

    async def profiles(self, request: Request) -> Response:
        """Every profile."""
        world = await read_world(request, self._follower)
        return page_response(world, request, view_profiles(world))

    async def profile(self, request: Request) -> Response:
        """One profile."""
        name = request.path_params["name"]
        world = await read_world(request, self._follower)
        for view in view_profiles(world):
            if view.name == name:
                return tagged_response(world, view, world.profiles[name])
        raise RejectedError(Reason(Code.UNKNOWN_PROFILE, "profile", detail=name[:128]))

    async def set_profile(self, request: Request) -> Response:
        """Store a profile under a name, as its next version."""
        body = await read_body(request, _profile_decoder, "profile")
        for term in body.weights:
            if term not in TERMS:
                raise bad_field("weights", f"{term[:40]!r} is not one of {', '.join(TERMS)}")
        profile, name = Profile(**body.weights), request.path_params["name"]
        event = SetProfile(name, profile, body.of_version, cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))

    async def use_profile(self, request: Request) -> Response:
        """Have the fleet scored by a profile."""
        event = UseProfile(request.path_params["name"], cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))
