"""Ranges of run times: they hold about as often as they should, never past a limit, and know nothing of the future."""

from __future__ import annotations

import random
from statistics import median

from muster.learning.ranges import HOLDS
from muster.learning.runtimes import Range, RunTimes, Traits
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS

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
    learned.accept(1, TRAITS._replace(limit_ms=MINUTE_MS), 0)
    found = learned.predict(1)
    assert 0 <= found.low <= found.high <= MINUTE_MS
    assert max(found.quantiles) <= MINUTE_MS


def test_of_nobody_it_is_said_that_it_runs_for_years_because_nothing_is_known_of_it() -> None:
    learned = RunTimes()
    learned.accept(1, TRAITS, 0)
    assert learned.predict(1).quantiles[-1] <= 2 * DAY_MS
    learned.begin(1, 0)
    learned.accept(2, TRAITS._replace(user="somebody new"), 0)
    learned.begin(2, 0)
    learned.hazards.settle(30 * DAY_MS)
    first, _, last = learned.predict(2).quantiles
    assert 16 * DAY_MS < first < last <= 2 * first
    learned.end(1, 30 * DAY_MS, 30 * DAY_MS)
    learned.accept(3, TRAITS._replace(user="another"), 30 * DAY_MS)
    assert learned.predict(3).quantiles[-1] <= 60 * DAY_MS


def test_whose_jobs_are_stopped_by_their_limits_gets_a_short_range_at_the_limit_whatever_it_is() -> None:
    learned, now, late = RunTimes(), 0, MINUTE_MS
    for number in range(300):
        limit = HOUR_MS * (1 + number % 5)
        learned.accept(number, TRAITS._replace(limit_ms=limit), now)
        learned.predict(number)
        learned.begin(number, now)
        now += limit + late
        learned.end(number, limit + late, now)
    limit = 7 * HOUR_MS
    learned.accept(300, TRAITS._replace(limit_ms=limit), now)
    found = learned.predict(300)
    assert 0.98 * limit < found.low < limit + late <= found.high < 1.02 * limit


def test_limits_that_nobody_is_held_to_are_not_looked_at() -> None:
    """Who ran for ten times its limit was not stopped by it, and who comes next will not be either."""
    learned, now, limit, span = RunTimes(), 0, HOUR_MS, 10 * HOUR_MS
    for number in range(200):
        learned.accept(number, TRAITS._replace(limit_ms=limit), now)
        learned.predict(number)
        learned.begin(number, now)
        now += span
        learned.end(number, span, now)
    learned.accept(200, TRAITS._replace(limit_ms=limit), now)
    found = learned.predict(200)
    assert found.low <= span <= found.high
    assert 0.8 * span < found.quantiles[1] < 1.25 * span


def test_who_cannot_be_foretold_gets_a_long_range_and_the_others_keep_short_ones() -> None:
    dice, learned, now = random.Random(5), RunTimes(), 0
    widths: dict[str, list[float]] = {"ada": [], "bob": []}
    held = 0
    for number in range(1200):
        user = "ada" if number % 3 else "bob"
        span = round(10 * MINUTE_MS * (1 if user == "ada" else 2 ** dice.uniform(-4, 6)))
        learned.accept(number, TRAITS._replace(user=user), now)
        said = learned.predict(number)
        learned.begin(number, now)
        now += span
        learned.end(number, span, now)
        if number >= 400:
            widths[user].append(said.high - said.low)
            held += said.low <= span <= said.high
    assert max(widths["ada"]) < 10 * MINUTE_MS < median(widths["bob"])
    assert held >= 0.75 * 800


def test_what_a_range_covers_is_found_again_after_run_times_grew_twentyfold() -> None:
    dice = random.Random(11)
    spans = [round((5 if number < 1000 else 100) * MINUTE_MS * 2 ** dice.gauss(0, 1)) for number in range(3000)]
    held = [each.low <= span <= each.high for each, span in foretell(spans)[1500:]]
    assert HOLDS - 0.07 < sum(held) / len(held) < HOLDS + 0.07


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
    learned.accept(13, TRAITS._replace(name="sweep-7"), 9 * HOUR_MS)
    assert learned.explain(13) == "from 4 jobs of ada with a name like it"
    learned.accept(11, TRAITS._replace(user="bob", devices=3), 9 * HOUR_MS)
    assert learned.explain(11) == "from 4 jobs of that time of the day"
    learned.accept(12, TRAITS._replace(name=""), 9 * HOUR_MS)
    assert learned.explain(12) == "from 4 jobs of ada"


def test_before_anything_ended_it_says_so() -> None:
    learned = RunTimes()
    learned.accept(1, TRAITS, 0)
    assert learned.explain(1) == "from no job: none has ended yet"
