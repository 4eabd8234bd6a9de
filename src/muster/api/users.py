"""Users over HTTP: who there is, what they may do, and who is asking. A user is sent whole, roles and all; how far
whoever asks may go is judged by the leader, in order."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.access.rights import has_role
from muster.api.answers import changed_response
from muster.api.gate import principal_of
from muster.api.pages import fit
from muster.api.params import read_body, read_number, read_version
from muster.api.problems import JsonResponse
from muster.control.follower import Follower
from muster.model.access import GRANTS_MAX, DropUser, Grant, Principal, Role, SetUser, User
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.wire.access_views import GrantView, Me, UserPage, UserView

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000


class GrantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role as a client sends it; without a tenant it is one everywhere."""

    role: Role
    tenant: str = ""


class UserBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user as a client sends it: all of it, as it shall be."""

    roles: Annotated[tuple[GrantBody, ...], msgspec.Meta(max_length=GRANTS_MAX)] = ()
    is_service: bool = False
    is_disabled: bool = False


_decoder: Final = msgspec.json.Decoder(UserBody)


class Users:
    """The routes below /v1/users, and /v1/me."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        path = "/v1/users/{name:path}"
        self.routes = [
            Route("/v1/me", self.me, methods=["GET"]),
            Route("/v1/users", self.page, methods=["GET"]),
            Route(path, self.show, methods=["GET"]),
            Route(path, self.set, methods=["PUT"]),
            Route(path, self.drop, methods=["DELETE"]),
        ]

    async def me(self, request: Request) -> Response:
        """Whoever asks."""
        by = principal_of(request)
        return JsonResponse(Me(by.name, view_grants(by.grants), by.token, by.until))

    async def page(self, request: Request) -> Response:
        """The users whom one may see: oneself, and those of whom one is an admin."""
        query = request.query_params
        limit = read_number(query.get("limit"), "limit", default=LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        by, after = principal_of(request), query.get("after", "")
        names = [name for name in sorted(self._follower.roster.users) if name > after and self._is_seen(by, name)]
        shown = list(fit([self._view(name) for name in names[:limit]]))
        return JsonResponse(UserPage(shown, shown[-1].name if len(names) > len(shown) else None))

    async def show(self, request: Request) -> Response:
        """One user."""
        name = request.path_params["name"]
        if not self._is_seen(principal_of(request), name):
            raise RejectedError(Reason(Code.UNKNOWN_USER, "user", detail=name[:128]))
        view = self._view(name)
        return JsonResponse(view, headers={"ETag": f'"{view.version}"'})

    async def set(self, request: Request) -> Response:
        """Add a user, or say what it is from now on."""
        body = await read_body(request, _decoder, "user")
        grants = tuple(Grant(grant.role, grant.tenant) for grant in body.roles)
        user = User(grants, body.is_service, body.is_disabled)
        name = request.path_params["name"]
        asked = SetUser(name, user, principal_of(request), read_version(request, self._find_version(name)))
        return changed_response(await self._follower.ask(asked))

    async def drop(self, request: Request) -> Response:
        """Let a user go, with all its tokens."""
        name = request.path_params["name"]
        if not self._is_seen(principal_of(request), name):
            raise RejectedError(Reason(Code.UNKNOWN_USER, "user", detail=name[:128]))
        asked = DropUser(name, principal_of(request), read_version(request, self._find_version(name)))
        return changed_response(await self._follower.ask(asked))

    def _is_seen(self, by: Principal, name: str) -> bool:
        return is_user_seen(self._follower, by, name)

    def _find_version(self, name: str) -> int | None:
        return self._follower.roster.versions.get(name)

    def _view(self, name: str) -> UserView:
        roster = self._follower.roster
        user = roster.users[name]
        return UserView(name, view_grants(user.grants), user.is_service, user.is_disabled, roster.versions[name])


def is_user_seen(follower: Follower, by: Principal, name: str) -> bool:
    """Whether somebody may know of a user: it is themselves, or they are an admin where it has a role."""
    user = follower.roster.users.get(name)
    if user is None:
        return False
    places = ["", *(grant.tenant for grant in user.grants)]
    return name == by.name or any(has_role(by.grants, Role.ADMIN, place, follower.parent_of) for place in places)


def view_grants(grants: tuple[Grant, ...]) -> list[GrantView]:
    """Roles as they are shown."""
    return [GrantView(grant.role.value, grant.tenant) for grant in grants]
