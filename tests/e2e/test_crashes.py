"""Nothing acknowledged is lost, nothing is accepted twice, running work is adopted: whoever dies, and whenever.

Every named failpoint is visited, a new one by itself, while there is nothing to do, under load, and while the server
recovers from a death; random moments under load come on top. One server sees many deaths.
"""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest
from campaign import Campaign, Tally, role_of
from live import await_true, serving

from muster.ports.failpoint import FAILPOINTS

PASSES: Final = 4
STATES: Final = ("idle", "loaded", "recovering")
ON_THE_WAY_OUT: Final = "leader.after_snapshot"
RANDOM_DEATHS: Final = 200
SOAK_DEATHS: Final = 2000
DEATHS_PER_SERVER: Final = 200
"""Then another one begins, so that no campaign's books are longer than it takes to compare them."""
CAPACITY: Final = "gpus=8,cpus=64,memory=64Gi"


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_death_at_every_failpoint_loses_nothing(state: str, tmp_path: Path) -> None:
    with serving(tmp_path / "home", CAPACITY) as live, Campaign(live, tmp_path, pace_s=0.1) as campaign:
        campaign.begin(is_loaded=state != "idle")
        for point in FAILPOINTS:
            _die_at(campaign, point, state)
            live.muster("up")
        before = len(campaign.load.acknowledged)
        campaign.load.provoke().join()
        assert len(campaign.load.acknowledged) > before, "work does not go on after the deaths"
        campaign.finish()


def _die_at(campaign: Campaign, point: str, state: str) -> None:
    load = campaign.load
    passes = PASSES if state == "loaded" and point != ON_THE_WAY_OUT else 1
    process = campaign.arm(point, passes, is_recovering=state == "recovering")
    if process is None:
        _await_death_of_supervisor(campaign, point)
        return
    if point == ON_THE_WAY_OUT:
        provoked = load.provoke()  # its key is new: the follower cannot answer it from the journal
        await_true(lambda: not provoked.is_alive(), "the armed leader works")
        process.send_signal(signal.SIGTERM)
    elif state != "loaded":
        load.provoke()
    try:
        code = process.wait(60)
    except subprocess.TimeoutExpired:
        code = 0
    assert code == -signal.SIGKILL, f"{role_of(point)} did not die at {point}, {state}: {code}\n{campaign.evidence()}"


def _await_death_of_supervisor(campaign: Campaign, point: str) -> None:
    live = campaign.live
    await_true(lambda: live.find_pid("supervisor") is not None, "an armed supervisor is up")
    pid = live.find_pid("supervisor")
    campaign.load.provoke()
    await_true(lambda: live.find_pid("supervisor") != pid, f"the supervisor died at {point}")
    live.kill("leader")  # it would arm every supervisor that it starts
    live.kill("supervisor")


@pytest.mark.slow
def test_two_hundred_random_deaths_lose_nothing(tmp_path: Path) -> None:
    _die_at_random(tmp_path, RANDOM_DEATHS, seed=1)


@pytest.mark.soak
def test_two_thousand_random_deaths_lose_nothing(tmp_path: Path) -> None:
    done = 0
    while done < SOAK_DEATHS:
        place = tmp_path / f"{done}"
        place.mkdir()
        died, tally = _die_at_random(place, min(DEATHS_PER_SERVER, SOAK_DEATHS - done), seed=2 + done)
        done += died
        print(f"\n{done} deaths: {tally}", flush=True)


def _die_at_random(place: Path, deaths: int, seed: int) -> tuple[int, Tally]:
    dice, died = random.Random(seed), 0
    with serving(place / "home", CAPACITY) as live, Campaign(live, place, pace_s=0.15) as campaign:
        campaign.begin()
        while died < deaths:
            died += campaign.strike(dice)
        return died, campaign.finish()
