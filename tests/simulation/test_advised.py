"""Run times are learned beside a simulated fleet, with faults, and every law holds of a kernel that goes by them."""

from __future__ import annotations

from collections.abc import Sequence

from muster.kernel.kernel import Outcome
from muster.learning.foretelling import PAUSE_MS, RuntimeAdviser
from muster.model.event import Event
from muster.simulator.options import SimOptions
from muster.simulator.report import Report
from muster.simulator.simulation import Simulation


class Beside:
    """An adviser beside a simulation; it is asked every ten seconds at most, as one beside a follower is."""

    def __init__(self, simulation: Simulation) -> None:
        self.adviser = RuntimeAdviser()
        self.most_told = 0
        self._body = simulation.body
        self._asks_at = 0
        simulation.body.observers.append(self.observe)

    def observe(self, outcome: Outcome, batch: Sequence[Event]) -> None:
        world = self._body.world
        self.adviser.observe(world, outcome.facts)
        self.most_told = max(self.most_told, len(world.ends.told))
        if outcome.at >= self._asks_at:
            self._asks_at = outcome.at + PAUSE_MS
            for word in self.adviser.advise(world, outcome.at):
                self._body.take(word)


def simulate(seed: int) -> tuple[Report, Beside]:
    options = SimOptions(nodes=8, days=0.2, seed=seed, load=1.1, pace=8, inspect_every=211)
    simulation = Simulation(options)
    beside = Beside(simulation)
    return simulation.run(), beside


def test_all_laws_hold_of_a_fleet_whose_run_times_are_learned_and_the_same_seed_decides_the_same() -> None:
    report, beside = simulate(seed=3)
    assert report.outcomes["succeeded"] > 50
    assert beside.adviser.words > 10
    assert beside.most_told > 5
    assert not beside.adviser.learned.hazards._live, "whoever is over is followed no longer"
    again, _ = simulate(seed=3)
    assert report.journal_hash == again.journal_hash
