"""Faults, maintenance and trials: which node fails or is barred when, how, and for how long, whatever runs there.

Three ways to fail: cut off (what runs goes on; back in minutes, or fenced), crashed (back soon, with nothing held) and
dead (fenced, repaired after hours). Maintenance cordons or drains a node for hours; some bars end by themselves. Both
are seeded, by dice of their own, so that one changes nothing about when the other comes. So are trials, in which an
admin weighs places by another profile for an hour, and an adviser has its say for the first half of it.
"""

from __future__ import annotations

import abc
import random
from collections.abc import Callable
from typing import Final

from muster.model.advice import DISTANCE, PACKING, THROUGHPUT, Advice, column_of
from muster.model.event import Advise, BarNode, Event, SetProfile, UnbarNode, UseProfile
from muster.model.job import BarKind
from muster.model.profile import DEFAULT_NAME, TERMS, Profile
from muster.simulator.agenda import Agenda
from muster.simulator.engine import SimulatedEngine
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

CREWS: Final = ("day-crew", "night-crew")
TRIAL: Final = "trial"


class Troubles(abc.ABC):
    """Plans one trouble after the other until `until`; every trouble ends, so that a run can drain."""

    def __init__(self, agenda: Agenda, nodes: list[str], dice: random.Random) -> None:
        self._agenda = agenda
        self._nodes = nodes
        self._dice = dice
        self._until = 0
        self._mean_gap_ms = 0.0
        self.count = 0

    def begin(self, per_1000_node_days: float, until: int) -> None:
        """Trouble nodes at this rate until `until`."""
        if per_1000_node_days <= 0:
            return
        self._until = until
        self._mean_gap_ms = DAY_MS * 1000 / (per_1000_node_days * len(self._nodes))
        self._plan_next()

    def _plan_next(self) -> None:
        self._agenda.after(1 + int(self._dice.expovariate(1 / self._mean_gap_ms)), self._come)

    def _come(self) -> None:
        if self._agenda.now < self._until:
            self._plan_next()
            self._strike(self._dice.choice(self._nodes))

    @abc.abstractmethod
    def _strike(self, name: str) -> None:
        """Trouble this node now."""


class Maintenance(Troubles):
    """Two crews who bar nodes, each with bars of its own; they may well want the same node."""

    def __init__(self, agenda: Agenda, take: Callable[[Event], None], nodes: list[str], dice: random.Random) -> None:
        super().__init__(agenda, nodes, dice)
        self._take = take

    def _strike(self, name: str) -> None:
        kind, owner = self._dice.choice((BarKind.CORDON, BarKind.DRAIN)), self._dice.choice(CREWS)
        lets_finish = kind == BarKind.CORDON or self._dice.random() < 0.5
        span = self._dice.randrange(MINUTE_MS, 8 * HOUR_MS)
        until = self._agenda.now + span if self._dice.random() < 0.3 else None
        self._take(BarNode(name, kind, owner, "maintenance", until, lets_finish, cause=owner))
        if until is None:
            self._agenda.after(span, self._take, UnbarNode(name, kind, owner, cause=owner))
        self.count += 1


class Trials(Troubles):
    """An admin who tries other weights for a while, with advice, and goes back to the usual ones."""

    def __init__(self, agenda: Agenda, take: Callable[[Event], None], dice: random.Random) -> None:
        super().__init__(agenda, [TRIAL], dice)
        self._take = take

    def _strike(self, name: str) -> None:
        weights = {term: self._dice.choice((0, 10, 1000, 3000)) for term in TERMS}
        self._take(SetProfile(name, Profile(**weights), cause="admin"))
        self._take(UseProfile(name, cause="admin"))
        span = self._dice.randrange(MINUTE_MS, HOUR_MS)
        self._agenda.after(span, self._take, UseProfile(DEFAULT_NAME, cause="admin"))
        self.count += 1
        until = self._agenda.now + span // 2
        self._take(Advise(PACKING, Advice(self.count, until, self._learn()), cause="adviser"))
        for kind, name in {THROUGHPUT: column_of("single", "gpu"), DISTANCE: column_of("corpus", "")}.items():
            self._take(Advise(kind, Advice(self.count, until, {name: (span,)}), cause="adviser"))

    def _learn(self) -> dict[str, tuple[int, ...]]:
        """Advice on packing that could have been learned: shares of one size and whole devices come."""
        size, often = self._dice.choice((250, 300, 500)), self._dice.randrange(1_000_000)
        return {
            "cpu_milli": (2000, 12_000),
            "memory_bytes": (8 * 2**30, 120 * 2**30),
            "gpus": (0, 2),
            "gpu_milli": (size, 0),
            "share": (often, 1_000_000 - often),
            "places": (often, 3 * often),
            "value": tuple(1000 * (left // size) // (1000 // size) for left in range(1001)),
            "on:gpu": (1_000_000 - often, often),
            "price:gpu": (often // 1000,),
        }


class Faults(Troubles):
    """Nodes that fail by themselves."""

    def __init__(self, agenda: Agenda, engine: SimulatedEngine, nodes: list[str], dice: random.Random) -> None:
        super().__init__(agenda, nodes, dice)
        self._engine = engine

    def _strike(self, name: str) -> None:
        way = self._dice.choice((self._cut_off, self._cut_off, self._crash, self._die))
        if self._engine.is_healthy(name):
            self.count += 1
            way(name)

    def _cut_off(self, name: str) -> None:
        trouble = self._engine.cut_off(name)
        span = self._dice.randrange(5 * SECOND_MS, 20 * MINUTE_MS)
        if span > 5 * MINUTE_MS and self._dice.random() < 0.5:
            self._agenda.after(5 * MINUTE_MS, self._fence, name, trouble)
        self._agenda.after(span, self._bring_back, name, trouble)

    def _crash(self, name: str) -> None:
        trouble = self._engine.crash(name)
        self._agenda.after(self._dice.randrange(10 * SECOND_MS, 10 * MINUTE_MS), self._bring_back, name, trouble)

    def _die(self, name: str) -> None:
        trouble = self._engine.crash(name)
        self._agenda.after(5 * MINUTE_MS, self._fence, name, trouble)
        self._agenda.after(self._dice.randrange(HOUR_MS, 12 * HOUR_MS), self._bring_back, name, trouble)

    def _fence(self, name: str, trouble: int) -> None:
        if self._engine.is_same_trouble(name, trouble):
            self._engine.fence(name)

    def _bring_back(self, name: str, trouble: int) -> None:
        if self._engine.is_same_trouble(name, trouble):
            self._engine.bring_back(name)
