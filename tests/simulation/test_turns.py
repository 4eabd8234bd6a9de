"""Tiers that are shared in time, under faults and a bad network: every law holds, and a planted bug is found."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

import pytest

from muster.model.errors import InvariantError
from muster.model.event import Event, SetTier
from muster.model.sharing import ATTAINED, NARROW, Sharing
from muster.model.tier import Tier
from muster.simulator.load import Load
from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation
from muster.units import HOUR_MS, MINUTE_MS
from muster.world.floors import Floors


@contextlib.contextmanager
def shared(index: str = ATTAINED) -> Iterator[None]:
    """Whoever is in no hurry takes turns."""
    opening = Load.opening

    def opening_with_turns(load: Load) -> Iterator[Event]:
        yield from opening(load)
        sharing = Sharing(index, 5 * MINUTE_MS, owed_after_ms=6 * HOUR_MS)
        yield SetTier("opportunistic", Tier(300, 2 * HOUR_MS, sharing=sharing), cause="admin")

    with mock.patch.object(Load, "opening", opening_with_turns):
        yield


def storm(seed: int, days: float) -> SimOptions:
    """A small fleet with more work than it can hold, and much trouble."""
    return SimOptions(
        nodes=8, days=days, seed=seed, load=1.2, pace=4, faults=4000, maintenance=2000, device_faults=4000, lost=100,
        doubled=300, failures=0.25, cancels=0.15, tenants=3, inspect_every=25,
    )  # fmt: skip


@pytest.mark.parametrize("index", [ATTAINED, NARROW])
def test_laws_hold_when_a_tier_is_shared(index: str) -> None:
    with shared(index):
        assert run_simulation(storm(1, 0.1)).options.seed == 1


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "index"), [(1, ATTAINED), (3, NARROW), (7, ATTAINED)])
def test_laws_hold_for_longer(seed: int, index: str) -> None:
    with shared(index):
        report = run_simulation(storm(seed, 0.5))
    assert report.accepted == sum(report.outcomes.values()) > 0


def test_who_left_and_still_counts_is_found() -> None:
    with shared(), mock.patch.object(Floors, "unseat", return_value=None), pytest.raises(InvariantError) as found:
        run_simulation(storm(0, 0.5))
    assert "floors are what the jobs and the advice say" in str(found.value)
