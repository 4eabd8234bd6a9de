"""The leagues: what they may see, what the bounds are, and that a trial is played by the kernel and keeps its laws.

All jobs here are made up.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from msgspec.structs import replace

from bench.leagues.bounds import bounds_of
from bench.leagues.completion import figures, mean_completion_s, play
from bench.leagues.fairness import share_out
from bench.leagues.prediction import Said, _bands, foretell, hindsight
from bench.leagues.profiles import POLICIES
from bench.leagues.sight import SEEN, spec_of
from bench.leagues.trial import gang_of
from muster.learning.runtimes import Range
from muster.simulator.traces.record import Record
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS

HIDDEN = ("duration_ms", "status", "wait_ms")


def jobs(count: int, seed: int = 3) -> list[Record]:
    """Jobs of all sizes that are together too much for two nodes for a while."""
    dice = random.Random(seed)
    at, found = 0, list[Record]()
    for number in range(count):
        at += dice.randrange(2 * MINUTE_MS)
        span = round(MINUTE_MS * 2 ** dice.uniform(0, 8))
        found.append(Record(f"{number:04}", at, span, dice.choice((1, 1, 2, 4, 8, 16)), tenant=dice.choice("ab")))
    return found


@pytest.mark.parametrize("league", SEEN)
def test_no_league_shows_how_long_a_job_runs(league: str) -> None:
    assert not set(SEEN[league]) & set(HIDDEN)
    short, long = (Record("1", 5, span, 4, status=status) for span, status in ((1, "ok"), (HOUR_MS, "bad")))
    assert spec_of(league, short) == spec_of(league, long)


@pytest.mark.parametrize(
    ("gpus", "gang"), [(1, (1, 1)), (8, (1, 8)), (16, (2, 8)), (12, (2, 6)), (11, (11, 1)), (20, (5, 4)), (60, (15, 4))]
)
def test_a_gang_is_on_as_few_nodes_as_can_be(gpus: int, gang: tuple[int, int]) -> None:
    assert gang_of(gpus) == gang


def test_bounds_of_two_jobs_that_must_follow_each_other() -> None:
    records = [Record("1", 0, HOUR_MS, 8), Record("2", 0, 2 * HOUR_MS, 8)]
    bound = bounds_of(records, 8)
    assert bound.makespan_s == 3 * 3600
    assert bound.completion_s == pytest.approx((1 + 3) / 2 * 3600)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_keeps_the_laws_and_stays_above_the_bound(policy: str) -> None:
    records = jobs(60)
    trial = play("philly", records, policy, 2, 30 * SECOND_MS)
    found = figures(trial, bounds_of(records, 16))
    assert found["over_bound"].value >= 0
    assert found["makespan_over_bound"].value >= 0
    if not POLICIES[policy].stops:
        assert found["preemptions_per_job"].value == 0


def test_the_same_trial_gives_the_same_result() -> None:
    records = jobs(50)
    first, second = (play("rigid", records, "muster", 2, SECOND_MS) for _ in range(2))
    assert [life.ended for life in first.lives.values()] == [life.ended for life in second.lives.values()]


def test_who_casts_shadows_knows_limits_and_nobody_is_stopped_by_them() -> None:
    records = jobs(80)
    for policy in ("easy", "conservative"):
        assert POLICIES[policy].is_oracle
        lives = list(play("rigid", records, policy, 2, 0).lives.values())
        assert all(life.held_ms == life.record.duration_ms and not life.stopped for life in lives)


def test_the_first_who_waits_starts_no_later_under_easy_than_if_nobody_overtook() -> None:
    """A wide job behind a long narrow one: it starts when that ends, whatever small ones come meanwhile."""
    wide = Record("2", 1, HOUR_MS, 16)
    small = [Record(f"s{at:03}", 2 + at, 2 * HOUR_MS, 1) for at in range(60)]
    records = [Record("1", 0, HOUR_MS, 8), wide, *small]
    waits = {
        policy: next(
            life.waited_ms for life in play("rigid", records, policy, 2, 0).lives.values() if life.record is wide
        )
        for policy in ("fifo", "easy")
    }
    assert waits["easy"] == HOUR_MS - 1 < waits["fifo"]


def test_in_a_queue_of_tiresias_whoever_runs_goes_on() -> None:
    """Each is stopped once by the other who is a queue before it; not by who waits in the same one, though older."""
    records = [Record("1", 0, HOUR_MS, 8), Record("2", SECOND_MS, HOUR_MS, 8)]
    assert [life.stopped for life in play("rigid", records, "tiresias", 1, 0).lives.values()] == [1, 1]


def test_finish_time_fairness_makes_the_worst_off_fare_as_well_as_can_be() -> None:
    """Two alike on half of what they ask for get half of the time each; one that waited for longer gets more."""
    none, ones = np.zeros(2), np.ones(2)
    assert share_out(4, none, ones, ones, 4 * ones) == pytest.approx([0.5, 0.5])
    behind = share_out(4, np.array([2.0, 0.0]), ones, ones, 4 * ones)
    assert behind[0] > behind[1]
    assert 4 * behind.sum() == pytest.approx(4)
    assert share_out(8, none, ones, ones, 4 * ones) == pytest.approx([1, 1])


def test_knowing_is_worth_something() -> None:
    records = jobs(120)
    averages = {
        policy: mean_completion_s(list(play("rigid", records, policy, 2, 0).lives.values()))
        for policy in ("fifo", "srsf", "blind")
    }
    assert averages["srsf"] < averages["blind"] < averages["fifo"]


def test_what_is_foretold_is_the_same_whatever_ends_later() -> None:
    records = jobs(120)
    now = records[80].submit_ms
    later = [
        replace(record, duration_ms=3 * record.duration_ms) if record.submit_ms + record.duration_ms > now else record
        for record in records
    ]
    assert later != records
    known, other = ([each.said for each in foretell(found)][:81] for found in (records, later))
    assert known == other


def test_the_band_in_which_the_fewest_ranges_hold_is_shown() -> None:
    records = [Record(f"{at:04}", at, 1 + at % 2, 1, user="ann" if at % 4 else "bob") for at in range(1400)]
    said = [Said(Range(1.0, 1.0, (1.0, 1.0, 1.0)), record.duration_ms) for record in records]
    alone = replace(records[0], gpus=64, duration_ms=2)
    found = _bands([*records, *[alone] * 200], [*said[200:], *[Said(said[0].said, 2)] * 200])
    assert found["covered_least"].value == 0
    assert found["covered_longest"].value == 0


def test_hindsight_gives_each_class_the_shortest_range_that_holds_for_four_in_five() -> None:
    spans = (1, 60, 61, 62, 900)
    records = [Record(f"{at}", at, span * SECOND_MS, 1, user="ann") for at, span in enumerate(spans)]
    said = list(hindsight([*records, Record("x", 9, 7 * SECOND_MS, 1, user="bob")]))
    assert {(each.said.low, each.said.high) for each in said[:-1]} == {(SECOND_MS, 62 * SECOND_MS)}
    assert (said[-1].said.low, said[-1].said.high) == (7 * SECOND_MS, 7 * SECOND_MS)
