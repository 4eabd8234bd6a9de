"""The audit log over HTTP: who changed what, oldest first, and whether its chain holds. It is read, never written."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.pages import fit
from muster.api.params import read_number
from muster.api.problems import JsonResponse
from muster.control.follower import Follower
from muster.ports.store import Link
from muster.wire.access_views import AuditEntry, AuditPage, AuditVerdict
from muster.wire.records import decode_line

LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 200


class Audit:
    """The routes below /v1/audit."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [
            Route("/v1/audit", self.page, methods=["GET"]),
            Route("/v1/audit/verify", self.verify, methods=["GET"]),
        ]

    async def page(self, request: Request) -> Response:
        """Lines after a number."""
        query = request.query_params
        after = read_number(query.get("after"), "after", default=0)
        limit = read_number(query.get("limit"), "limit", default=LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        found = await self._follower.read_audit(after, limit + 1)
        shown = list(fit([_view(link) for link in found[:limit]]))
        return JsonResponse(AuditPage(shown, shown[-1].number if len(found) > len(shown) else None))

    async def verify(self, request: Request) -> Response:  # noqa: ARG002 - Starlette's signature
        """Follow the whole chain."""
        chain = await self._follower.verify_audit()
        return JsonResponse(AuditVerdict(not chain.broken_at, chain.lines, chain.head.hex(), chain.broken_at))


def _view(link: Link) -> AuditEntry:
    line = decode_line(link.number, link.data)
    return AuditEntry(
        number=link.number,
        at_ms=line.at,
        by=line.by,
        action=line.action,
        subject=line.subject,
        detail=line.detail,
        token=line.token,
        link=link.link.hex(),
    )
