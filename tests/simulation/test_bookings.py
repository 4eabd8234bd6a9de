"""A fleet with bookings and faults: windows open and close to the millisecond, and nobody is in the way; nor if guests
of every kind use all of their grace."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from muster.kernel.kernel import Outcome
from muster.model import fact
from muster.model.booking import Booking, Window
from muster.model.event import Event, Reserve
from muster.model.reason import DONE
from muster.model.spec import Needs
from muster.simulator.options import SimOptions
from muster.simulator.simulation import Simulation
from muster.testing.scene import Scene
from muster.units import HOUR_MS, MINUTE_MS


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


def draw_guest(dice: random.Random) -> dict[str, Any]:
    """Somebody who may be on a node when it is booked: of any kind, with a grace up to most of an hour, and mostly in
    no hurry to go."""
    grace_ms = dice.choice((1000, 10_000, 90_000, 600_000, 3_000_000))
    fields: dict[str, Any] = {"gpus": dice.choice((1, 2, 4, 8)), "minutes": 6000, "grace_ms": grace_ms}
    fields |= {"stop_ms": 10**12} if dice.random() < 0.7 else {}
    fields |= {"limit_ms": dice.randrange(1, 400) * MINUTE_MS} if dice.random() < 0.2 else {}
    fields |= {"evictable": False} if dice.random() < 0.15 else {}
    fields |= {"tier": dice.choice(("critical", "opportunistic"))} if dice.random() < 0.2 else {}
    kinds: tuple[dict[str, Any], ...] = (
        {"gang": dice.choice((1, 1, 2, 3))},
        {"array": dice.randrange(1, 12)},
        {"gang": 2, "spares": 1, "gpus": 2},
        {"gang": 1, "gang_most": dice.randrange(2, 9), "gpus": dice.choice((1, 2)), "in_place": dice.random() < 0.5},
    )
    return fields | dice.choice(kinds)


def open_among_guests(seed: int) -> int | None:
    """Guests come, somebody books nodes, more guests come: how late the booking's own gang starts, or None if its
    nodes could not be booked."""
    dice = random.Random(f"{seed}/guests")
    nodes = dice.randrange(1, 5)
    scene, starts = Scene(seed, inspect_every=50).cluster(nodes=nodes, gpus=8), dict[int, int]()

    def note(outcome: Outcome, _: Sequence[Event]) -> None:
        placed = [job for item in outcome.facts if isinstance(item, fact.Placed) for job in item.jobs]
        starts.update((job, outcome.at) for job in placed if job not in starts)

    def come(name: str, count: int) -> None:
        for number in range(count):
            scene.job(f"{name}{number}", **draw_guest(dice)).advance(seconds=dice.choice((0, dice.randrange(200))))

    scene.body.observers.append(note)
    come("early", dice.randrange(1, 8))
    opens_at = scene.body.world.now + dice.randrange(1, 5 * HOUR_MS)
    booked = dice.randrange(1, nodes + 1)
    window = Window(opens_at, opens_at + HOUR_MS)
    if scene.body.ask(Reserve(Booking("b", "default", booked, (window,)))).answers[-1] != DONE:
        return None
    scene.job("own", gpus=8, gang=booked, minutes=5, needs=Needs(booking="b"))
    come("late", dice.randrange(8))
    scene.body.run_until(opens_at + 30 * MINUTE_MS)
    return starts[scene.number("own")] - opens_at


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (1000, 2000))])
def test_guests_that_use_all_of_their_grace_are_gone_when_a_window_opens(first: int) -> None:
    late = [open_among_guests(seed) for seed in range(first, first + (1000 if first else 100))]
    assert late.count(0) > 60
    assert set(late) <= {0, None}
