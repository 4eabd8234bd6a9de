"""A day of simulated time leaks nothing: once the fleet is busy, neither objects nor memory grow with time."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from muster.simulator.options import SimOptions
from muster.simulator.simulation import Simulation

HOURS: Final = 24
SETTLED: Final = 8
"""After so many hours jobs come and go at the same rate, and what stays a while is there."""
GROWTH_PCT: Final = 1
PAGE: Final = 4096


class Sample(NamedTuple):
    """What is there at a full hour."""

    objects: int
    rss_mb: float
    jobs: int


def _look(simulation: Simulation) -> Sample:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Sample(len(gc.get_objects()), pages * PAGE / 2**20, len(simulation.body.world.jobs))


def _run_a_day(nodes: int, hours: int) -> list[Sample]:
    options = SimOptions(nodes=nodes, days=hours / 24, seed=5, inspect_every=10**9, drain=False)
    simulation, samples = Simulation(options), []
    go_on = simulation._go_on

    def stop_and_look(until: int, progress: object) -> None:
        go_on(until, None)
        samples.append(_look(simulation))

    simulation._go_on = stop_and_look  # type: ignore[method-assign]  # it is called once an hour
    simulation.run()
    return samples


@pytest.mark.soak
def test_a_day_of_simulated_time_leaks_nothing() -> None:
    samples = _run_a_day(nodes=128, hours=HOURS)
    print("\n" + "\n".join(f"hour {hour}: {sample}" for hour, sample in enumerate(samples, 1)))
    _check_flat(samples[SETTLED:])


def _check_flat(samples: list[Sample]) -> None:
    """After the beginning, the last third is no larger than the first."""
    third = len(samples) // 3
    for field in ("objects", "rss_mb"):
        early = max(getattr(sample, field) for sample in samples[:third])
        late = max(getattr(sample, field) for sample in samples[-third:])
        assert late <= early * (100 + GROWTH_PCT) / 100, f"{field} grew from {early} to {late}"


def test_a_leak_would_be_seen() -> None:
    leaking = [Sample(100_000 + 2000 * hour, 100.0, 500) for hour in range(16)]
    with pytest.raises(AssertionError, match="objects grew"):
        _check_flat(leaking)
