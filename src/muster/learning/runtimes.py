"""runtimes: how long a job will run, as a range that holds four times in five, from what jobs like it did.

Quantiles come from hazards of classes from coarse to fine: all, the hour of the day, size, owner, owner and name, and
those with size and limit. Of all ranges a job gets the one that holds most likely for what its length costs, and no
less likely than not: so ranges are short where little is gained by more, and four in five hold over all jobs, not in
each class. What length costs is seen when jobs end: with every miss it falls, and with every hit it rises a little
(adaptive conformal levels). So it stays calibrated when the load drifts, and is wide when cold. A limit is the most
that a job can run. It never sees an end before it happened.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import exp
from typing import Final, NamedTuple

import numpy as np

from muster.learning.hazard import BINS, EDGES_MS, Hazards
from muster.units import HOUR_MS, Limit

HOLDS: Final = 0.8
"""How often a range should hold."""
PACE: Final = 0.05
"""By how many powers of e one end changes what length costs."""
LEAST: Final = 0.5
"""How likely a range holds at least, by what is known."""
COLD_MS: Final = HOUR_MS
"""Before anything ended, a range may be so much longer if it holds for sure instead of never."""
REACH_MAX: Final = 40.0
"""How many powers of e the cost may be away from that."""
UNLIKELY: Final = 1e300
"""What makes a range the last choice: it holds less likely than it should."""
FIRST, LAST = np.triu_indices(BINS + 1, 1)
"""Where all ranges begin and end, by the edges of bins."""
EDGES: Final = np.array(EDGES_MS[: BINS + 1], dtype=np.float64)
QUANTILES: Final = (0.1, 0.5, 0.9)
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
    """Run times in milliseconds: four in five should be from `low` to `high`; of the quantiles, one in ten is shorter
    than the first, half than the second and nine in ten than the third."""

    low: float
    high: float
    quantiles: tuple[float, ...]


class RunTimes:
    """Learns from submits, starts and ends in the order of time."""

    def __init__(self) -> None:
        self.hazards = Hazards()
        self._cheap = 0.0
        self._said: dict[int, Range] = {}
        self._owners: dict[int, str] = {}

    def accept(self, job: int, traits: Traits, at: int) -> None:
        """A job came."""
        self.hazards.accept(job, _classes(traits), at)
        self._owners[job] = traits.user or traits.tenant or "all"

    def predict(self, job: int, limit_ms: Limit = None) -> Range:
        """How long a live job will have run when it ends."""
        most = float("inf") if limit_ms is None else float(limit_ms)
        edges, over = np.minimum(EDGES, most), self.hazards.over_by(job)
        holds = over[LAST] - over[FIRST]
        lengths = (edges[LAST] - edges[FIRST]) / (COLD_MS * exp(self._cheap))
        worth = np.where(holds >= min(LEAST, holds.max()), holds - lengths, -UNLIKELY)
        best = int(np.argmax(worth))
        quantiles = tuple(min(each, most) for each in self.hazards.quantiles_ms(job, QUANTILES))
        found = self._said[job] = Range(float(edges[FIRST[best]]), float(edges[LAST[best]]), quantiles)
        return found

    def begin(self, job: int, at: int) -> None:
        """It is up."""
        self.hazards.begin(job, 0, at)

    def end(self, job: int, ran_ms: int, at: int) -> None:
        """It is over: what was said of it was right, or the levels move."""
        said = self._said.pop(job, None)
        if said is not None:
            missed = not said.low <= ran_ms <= said.high
            self._cheap = min(REACH_MAX, max(-REACH_MAX, self._cheap + PACE * (missed - (1.0 - HOLDS))))
        self.hazards.end(job, at)
        self._owners.pop(job, None)

    def explain(self, job: int) -> str:
        """From what a live job's range comes, in words: the finest class of which any has ended."""
        of_owner = f"of {self._owners[job]}"
        words = ("of all", "of that time of the day", "of that size", of_owner, f"{of_owner} with the same name",
                 f"{of_owner} with the same name, size and limit")  # fmt: skip
        for count, word in reversed(list(zip(self.hazards.counts(job), words, strict=True))):
            if count:
                return f"from {count} job{'s' if count > 1 else ''} {word}"
        return "from no job: none has ended yet"


def _classes(traits: Traits) -> tuple[Hashable, ...]:
    """From the coarsest to the finest; `explain` has a word for each."""
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
