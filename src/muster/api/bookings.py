"""Bookings over HTTP: which there are, making one and giving it up. Windows are instants: zones are the client's."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import ask_change, changed_response, tagged_response
from muster.api.gate import cause_of, check_tenant, sees_of
from muster.api.pages import page_response
from muster.api.params import read_body, read_world
from muster.api.problems import RefusedError
from muster.control.bookings import view_bookings
from muster.control.follower import Follower
from muster.control.tags import find_contract
from muster.model.access import Role
from muster.model.booking import BOOKED_NODES_MAX, WINDOWS_MAX, Booking, Window
from muster.model.event import CancelBooking, Reserve
from muster.model.reason import Code, Reason
from muster.units import AMOUNT_MAX, INSTANT_MAX

Instant = Annotated[int, msgspec.Meta(ge=0, le=INSTANT_MAX)]


class WindowBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A window as a client sends it."""

    opens_at_ms: Instant
    closes_at_ms: Instant


class BookingBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A booking as a client sends it."""

    tenant: str
    nodes: Annotated[int, msgspec.Meta(ge=1, le=BOOKED_NODES_MAX)]
    windows: Annotated[tuple[WindowBody, ...], msgspec.Meta(min_length=1, max_length=WINDOWS_MAX)]
    gpus: Annotated[int, msgspec.Meta(ge=0, le=BOOKED_NODES_MAX)] = 0
    flavor: str = ""
    within: str = ""
    shared: bool = False
    flexible_ms: Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)] = 0


_decoder: Final = msgspec.json.Decoder(BookingBody)


class Bookings:
    """The routes below /v1/bookings."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        path = "/v1/bookings/{name:path}"
        self.routes = [
            Route("/v1/bookings", self.bookings, methods=["GET"]),
            Route(path, self.booking, methods=["GET"]),
            Route(path, self.reserve, methods=["PUT"]),
            Route(path, self.cancel, methods=["DELETE"]),
        ]

    async def bookings(self, request: Request) -> Response:
        """Every booking of a tenant that the asker may see, whatever opens first on top."""
        world = await read_world(request, self._follower)
        sees = sees_of(request)
        return page_response(world, request, (view for view in view_bookings(world) if sees(view.tenant)))

    async def booking(self, request: Request) -> Response:
        """One booking. Its tag is of what was booked; on which nodes comes and goes."""
        world, name = await read_world(request, self._follower), request.path_params["name"]
        sees = sees_of(request)
        for view in view_bookings(world):
            if view.name == name and sees(view.tenant):
                return tagged_response(world, view, find_contract(world, name))
        raise RefusedError(Reason(Code.UNKNOWN_BOOKING, "booking", detail=name[:128]), 404)

    async def reserve(self, request: Request) -> Response:
        """Make a booking under a name that nobody has."""
        return changed_response(await ask_change(request, self._follower, await read_reserve(request)))

    async def cancel(self, request: Request) -> Response:
        """Give a booking up."""
        name = request.path_params["name"]
        booking = self._follower.world.bookings.get(name)
        if booking is not None and not sees_of(request)(booking.tenant):
            raise RefusedError(Reason(Code.UNKNOWN_BOOKING, "booking", detail=name[:128]), 404)
        if booking is not None:
            check_tenant(request, Role.OPERATOR, booking.tenant)
        event = CancelBooking(name, cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))


async def read_reserve(request: Request) -> Reserve:
    """The booking that a request wants; raise if it is not for whoever asks to make it."""
    body = await read_body(request, _decoder, "booking")
    check_tenant(request, Role.OPERATOR, body.tenant)
    windows = tuple(Window(each.opens_at_ms, each.closes_at_ms) for each in body.windows)
    name = request.path_params["name"]
    booking = Booking(name, body.tenant, body.nodes, windows, body.gpus, body.flavor, body.within, body.shared)
    return Reserve(booking, body.flexible_ms, cause_of(request))
