"""Maintenance is seeded, bars nodes in every way there is, and ends whatever it began."""

from __future__ import annotations

import random

from muster.model.event import BarNode, Event, UnbarNode
from muster.model.job import BarKind
from muster.simulator.agenda import Agenda
from muster.simulator.faults import CREWS, Maintenance
from muster.units import DAY_MS

NODES = ["n0", "n1", "n2"]


def events_of(seed: int, rate: float = 5000) -> list[tuple[int, Event]]:
    agenda = Agenda()
    seen: list[tuple[int, Event]] = []
    crews = Maintenance(agenda, lambda event: seen.append((agenda.now, event)), NODES, random.Random(seed))
    crews.begin(rate, 10 * DAY_MS)
    agenda.jump(20 * DAY_MS)
    assert crews.count == sum(isinstance(event, BarNode) for _, event in seen)
    return seen


def test_the_same_seed_gives_the_same_bars_and_another_seed_others() -> None:
    assert events_of(1) == events_of(1) != events_of(2)
    assert events_of(1, rate=0) == []


def test_every_bar_ends() -> None:
    seen = events_of(3)
    lifted = {(item.name, item.kind, item.owner): at for at, item in seen if isinstance(item, UnbarNode)}
    for at, item in seen:
        if isinstance(item, BarNode) and item.until is None:
            assert lifted[(item.name, item.kind, item.owner)] > at
        elif isinstance(item, BarNode):
            assert item.until is not None
            assert item.until > at


def test_every_way_to_bar_comes_up_and_a_cordon_lets_finish() -> None:
    bars = [item for _, item in events_of(4) if isinstance(item, BarNode)]
    assert {item.owner for item in bars} == set(CREWS)
    assert {(item.kind, item.lets_finish) for item in bars} == {
        (BarKind.CORDON, True),
        (BarKind.DRAIN, True),
        (BarKind.DRAIN, False),
    }
    assert {item.until is None for item in bars} == {True, False}
