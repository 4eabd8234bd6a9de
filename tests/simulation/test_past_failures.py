"""Storms in which a law was broken once; what was wrong is said beside each."""

from __future__ import annotations

from typing import Any

import pytest

from muster.simulator.options import SimOptions
from muster.simulator.simulation import run_simulation

TROUBLE: dict[str, Any] = {
    "pace": 4, "lost": 100, "doubled": 300, "failures": 0.25, "cancels": 0.15, "tenants": 3, "inspect_every": 25,
    "bookings": 8000,
}  # fmt: skip
BARS = {"nodes": 8, "days": 0.15, "load": 1.2, "maintenance": 20_000, "faults": 500, "device_faults": 4000}
CROWD = {"nodes": 16, "days": 0.2, "load": 1.6, "maintenance": 300, "faults": 300, "device_faults": 300}

STORM = {
    "nodes": 16, "days": 0.4, "faults": 2000, "maintenance": 900, "device_faults": 200, "bookings": 3000, "pace": 1,
    "lost": 50, "doubled": 100, "failures": 0.08, "cancels": 0.04, "tenants": 6, "inspect_every": 100,
}  # fmt: skip


@pytest.mark.parametrize(
    ("weather", "seed"),
    [
        pytest.param(BARS, 10, id="what a gang grew by was not looked at by those who wait"),
        pytest.param(CROWD, 11, id="the extra part of a gang that was taken whole came back for the next plan"),
        pytest.param(
            *(BARS, 125),
            id="a gang of which all was over on a booked node was not told to leave it",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *({**CROWD, "nodes": 8, "lost": 500}, 224),
            id="what a gang kept was not in the recount of shadows",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(CROWD, 51),
            id="a gang that was begun anew did not look who had come to what it kept",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(STORM, 500_095),
            id="a node was not what it had said when its spare had left it",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(STORM, 500_297),
            id="a job that needs more than a period of its budget never ended",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(STORM, 500_327),
            id="who may be helped by moves was told by a try that a restored world had not made",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_no_law_is_broken_any_more(weather: dict[str, Any], seed: int) -> None:
    assert run_simulation(SimOptions(seed=seed, **{**TROUBLE, **weather})).accepted
