"""Tokens over HTTP. The secret is made here and told once: neither the leader nor any store ever sees it."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.access.tokens import make_token
from muster.api.answers import changed_response
from muster.api.gate import principal_of
from muster.api.params import read_body, read_number
from muster.api.problems import JsonResponse
from muster.api.users import LIMIT_DEFAULT, LIMIT_MAX, is_user_seen
from muster.control.follower import Follower
from muster.model.access import NOTE_CHARS_MAX, TOKEN_LIFE_MAX_MS, TOKEN_LIFE_MS, DropToken, MakeToken, Role, Token
from muster.model.reason import Refused
from muster.wire.access_views import FreshTokenView, TokenPage, TokenView


class TokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token as a client asks for it: for itself unless it names a user, and for 90 days."""

    user: str = ""
    life_ms: Annotated[int, msgspec.Meta(ge=1, le=TOKEN_LIFE_MAX_MS)] = TOKEN_LIFE_MS
    most: Role = Role.ADMIN
    tenant: str = ""
    note: Annotated[str, msgspec.Meta(max_length=NOTE_CHARS_MAX)] = ""


_decoder: Final = msgspec.json.Decoder(TokenBody)


class Tokens:
    """The routes below /v1/tokens."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/tokens", self.page, methods=["GET"]),
            Route("/v1/tokens", self.make, methods=["POST"]),
            Route("/v1/tokens/{id}", self.drop, methods=["DELETE"]),
        ]

    async def page(self, request: Request) -> Response:
        """The tokens of oneself, and of those of whom one is an admin; or of one `user`."""
        query, by, roster = request.query_params, principal_of(request), self._follower.roster
        limit = read_number(query.get("limit"), "limit", default=LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        after, user = query.get("after", ""), query.get("user", "")
        found = [
            number
            for number, token in sorted(roster.tokens.items())
            if number > after and (not user or token.user == user) and is_user_seen(self._follower, by, token.user)
        ]
        shown = [_view(number, roster.tokens[number]) for number in found[:limit]]
        return JsonResponse(TokenPage(shown, found[limit - 1] if len(found) > limit else None))

    async def make(self, request: Request) -> Response:
        """A new token; its text is in this answer and nowhere else."""
        body, by = await read_body(request, _decoder, "token"), principal_of(request)
        fresh, now = make_token(), self._follower.now_ms()
        until = now + body.life_ms if by.until is None else min(now + body.life_ms, by.until)
        token = Token(body.user or by.name, fresh.digest, now, until, body.most, body.tenant, body.note)
        answer = await self._follower.ask(MakeToken(fresh.id, token, by))
        if isinstance(answer.reply, Refused):
            return changed_response(answer)
        return JsonResponse(FreshTokenView(fresh.id, fresh.text, until), 201, {"Cache-Control": "no-store"})

    async def drop(self, request: Request) -> Response:
        """Have a token valid no more."""
        return changed_response(
            await self._follower.ask(DropToken(request.path_params["id"][:128], principal_of(request)))
        )


def _view(number: str, token: Token) -> TokenView:
    return TokenView(number, token.user, token.since, token.until, token.most.value, token.tenant, token.note)
