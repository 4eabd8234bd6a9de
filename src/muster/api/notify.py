"""Routes for notices over HTTP: which there are, and a trial of one. They are set by the admin in a file of the home
and nowhere else: where a server sends what it knows, and what it runs, is said by who may write there."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.access.rights import EVERYWHERE, has_role
from muster.api.gate import principal_of
from muster.api.pages import page_response
from muster.api.problems import STATUS, JsonResponse, RefusedError
from muster.control import herald
from muster.control.desk import Desk
from muster.control.follower import Follower
from muster.model.access import Role
from muster.model.errors import RejectedError
from muster.model.reason import Code
from muster.wire.views import DeliveryView, RouteView


class Notify:
    """The routes below /v1/notify."""

    def __init__(self, follower: Follower, desk: Desk) -> None:
        self._follower = follower
        self._desk = desk
        self.routes = [
            Route("/v1/notify", self.page, methods=["GET"]),
            Route("/v1/trials/notify/{name:path}", self.attempt, methods=["POST"]),
        ]

    async def page(self, request: Request) -> Response:
        """The routes for notices that a job may name; where they lead, and whom they are about, for admins of all."""
        is_admin = has_role(principal_of(request).grants, Role.ADMIN, EVERYWHERE, self._follower.parent_of)
        self._desk.refresh()
        routes = sorted(self._desk.routes, key=lambda route: route.name)
        return page_response(self._follower.world, request, [_view(route, whole=is_admin) for route in routes])

    async def attempt(self, request: Request) -> Response:
        """Send a trial notice by one route now, once; the answer says whether it arrived."""
        try:
            notice, words = await self._desk.attempt(request.path_params["name"])
        except RejectedError as error:
            raise RefusedError(error.reason, STATUS[Code.NOT_FOUND]) from error
        return JsonResponse(DeliveryView(notice.id, is_delivered=not words, words=words))


def _view(route: herald.Route, *, whole: bool) -> RouteView:
    return RouteView(
        name=route.name,
        form=route.form,
        on=sorted(kind.value for kind in route.kinds),
        tenants=sorted(route.tenants) if whole else [],
        waiting_ms=route.patience_ms,
        target=route.target if whole else "",
    )
