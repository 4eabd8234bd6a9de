"""Nothing acknowledged is lost, nothing is accepted twice, running work is adopted: whoever dies, and whenever.

Every named failpoint is visited, a new one by itself; random moments under load come on top.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Final

import pytest
from campaign import Campaign, Tally, role_of
from live import await_true, serving

from muster.ports.failpoint import FAILPOINTS

PASSES: Final = 4
ON_THE_WAY_OUT: Final = "leader.after_snapshot"
JOBS_MIN: Final = 12
RANDOM_KILLS: Final = 12
SOAK_KILLS: Final = 200
CAPACITY: Final = "gpus=8,cpus=64,memory=64Gi"


@pytest.mark.slow
@pytest.mark.parametrize("point", FAILPOINTS)
def test_death_at_every_failpoint_loses_nothing(point: str, tmp_path: Path) -> None:
    with serving(tmp_path / "home", CAPACITY) as live, Campaign(live, tmp_path) as campaign:
        campaign.begin()
        _die_at(campaign, point)
        live.muster("up")
        before = len(campaign.load.acknowledged)
        await_true(lambda: len(campaign.load.acknowledged) >= before + JOBS_MIN, "work goes on after the death")
        tally = campaign.finish()
    assert tally.acknowledged >= JOBS_MIN


def _die_at(campaign: Campaign, point: str) -> None:
    live = campaign.live
    process = campaign.arm(point, 1 if point == ON_THE_WAY_OUT else PASSES)
    if process is None:
        await_true(lambda: live.find_pid("supervisor") is not None, "an armed supervisor is up")
        pid = live.find_pid("supervisor")
        await_true(lambda: live.find_pid("supervisor") != pid, f"the supervisor died at {point}")
        live.kill("leader")  # it would arm every supervisor that it starts
        live.kill("supervisor")
        return
    if point == ON_THE_WAY_OUT:
        acknowledged = len(campaign.load.acknowledged)
        await_true(lambda: len(campaign.load.acknowledged) > acknowledged, "the armed leader works")
        process.send_signal(signal.SIGTERM)
    assert process.wait(120) == -signal.SIGKILL, f"{role_of(point)} did not die at {point}"


@pytest.mark.slow
def test_random_deaths_under_load_lose_nothing(tmp_path: Path) -> None:
    _strike_at_random(tmp_path, RANDOM_KILLS, seed=1)


@pytest.mark.soak
def test_two_hundred_random_deaths_lose_nothing(tmp_path: Path) -> None:
    tally = _strike_at_random(tmp_path, SOAK_KILLS, seed=2, pace_s=0.2)
    print(f"\n{SOAK_KILLS} strikes: {tally}")


def _strike_at_random(place: Path, strikes: int, seed: int, pace_s: float = 0.02) -> Tally:
    dice = random.Random(seed)
    with serving(place / "home", CAPACITY) as live, Campaign(live, place, pace_s) as campaign:
        campaign.begin()
        for _ in range(strikes):
            campaign.strike(dice)
        return campaign.finish()
