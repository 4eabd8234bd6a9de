"""Rates: how many requests one token may send. A bucket per token fills steadily and each request takes one drop.

The owner of the home has none: whoever can read that file can stop the server anyway. It knows tokens by their numbers
and a time in milliseconds, nothing else.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from muster.model.reason import Code, Reason

PER_S: Final = 200
BURST: Final = 1000
BUCKETS_MAX: Final = 10_000
_DROP: Final = 1000


class Rates:
    """Buckets in thousandths of a drop, so that a millisecond fills a whole number of them."""

    def __init__(self, per_s: int = PER_S, burst: int = BURST) -> None:
        self._per_ms = per_s
        self._full = burst * _DROP
        self._buckets: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def find_excess(self, token: str, now: int) -> Reason | None:
        """Take a drop; if there is none, the reason says in how many milliseconds there is."""
        level, at = self._buckets.pop(token, (self._full, now))
        level = min(self._full, level + max(0, now - at) * self._per_ms)
        is_over = level < _DROP
        self._buckets[token] = (level if is_over else level - _DROP, max(at, now))
        if len(self._buckets) > BUCKETS_MAX:
            self._buckets.popitem(last=False)  # the one that was quiet for longest is full again anyway
        if not is_over:
            return None
        wait_ms = -(-(_DROP - level) // self._per_ms)
        return Reason(Code.RATE_LIMITED, "requests", needed=wait_ms, available=self._per_ms, detail=token)
