"""Jobs like those of a published cluster: sizes, run times and outcomes drawn so that the whole has its summary.

The summaries are those that the Acme paper compares (Hu et al., "Characterization of Large Language Model Development
in the Datacenter", NSDI 2024; its data is CC-BY-4.0): how many devices a job has and how long it runs, in the mean, at
the median and at most, how jobs end, and how much device time there was in all. No job of any trace is here.

A size is a power of two: the least ones have the share that makes the published median, the others fall off
geometrically to the published mean. A run time is log-normal around a centre that grows with the size, cut at the
published maximum. Centre, growth and spread are solved, not fitted by hand: they make the published median, the mean
and the device time of a mean job. Where that is not published, the run time does not depend on the size.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.simulator.traces.record import Record
from muster.units import SECOND_MS

WHOLE: Final = 1000
STEPS: Final = 40
"""Halvings of a range: as exact as a float is."""
TENANTS: Final = 12
SUCCEEDED: Final = "succeeded"


class Published(NamedTuple):
    """A cluster's summary: devices of a job, seconds of a run, device-seconds of a mean job, shares of ends. `least`
    are the sizes up to the median, in thousandths of a device, with their shares."""

    least: tuple[tuple[int, float], ...]
    mean_gpus: float
    most_gpus: int
    median_s: float
    mean_s: float
    longest_s: float
    gpu_s: float | None
    completed: float
    cancelled: float


CLUSTERS: Final[dict[str, Published]] = {
    "seren": Published(((1000, 0.62),), 5.68, 1024, 122.0, 1414.335, 1209604.0, 32404.6, 0.497, 0.075),
    "kalos": Published(((1000, 0.55),), 26.77, 1024, 124.0, 1259.689, 625740.0, 267904.8, 0.541, 0.062),
    "philly": Published(((1000, 0.8),), 1.928, 128, 874.0, 18006.055, 4240676.0, 61037.5, 0.604, 0.09),
    "helios": Published(((1000, 0.62),), 3.716, 2048, 206.0, 6651.681, 4320009.0, 49351.5, 0.624, 0.221),
    "pai": Published(((250, 0.25), (500, 0.35)), 0.683, 8, 480.667, 4787.109, 626371.0, None, 1.0, 0.0),
}
"""By name. Shares of `least` sizes are ours where only a median is published; ends of pai are not published."""


class Job(NamedTuple):
    """One job that was drawn: thousandths of devices, how long it runs, and how it ends."""

    gpu_milli: int
    run_ms: int
    status: str


class Model:
    """How jobs of one cluster are drawn."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self.sizes = _sizes(published)
        self.growth, self.spread, self.centre = _solve(published, self.sizes)

    def draw(self, dice: random.Random) -> Job:
        """The next job."""
        milli = dice.choices(list(self.sizes), list(self.sizes.values()))[0]
        seconds = min(dice.lognormvariate(self._centre_of(milli), self.spread), self.published.longest_s)
        roll, known = dice.random(), self.published
        status = SUCCEEDED if roll < known.completed else "failed"
        if known.completed <= roll < known.completed + known.cancelled:
            status = "cancelled"
        return Job(milli, max(1, round(SECOND_MS * seconds)), status)

    def mean_gpu_ms(self, most_milli: int) -> float:
        """Device-milliseconds of a mean job, if nobody is wider than this."""
        means = ((min(size, most_milli), share, self._mean_s(size)) for size, share in self.sizes.items())
        return SECOND_MS * sum(share * size / WHOLE * seconds for size, share, seconds in means)

    def _mean_s(self, milli: int) -> float:
        return _mean_of(self._centre_of(milli), self.spread, self.published.longest_s)

    def _centre_of(self, milli: int) -> float:
        return self.centre + self.growth * math.log(milli / WHOLE)


@cache
def get_model(name: str) -> Model:
    """The model of a cluster; a name that is none of ours is refused (M355)."""
    if name not in CLUSTERS:
        raise RejectedError(Reason(Code.UNKNOWN_CLUSTER, name, detail=", ".join(CLUSTERS)))
    return Model(CLUSTERS[name])


def make_jobs(name: str, count: int, span_ms: int, seed: int) -> Iterator[Record]:
    """So many jobs like those of a cluster, submitted over some time at random."""
    model, dice = get_model(name), random.Random(f"{seed}/{name}")  # noqa: S311 - a simulation wants seeded dice
    submits = sorted(dice.randrange(max(1, span_ms)) for _ in range(count))
    for number, submit in enumerate(submits):
        job = model.draw(dice)
        gpus, milli = divmod(job.gpu_milli, WHOLE)
        tenant = f"{name}-{min(int(dice.expovariate(0.4)), TENANTS - 1)}"
        yield Record(
            f"{number:08}", submit - submits[0], job.run_ms, gpus, gpu_milli=milli, tenant=tenant, status=job.status
        )


def _sizes(published: Published) -> dict[int, float]:
    """The share of each size. What the least ones leave is dealt so that each size has so many times the one before."""
    least = dict(published.least)
    first = 2 * max(least)
    others = [first << power for power in range(20) if first << power <= WHOLE * published.most_gpus]
    rest = 1 - sum(least.values())

    def deal(ratio: float) -> dict[int, float]:
        weights = [ratio**power for power in range(len(others))]
        return least | {size: rest * weight / sum(weights) for size, weight in zip(others, weights, strict=True)}

    def excess(ratio: float) -> float:
        return sum(size * share for size, share in deal(ratio).items()) / WHOLE - published.mean_gpus

    return deal(_find_zero(excess, 1e-6, 2.0))


def _solve(published: Published, sizes: dict[int, float]) -> tuple[float, float, float]:
    """Growth, spread and centre that make the device time, the mean and the median that are published."""

    def centre_for(growth: float, spread: float) -> float:
        def excess(centre: float) -> float:
            goal = math.log(published.median_s)
            below = (
                share * _below((goal - centre - growth * math.log(size / WHOLE)) / spread)
                for size, share in sizes.items()
            )
            return 0.5 - sum(below)

        return _find_zero(excess, -20.0, 20.0)

    def mean_for(growth: float, spread: float, by_size: bool) -> float:
        centre, longest = centre_for(growth, spread), published.longest_s
        return sum(
            share
            * (size / WHOLE if by_size else 1)
            * _mean_of(centre + growth * math.log(size / WHOLE), spread, longest)
            for size, share in sizes.items()
        )

    def spread_for(growth: float) -> float:
        return _find_zero(lambda spread: mean_for(growth, spread, False) - published.mean_s, 0.05, 6.0)

    goal = published.gpu_s
    growth = 0.0
    if goal is not None:
        growth = _find_zero(lambda each: mean_for(each, spread_for(each), True) - goal, -1.0, 3.0)
    spread = spread_for(growth)
    return growth, spread, centre_for(growth, spread)


def _mean_of(centre: float, spread: float, most: float) -> float:
    """The mean of a log-normal time that is cut at `most`."""
    edge = (math.log(most) - centre) / spread
    return math.exp(centre + spread * spread / 2) * _below(edge - spread) + most * (1 - _below(edge))


def _below(value: float) -> float:
    """The share of a normal variable that is below a value."""
    return 0.5 * math.erfc(-value / math.sqrt(2))


def _find_zero(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function passes zero; an end of the range, if it does not."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
