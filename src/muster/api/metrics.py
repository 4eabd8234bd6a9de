"""Metrics over HTTP. Health and readiness are elsewhere; this is for those who draw curves. Whoever reads it sees the
whole fleet.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from muster.api.counting import Counting
from muster.api.params import read_world
from muster.control.follower import Follower
from muster.control.metrics import Family, measure, write_text

LAG_WORDS: Final = "How long after their decision 99 of 100 entries were folded."


class Metrics:
    """The route /v1/metrics."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.counting: Counting | None = None
        self.routes = [Route("/v1/metrics", self.metrics, methods=["GET"])]

    async def metrics(self, request: Request) -> Response:
        """Everything that is counted, in the text format of Prometheus."""
        follower = self._follower
        world = await read_world(request, follower)
        own = [
            Family("muster_leader_up", "gauge", "Whether changes get through.", [({}, follower.is_led)]),
            Family(
                "muster_lag_seconds",
                "gauge",
                "How long after their decision 99 of 100 entries were folded.",
                [({}, follower.lag_p99_ms() / 1000)],
            ),
        ]
        counted = self.counting.measure() if self.counting is not None else []
        text = write_text([*own, *counted, *measure(world, follower.now_ms())])
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
