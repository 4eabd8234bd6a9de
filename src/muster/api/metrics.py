"""Metrics over HTTP, and the counting of requests: by method and class of status, and how long they took.

Health and readiness are elsewhere; this is for those who draw curves. Whoever reads it sees the whole fleet.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.api.params import read_world
from muster.control.follower import Follower
from muster.control.metrics import Family, Labels, measure, write_text

TOOK: Final = "muster_request_seconds"
BOUNDS_S: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
LAG_WORDS: Final = "How long after their decision 99 of 100 entries were folded."
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})


class Counting:
    """ASGI middleware: counts what goes through, and measures how long the answer took to begin."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._answers: Counter[tuple[str, int]] = Counter()
        self._took = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass everything on."""
        begin = time.perf_counter()

        def send_counted(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                took_s, method = time.perf_counter() - begin, scope["method"]
                self._answers[method if method in METHODS else "other", message["status"] // 100] += 1
                self._took[bisect_left(BOUNDS_S, took_s)] += 1
                self._sum_s += took_s
            return send(message)

        return self._app(scope, receive, send_counted)

    def measure(self) -> list[Family]:
        """What was counted so far."""
        answers: list[tuple[Labels, float]] = [
            ({"method": method, "status": f"{hundreds}xx"}, count)
            for (method, hundreds), count in sorted(self._answers.items())
        ]
        total = sum(self._took)
        within: list[tuple[Labels, float]] = [
            ({"le": f"{bound:g}"}, sum(self._took[: place + 1])) for place, bound in enumerate(BOUNDS_S)
        ]
        within.append(({"le": "+Inf"}, total))
        words = "Seconds until answers began."
        return [
            Family("muster_requests_total", "counter", "Answers of the API, by method and class of status.", answers),
            Family(f"{TOOK}_bucket", "histogram", words, within, TOOK),
            Family(f"{TOOK}_sum", "histogram", words, [({}, self._sum_s)], TOOK),
            Family(f"{TOOK}_count", "histogram", words, [({}, total)], TOOK),
        ]


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
