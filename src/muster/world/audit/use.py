"""The auditor's books of use: what each tenant held, for how long, by the hour, from the facts alone.

They are kept the plain way, by adding up what was held whenever it changes, and know nothing of ages and weights. What
is compared is how much is held now, what was used in this hour, and in the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from muster.model.spec import Spec
from muster.model.tenant import CPU, device_amount
from muster.world.audit.quota import Plot
from muster.world.laws.law import require_same
from muster.world.usage import BUCKET_MS, Usage

Key: TypeAlias = tuple[str, str]


class UseBook:
    """What one tenant holds of one family since an instant, and what it used before, by the hour."""

    __slots__ = ("held", "since", "used")

    def __init__(self, since: int) -> None:
        self.held = 0
        self.since = since
        self.used: dict[int, int] = {}

    def settle(self, at: int) -> None:
        """Add up what was held until an instant."""
        while self.since < at:
            hour = self.since // BUCKET_MS
            until = min(at, (hour + 1) * BUCKET_MS)
            self.used[hour] = self.used.get(hour, 0) + self.held * (until - self.since)
            self.since = until if self.held else at


class UseBooks:
    """The books of all tenants; `at` is the instant of the facts that are being booked."""

    def __init__(self) -> None:
        self.at = 0
        self._books: dict[Key, UseBook] = {}
        self._touched: dict[Key, None] = {}

    def hold(self, spec: Spec, places: Sequence[tuple[Plot, int]], sign: int) -> None:
        """Tasks hold their places from now on (1), or no longer (-1)."""
        for plot, tasks in places:
            devices = device_amount(spec.ask, plot.units)
            key = (spec.tenant, plot.family if devices else CPU)
            book = self._books.setdefault(key, UseBook(self.at))
            book.settle(self.at)
            book.held += sign * tasks * (devices or spec.ask.cpu_milli)
            self._touched[key] = None

    def compare(self, usage: Usage) -> None:
        """Whether the meters say the same of all that was touched."""
        now = self.at // BUCKET_MS
        for tenant, family in self._touched:
            book, meter = self._books[(tenant, family)], usage.accounts[tenant].meters[family]
            uses = dict(meter.uses(self.at))
            kept = (meter.rate, uses.get(now, 0), uses.get(now - 1, 0))
            booked = (book.held, book.used.get(now, 0), book.used.get(now - 1, 0))
            require_same(kept, booked, "use is what was held", (tenant, family))
        self._touched.clear()
