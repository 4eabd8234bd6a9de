"""A fleet with bookings and faults: windows open and close to the millisecond, and nobody is in the way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muster.kernel.kernel import Outcome
from muster.model import fact
from muster.model.event import Event
from muster.simulator.options import SimOptions
from muster.simulator.simulation import Simulation


class Diary:
    """When windows were to open and close, and when they did; and when jobs of a booking got their places."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._plans: dict[str, list[tuple[int, int]]] = {}
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.short = 0
        self.started_at_once = 0
        simulation.body.observers.append(self.observe)

    def observe(self, outcome: Outcome, batch: Sequence[Event]) -> None:
        opened = False
        for item in outcome.facts:
            if isinstance(item, fact.Booked):
                windows = item.booking.windows
                self._plans[item.booking.name] = [(window.opens_at, window.closes_at) for window in windows]
            elif isinstance(item, fact.WindowOpened):
                self.opened.append(outcome.at - self._plans[item.booking][0][0])
                opened = True
            elif isinstance(item, fact.WindowClosed):
                self.closed.append(outcome.at - self._plans[item.booking].pop(0)[1])
            elif isinstance(item, fact.WindowMoved):
                self.short += 1
            elif isinstance(item, fact.Placed) and opened:
                jobs = [self._simulation.body.world.jobs[number] for number in item.jobs]
                self.started_at_once += sum(bool(job.spec.needs.booking) for job in jobs)


@pytest.mark.parametrize("seed", range(2))
def test_windows_open_and_close_to_the_millisecond(seed: int) -> None:
    options = SimOptions(nodes=16, days=0.5, seed=seed, faults=2000, maintenance=2000, bookings=6000)
    simulation = Simulation(options)
    diary = Diary(simulation)
    report = simulation.run()
    assert len(diary.opened) > 5
    assert not any(diary.opened)
    assert not any(diary.closed)
    assert diary.short, "nodes were lost, and windows got others or said that they are short"
    assert diary.started_at_once, "jobs start in the moment in which their window opens"
    assert report.goodput["booked_idle"] > 0
