"""runtimes: how long a job will run, as a range that holds four times in five, from what jobs like it did.

How likely a job ends when comes from hazards of classes from coarse to fine: all, the hour of the day, the limit, the
owner, owner and names that differ in their numbers alone, owner and name, and those with size and limit. Who was
stopped by its limit would have run on, so what is left of the likelihood at a limit stands there: a range may be short
around it, and is a little longer than it by as much as jobs were late. Where many run far past their limits, nobody
holds them to these, and limits are not looked at.

Which of all ranges is said of it is for `ranges` to choose: it learns from each that held or did not. That one did not
is known as soon as a job runs for longer. It never sees an end before it happened.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np

from muster.learning.hazard import COARSE, Hazards
from muster.learning.ranges import Ranges
from muster.units import DAY_MS, HOUR_MS, SECOND_MS, Limit
from muster.wire.evidence import KINS, put_evidence

COLD_LONGEST_MS: Final = DAY_MS
"""What is long before anything ended."""
CUT: Final = 0.99
"""Who has run for so much of its limit is stopped by it."""
STRETCH: Final = 2.0
"""Of nobody it is said that it runs for more than so many times as long as anybody did, or as it does itself by now."""
LATE: Final = 0.95
"""What part of those that were late are within what is allowed for it."""
LATE_PACE_MS: Final = 30 * SECOND_MS
"""How far one late end may change that."""
PAST: Final = 1.5
"""Who has run for so many times its limit, and for more than the late ones do, was not held by it."""
UNHELD: Final = 0.05
"""Limits that more of the jobs than this part were not held by are no limits: what is known otherwise stands."""
UNHELD_PACE: Final = 0.01
"""How much one end says of that."""
EDGES: Final = np.array(COARSE.edges_ms, dtype=np.float64)
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


class Evidence(NamedTuple):
    """How many jobs have ended of the finest class of which enough have, and which of `KINS` that is."""

    likes: int
    kin: int


class Range(NamedTuple):
    """Run times in milliseconds: four in five should be from `low` to `high`; of the quantiles, one in ten is shorter
    than the first, half than the second and nine in ten than the third."""

    low: float
    high: float
    quantiles: tuple[float, ...]


class RunTimes:
    """Learns from submits, starts and ends in the order of time; with a `classes_max`, in so much memory."""

    def __init__(self, classes_max: int | None = None) -> None:
        self.hazards = Hazards(COARSE, classes_max)
        self._ranges = Ranges()
        self._longest_ms = float(COLD_LONGEST_MS)
        self._late_ms = self._unheld = 0.0
        self._said: dict[int, Range] = {}
        self._traits: dict[int, Traits] = {}

    def accept(self, job: int, traits: Traits, at: int) -> None:
        """A job came."""
        self.hazards.accept(job, _classes(traits), at)
        self._traits[job] = traits

    def predict(self, job: int) -> Range:
        """How long a live job will have run when it ends."""
        limit_ms = self._traits[job].limit_ms if self._unheld < UNHELD else None
        quantiles = self.hazards.quantiles_ms(job, QUANTILES)
        # a tail of which nothing was seen yet is no reason to say years
        most = min(EDGES[-1], limit_ms or EDGES[-1], STRETCH * max(self._longest_ms, quantiles[0]))
        over = self.hazards.over_by(job)
        edges = np.append(np.minimum(EDGES, CUT * most), most + self._late_ms)
        over = np.append(np.minimum(over, np.interp(CUT * most, EDGES, over)), 1.0)
        low, high = self._ranges.choose(edges, over)
        found = self._said[job] = Range(low, high, tuple(min(each, most) for each in quantiles))
        return found

    def begin(self, job: int, at: int, served_ms: int = 0) -> None:
        """It is up, and was for so long before."""
        self.hazards.begin(job, served_ms, at)

    def settle(self, now: int) -> None:
        """Time went by. Of whom it was said that it would be over by now, and is not, that is known to be wrong."""
        for job in self.hazards.settle(now):
            said = self._said.get(job)
            if said is not None and self.hazards.reached_ms(job) >= said.high:
                del self._said[job]
                self._ranges.judge(is_missed=True)

    def pause(self, job: int, at: int) -> None:
        """It is up no longer, and not over."""
        self.settle(at)
        self.hazards.pause(job, at)

    def cut(self, job: int, at: int) -> None:
        """Somebody else ended it, and nobody knows for how long it would have run."""
        self.settle(at)
        self._said.pop(job, None)
        del self._traits[job]
        self.hazards.end(job, at, is_cut=True)

    def end(self, job: int, ran_ms: int, at: int) -> None:
        """It is over: what was said of it was right or not, unless that is known already."""
        self.settle(at)
        said, limit_ms = self._said.pop(job, None), self._traits.pop(job).limit_ms
        if said is not None:
            self._ranges.judge(is_missed=not said.low <= ran_ms <= said.high)
        self._ranges.learn(ran_ms)
        self._longest_ms = max(self._longest_ms, ran_ms)
        self.hazards.end(job, at, is_cut=limit_ms is not None and self._is_stopped(ran_ms, limit_ms))

    def _is_stopped(self, ran_ms: int, limit_ms: int) -> bool:
        """Whether a job was stopped by its limit. Who ran far past it was not; where many do, limits say nothing."""
        is_past = ran_ms > PAST * limit_ms + self._late_ms + LATE_PACE_MS
        self._unheld += UNHELD_PACE * (is_past - self._unheld)
        if ran_ms > limit_ms and not is_past:
            is_later = ran_ms - limit_ms > self._late_ms
            self._late_ms = max(0.0, self._late_ms + LATE_PACE_MS * (is_later - (1.0 - LATE)))
        return ran_ms >= CUT * limit_ms and not is_past

    def weigh(self, job: int, least: int = 1) -> Evidence:
        """From what a live job's range comes: the finest class of which any has ended, or so many."""
        counts, classes = self.hazards.counts(job), _classes(self._traits[job])
        known = zip(reversed(counts), reversed(classes), strict=True)
        likes, name = next(((count, kind[0]) for count, kind in known if count >= least), (0, KINS[0]))
        return Evidence(likes, KINS.index(str(name)))

    def explain(self, job: int) -> str:
        """The same in words."""
        traits = self._traits[job]
        return put_evidence(*self.weigh(job), traits.user or traits.tenant)


def _classes(traits: Traits) -> list[tuple[Hashable, ...]]:
    """From the coarsest to the finest. What is not told of a job makes no class: the same jobs would count twice."""
    owner, name, limit = (traits.tenant, traits.user), traits.name, traits.limit_ms
    found: list[tuple[Hashable, ...]] = [("all",), ("hour", traits.hour // HOURS)]
    if limit is not None:
        found.append(("limit", limit))
    found.append(("owner", owner))
    stem = _stem(name)
    if stem:
        found.append(("alike", owner, stem))
    if name != stem:
        found.append(("named", owner, name))
    return [*found, ("like", owner, name, traits.devices, limit)]


def _stem(name: str) -> str:
    """What names of one series have in common: a name without its numbers, and without what parts those from it."""
    return "".join(each for each in name if not each.isdigit()).strip("-_./: ")


def hour_of(instant_ms: int) -> int:
    """The hour of the day, as far as a trace knows when its day begins."""
    return instant_ms // HOUR_MS % 24
