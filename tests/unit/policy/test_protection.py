"""What keeps a run from being stopped, and a job from taking again and again."""

from __future__ import annotations

from muster.model.tier import Tier
from muster.policy.protection import is_protected, may_take, takes_again_at
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS

NOW = 10 * DAY_MS


def test_a_run_is_left_alone_for_its_minimum_run_time() -> None:
    tier = Tier(200, DAY_MS, min_run_ms=HOUR_MS)
    assert is_protected(tier, NOW - HOUR_MS + 1, (), NOW)
    assert not is_protected(tier, NOW - HOUR_MS, (), NOW)


def test_a_job_is_evicted_so_often_in_a_day_and_not_more() -> None:
    tier = Tier(200, DAY_MS, evictions_max=2)
    lately = (NOW - HOUR_MS, NOW - MINUTE_MS)
    assert is_protected(tier, 0, lately, NOW)
    assert not is_protected(tier, 0, lately[:1], NOW)
    assert not is_protected(tier, 0, (NOW - DAY_MS, NOW - 1), NOW)
    assert is_protected(Tier(200, DAY_MS, evictions_max=0), 0, (), NOW)


def test_whoever_took_twice_backs_off_twice_as_long_each_time() -> None:
    assert may_take((), NOW)
    assert may_take((NOW,), NOW)
    took: tuple[int, ...] = (0, NOW)
    for wait_ms in (MINUTE_MS, 2 * MINUTE_MS, 4 * MINUTE_MS):
        took = (*took[-4:], NOW) if wait_ms > MINUTE_MS else (NOW, NOW)
        assert not may_take(took, NOW + wait_ms - 1)
        assert may_take(took, NOW + wait_ms)
    assert may_take(took, NOW + DAY_MS)


def test_whoever_backs_off_is_looked_at_again_when_the_first_time_is_a_day_ago() -> None:
    """Or a living world slept on, while a restored one counted one time less and took."""
    took = (NOW, *(NOW + DAY_MS - minutes * MINUTE_MS for minutes in (5, 4, 3, 2)))
    assert takes_again_at(took, NOW + DAY_MS - 1) == NOW + DAY_MS
    assert not may_take(took, NOW + DAY_MS)
    assert takes_again_at(took, NOW + DAY_MS) == NOW + DAY_MS + 2 * MINUTE_MS
    assert may_take(took, NOW + DAY_MS + 2 * MINUTE_MS)
