"""Bars over HTTP: keep new work off a node, and lift what keeps it off.

A bar is named by its node and kind. Every bar that comes this way is the operators' together, so that one may lift what
another has set; who did what is in the audit log.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import ask_change, changed_response
from muster.api.gate import cause_of
from muster.api.params import read_body, read_choice
from muster.control.follower import Follower
from muster.model.event import BarNode, UnbarNode
from muster.model.job import BarKind
from muster.units import INSTANT_MAX

OPERATOR: Final = "operator"
KINDS: Final = tuple(kind.value for kind in BarKind)


class BarBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bar as a client sends it: without `until_ms` it stands until it is lifted."""

    reason: str = ""
    until_ms: Annotated[int, msgspec.Meta(ge=0, le=INSTANT_MAX)] | None = None
    lets_finish: bool = True


_bar_decoder: Final = msgspec.json.Decoder(BarBody)


class Bars:
    """The routes below /v1/nodes that change something."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        path = "/v1/nodes/{name:path}/bars/{kind}"
        self.routes = [Route(path, self.bar, methods=["PUT"]), Route(path, self.unbar, methods=["DELETE"])]

    async def bar(self, request: Request) -> Response:
        """Set a bar, or replace it."""
        return changed_response(await ask_change(request, self._follower, await read_bar(request)))

    async def unbar(self, request: Request) -> Response:
        """Lift a bar; one that does not stand is lifted already."""
        name, kind = _read_target(request)
        event = UnbarNode(name, kind, OPERATOR, cause_of(request))
        return changed_response(await ask_change(request, self._follower, event))


async def read_bar(request: Request) -> BarNode:
    """The bar that a request wants."""
    name, kind = _read_target(request)
    body = await read_body(request, _bar_decoder, "bar")
    return BarNode(name, kind, OPERATOR, body.reason, body.until_ms, body.lets_finish, cause_of(request))


def _read_target(request: Request) -> tuple[str, BarKind]:
    kind = read_choice(request.path_params["kind"], "kind", KINDS, default="")
    return request.path_params["name"], BarKind(kind)
