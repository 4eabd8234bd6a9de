"""Ranges of run times: they hold about as often as they should, never past a limit, and know nothing of the future."""

from __future__ import annotations

import random

from muster.learning.runtimes import HOLDS, Range, RunTimes, Traits
from muster.units import HOUR_MS, MINUTE_MS

TRAITS = Traits("lab", "ada", "sweep", 8, None, 3)


def foretell(spans: list[int]) -> list[tuple[Range, int]]:
    """What is said of each of a row of jobs, one after the other."""
    learned, said, now = RunTimes(), list[tuple[Range, int]](), 0
    for number, span in enumerate(spans):
        learned.accept(number, TRAITS, now)
        said.append((learned.predict(number), span))
        learned.begin(number, now)
        now += span
        learned.end(number, span, now)
    return said


def test_a_range_holds_about_four_times_in_five() -> None:
    dice = random.Random(7)
    said = foretell([round(10 * MINUTE_MS * 2 ** dice.gauss(0, 1)) for _ in range(1500)])[300:]
    held = sum(each.low <= span <= each.high for each, span in said) / len(said)
    assert HOLDS - 0.05 < held < HOLDS + 0.05


def test_what_is_said_is_the_same_whatever_comes_later() -> None:
    spans = [MINUTE_MS * (1 + number % 7) for number in range(50)]
    assert foretell(spans)[:50] == foretell([*spans, 90 * HOUR_MS])[:50]


def test_a_limit_is_the_most() -> None:
    learned = RunTimes()
    learned.accept(1, TRAITS, 0)
    found = learned.predict(1, limit_ms=MINUTE_MS)
    assert 0 <= found.low <= found.high <= MINUTE_MS
    assert max(found.quantiles) <= MINUTE_MS


def test_it_says_from_what_it_knows() -> None:
    learned = RunTimes()
    for number in range(4):
        learned.accept(number, TRAITS, number * HOUR_MS)
        learned.begin(number, number * HOUR_MS)
        learned.end(number, MINUTE_MS, number * HOUR_MS + MINUTE_MS)
    learned.accept(9, TRAITS, 9 * HOUR_MS)
    assert learned.explain(9) == "from 4 jobs of ada with the same name, size and limit"
    learned.accept(10, TRAITS._replace(name="other"), 9 * HOUR_MS)
    assert learned.explain(10) == "from 4 jobs of ada"
    learned.accept(11, TRAITS._replace(user="bob", devices=3), 9 * HOUR_MS)
    assert learned.explain(11) == "from 4 jobs of that time of the day"


def test_before_anything_ended_it_says_so() -> None:
    learned = RunTimes()
    learned.accept(1, TRAITS, 0)
    assert learned.explain(1) == "from no job: none has ended yet"
