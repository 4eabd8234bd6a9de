"""runtimes: how long a job will run, as a range that holds four times in five, from what its owner's jobs did before.

Quantiles come from hazards of classes from coarse to fine: all, the hour of the day, size, owner, owner and name, and
those with size and limit. What is wrong with them as a whole is seen when jobs end: if too many end above the range,
it goes up, and down if too few do (adaptive conformal levels). So it stays calibrated when the load drifts, and is
wide when cold. A limit is the most that a job can run. It never sees an end before it happened.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from muster.learning.hazard import Hazards
from muster.units import HOUR_MS, Limit

LOW: Final = 0.1
HIGH: Final = 0.9
PACE: Final = 0.004
"""How far one end moves a level."""
LEVEL_MIN: Final = 0.001
HOURS: Final = 6
"""How many hours of the day are one class."""


class Traits(NamedTuple):
    """What is known of a job when it is submitted."""

    tenant: str
    user: str
    name: str
    devices: int
    limit_ms: Limit
    hour: int


class Range(NamedTuple):
    """Run times in milliseconds: one in ten is shorter than `low`, half than `middle`, nine in ten than `high`."""

    low: float
    middle: float
    high: float


class RunTimes:
    """Learns from submits, starts and ends in the order of time."""

    def __init__(self) -> None:
        self.hazards = Hazards()
        self._low, self._high = LOW, HIGH
        self._said: dict[int, Range] = {}

    def accept(self, job: int, traits: Traits) -> None:
        """A job came."""
        self.hazards.accept(job, _classes(traits))

    def predict(self, job: int, limit_ms: Limit = None) -> Range:
        """How long a live job will have run when it ends."""
        low, middle, high = self.hazards.quantiles_ms(job, (self._low, 0.5, self._high))
        most = float("inf") if limit_ms is None else float(limit_ms)
        found = self._said[job] = Range(min(low, most), min(middle, most), min(high, most))
        return found

    def begin(self, job: int, at: int) -> None:
        """It is up."""
        self.hazards.begin(job, 0, at)

    def end(self, job: int, ran_ms: int, at: int) -> None:
        """It is over: what was said of it was right, or the levels move."""
        said = self._said.pop(job, None)
        if said is not None:
            self._low += PACE * (LOW - (ran_ms < said.low))
            self._high -= PACE * ((1.0 - HIGH) - (ran_ms > said.high))
            self._low = min(0.45, max(LEVEL_MIN, self._low))
            self._high = min(1.0 - LEVEL_MIN, max(0.55, self._high))
        self.hazards.end(job, at)

    def explain(self, job: int) -> str:
        """From what a live job's range comes, in words."""
        return self.hazards.explain(job)


def _classes(traits: Traits) -> tuple[Hashable, ...]:
    owner, size = (traits.tenant, traits.user), traits.devices
    return (
        (),
        ("hour", traits.hour // HOURS),
        ("size", size),
        ("owner", owner),
        ("named", owner, traits.name),
        ("like", owner, traits.name, size, traits.limit_ms),
    )


def hour_of(instant_ms: int) -> int:
    """The hour of the day, as far as a trace knows when its day begins."""
    return instant_ms // HOUR_MS % 24
