"""Use over HTTP: who used how much of what, in a span of hours."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from muster.api.answers import read_response
from muster.api.gate import sees_of
from muster.api.pages import read_limit
from muster.api.params import read_number, read_world
from muster.api.problems import bad_field
from muster.control.follower import Follower
from muster.control.remembering import GROUPS, Sums
from muster.units import HOUR_MS, INSTANT_MAX
from muster.wire.views import UsageView

BY_DEFAULT: Final = "tenant"


class Usage:
    """The route /v1/usage."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.routes = [Route("/v1/usage", self.usage, methods=["GET"])]

    async def usage(self, request: Request) -> Response:
        """Sums of use from the hour of `since` to that of `until`, `by` tenant, user, flavor or hour, or several."""
        query, now = request.query_params, self._follower.now_ms()
        since = read_number(query.get("since"), "since", default=0, most=INSTANT_MAX)
        until = read_number(query.get("until"), "until", default=now, most=INSTANT_MAX)
        after, limit = read_number(query.get("after"), "after", default=0), read_limit(request)
        by, tenant = _read_groups(query.get("by", BY_DEFAULT)), query.get("tenant", "")
        world = await read_world(request, self._follower)
        is_seen = sees_of(request)
        sums = Sums(by, lambda name: is_seen(name) and tenant in ("", name))
        first, last = since // HOUR_MS, max(until - 1, 0) // HOUR_MS
        sums.add(await self._follower.read_uses(first, last, hourly="hour" in by))
        rows = sums.rows()
        more = after + limit if after + limit < len(rows) else None
        shown = rows[after : after + limit]
        return read_response(world, UsageView(shown, first * HOUR_MS, (last + 1) * HOUR_MS, now, more))


def _read_groups(text: str) -> tuple[str, ...]:
    groups = tuple(text.split(","))
    odd = [word for word in groups if word not in GROUPS]
    if odd:
        raise bad_field("by", f"{odd[0][:40]!r} is not one of {', '.join(GROUPS)}")
    return groups
