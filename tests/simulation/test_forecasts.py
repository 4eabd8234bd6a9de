"""Forecasts are tested against what happened: in a simulated history, foretold spans hold about four times in five."""

from __future__ import annotations

from bench.forecast import play
from muster.units import DAY_MS


def test_jobs_start_when_they_were_foretold_to() -> None:
    sides = [each.side for named in (1.0, 0.0) for each in play(2, named, DAY_MS)]
    assert len(sides) >= 20
    assert sides.count(0) >= 0.7 * len(sides), f"{sides.count(-1)} early and {sides.count(1)} late of {len(sides)}"
