"""Which range is said: four in five hold, fewer than half are long, and a miss is seen when it happens."""

from __future__ import annotations

import random
from statistics import median

import numpy as np
import pytest

from muster.learning.hazard import COARSE
from muster.learning.ranges import LONG, LONGS, Ranges
from muster.learning.runtimes import RunTimes, Traits
from muster.units import HOUR_MS, MINUTE_MS

TRAITS = Traits("lab", "ada", "sweep", 8, None, 3)
EDGES = np.append(np.array(COARSE.edges_ms, dtype=np.float64), COARSE.edges_ms[-1] + 1.0)


def even(first: int, last: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How likely a job is over at each edge, if it ends as likely in one bin as in another of these."""
    return np.clip((np.arange(len(EDGES)) - first) / (last - first), 0.0, 1.0)


@pytest.mark.parametrize("spread", [0.5, 1.0, 2.0])
def test_run_times_may_be_far_apart_and_most_hold_and_half_of_what_is_said_is_short(spread: float) -> None:
    dice, learned, now = random.Random(3), RunTimes(), 0
    held, widths, spans = 0, list[float](), list[int]()
    for number in range(2500):
        span = round(20 * MINUTE_MS * 2 ** dice.gauss(0, spread))
        learned.accept(number, TRAITS, now)
        said = learned.predict(number)
        learned.begin(number, now)
        now += span
        learned.end(number, span, now)
        if number >= 500:
            held += said.low <= span <= said.high
            widths.append(said.high - said.low)
            spans.append(span)
    assert 0.75 <= held / len(spans) <= 0.85
    assert median(widths) <= 1.5 * median(spans)


def test_a_range_did_not_hold_as_soon_as_a_job_runs_for_longer() -> None:
    """Many run for far longer than was said of them: who comes next is told so before any of them has ended."""
    learned = RunTimes()
    for number in range(50):
        learned.accept(number, TRAITS, number * HOUR_MS)
        learned.predict(number)
        learned.begin(number, number * HOUR_MS)
        learned.end(number, 5 * MINUTE_MS, number * HOUR_MS + 5 * MINUTE_MS)
    at = 50 * HOUR_MS
    others = [TRAITS._replace(user=f"new {number}") for number in range(40)]
    for number, traits in enumerate(others, start=100):
        learned.accept(number, traits, at)
        learned.predict(number)
        learned.begin(number, at)
    learned.accept(200, TRAITS._replace(user="next"), at)
    before = learned.predict(200)
    learned.settle(at + 8 * HOUR_MS)
    after = learned.predict(200)
    assert after.high - after.low > 2 * (before.high - before.low)


def test_long_ranges_cost_more_the_more_there_are() -> None:
    """Half of the likelihood is far away from the rest: who is told the long range is as many as may be."""
    ranges = Ranges()
    for _ in range(200):
        ranges.learn(20 * MINUTE_MS)
    wide = even(4, 40)
    long = [high - low > LONG * 21 * MINUTE_MS for low, high in (ranges.choose(EDGES, wide) for _ in range(2000))]
    assert abs(sum(long[1000:]) / 1000 - LONGS) < 0.05


def test_where_too_many_miss_more_ranges_may_be_long() -> None:
    ranges = Ranges()
    for _ in range(200):
        ranges.learn(20 * MINUTE_MS)
    long = list[bool]()
    for _ in range(2000):
        low, high = ranges.choose(EDGES, even(4, 40))
        long.append(high - low > LONG * 21 * MINUTE_MS)
        ranges.judge(is_missed=True)
    assert all(long[1000:])
