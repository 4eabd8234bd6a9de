"""The counting of requests: by method and class of status, and how long their answers took to begin.

Whoever answers says so just before: to listen to all that is sent would cost a submit more than to judge it does.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from muster.control.metrics import Family, Labels

ARRIVED: Final = "muster.arrived"
"""Where it says in a request's scope by whom it is counted, and when it came."""
TOOK: Final = "muster_request_seconds"
BOUNDS_S: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE"})


class Counting:
    """ASGI middleware, the first: it notes when a request came, and hears of the answer by `note_answer`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._answers: Counter[tuple[str, int]] = Counter()
        self._took = [0] * (len(BOUNDS_S) + 1)
        self._sum_s = 0.0

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Pass everything on."""
        scope[ARRIVED] = self, time.perf_counter()
        return self._app(scope, receive, send)

    def note(self, method: str, status: int, took_s: float) -> None:
        """An answer begins."""
        self._answers[method if method in METHODS else "other", status // 100] += 1
        self._took[bisect_left(BOUNDS_S, took_s)] += 1
        self._sum_s += took_s

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


def note_answer(scope: Scope, status: int) -> None:
    """The answer to a request is about to be sent; where nobody counts, that is all."""
    if ARRIVED in scope:
        counting, begin = scope[ARRIVED]
        counting.note(scope["method"], status, time.perf_counter() - begin)
