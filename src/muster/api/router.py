"""The router: which handler answers a request, and what becomes of whatever goes wrong on the way.

A path without parameters is found in a table, however many routes there are; the others are tried in order. Every
refusal becomes a problem document here and nowhere else. A word in a query that its route does not take is refused: a
filter that is misspelt would otherwise show everything. It knows no route by name, and nothing of who asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from muster.api.counting import note_answer
from muster.api.problems import ProblemResponse, RefusedError, bad_field
from muster.model.errors import MusterError
from muster.model.reason import Code, Reason

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]
NO_QUERIES: Final[Mapping[str, Collection[str]]] = MappingProxyType({})
"""Of no route it is known what its query may say, so nothing is refused."""


class Router:
    """The ASGI application behind the guard. The server logs what it raises, which is a bug of ours."""

    def __init__(self, routes: Sequence[Route], queries: Mapping[str, Collection[str]] = NO_QUERIES) -> None:
        self._routes = routes
        self._queries = queries
        self._fixed: dict[tuple[str, str], Endpoint] = {}
        for route in routes:
            for method in () if route.param_convertors else route.methods or ():
                self._fixed.setdefault((method, route.path), cast("Endpoint", route.endpoint))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        try:
            endpoint = self._fixed.get((scope["method"], scope["path"])) or self._find(scope)
            if scope["query_string"]:
                self._check_query(scope)
            response = await endpoint(Request(scope, receive))
        except MusterError as error:
            response = ProblemResponse(error.reason, error.status if isinstance(error, RefusedError) else None)
        except ClientDisconnect:
            response = Response(status_code=400)  # the client has left in the middle of its request: nobody reads this
        except Exception:
            reason = Reason(Code.INVARIANT, "the server answers", detail="unexpected error, see its log")
            note_answer(scope, 500)
            await ProblemResponse(reason, 500)(scope, receive, send)
            raise
        note_answer(scope, response.status_code)
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> Endpoint:
        """The handler of a path with parameters, which the scope has from here on; else of one that nobody serves."""
        allowed: set[str] = set()
        for route in self._routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope["path_params"] = found["path_params"]
                scope["route_path"] = route.path
                return cast("Endpoint", route.endpoint)
            if match is Match.PARTIAL:
                allowed |= route.methods or set()
        return _refuse_method(allowed) if allowed else _refuse_path

    def _check_query(self, scope: Scope) -> None:
        """Raise if the query says something that nobody would look at."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        taken = self._queries.get(f"{method} {scope.get('route_path', scope['path'])}")
        if taken is None:
            return
        seen = set[str]()
        for name, _ in QueryParams(scope["query_string"]).multi_items():
            if name not in taken:
                words = f"one of {', '.join(taken)}" if taken else "a word that this takes: it takes none"
                raise bad_field("query", f"{name[:40]!r} is not {words}")
            if name in seen:
                raise bad_field("query", f"{name!r} is said twice")
            seen.add(name)


def _refuse_method(allowed: set[str]) -> Endpoint:
    words = ", ".join(sorted(allowed))

    async def refuse(request: Request) -> Response:
        reason = Reason(Code.NOT_ITS_METHOD, _show_target(request), detail=words)
        return ProblemResponse(reason, headers={"Allow": words})

    return refuse


async def _refuse_path(request: Request) -> Response:
    return ProblemResponse(Reason(Code.NOT_FOUND, _show_target(request)))


def _show_target(request: Request) -> str:
    return f"{request.method} {request.scope['path'][:200]}"
