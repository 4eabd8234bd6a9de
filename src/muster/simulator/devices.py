"""Troubles with devices: one falls off the bus while its node runs on, or is missing after a reboot, or a node calls
one by an id that is another node's. Each ends after hours, when somebody has looked at the machine.

Seeded, by dice of their own, like all troubles; without a look at what runs there.
"""

from __future__ import annotations

import random

from muster.simulator.agenda import Agenda
from muster.simulator.engine import SimulatedEngine
from muster.simulator.faults import Troubles
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS


class DeviceFaults(Troubles):
    """Devices that fail, or are told twice."""

    def __init__(self, agenda: Agenda, engine: SimulatedEngine, nodes: list[str], dice: random.Random) -> None:
        super().__init__(agenda, nodes, dice)
        self._engine = engine
        self._own = {name: engine.ids_of(name) for name in nodes}

    def _strike(self, name: str) -> None:
        way = self._dice.choice((self._fall_off, self._miss, self._double))
        if self._engine.is_healthy(name) and self._own[name]:
            self.count += 1
            way(name, self._dice.randrange(len(self._own[name])))
            self._agenda.after(self._dice.randrange(MINUTE_MS, 8 * HOUR_MS), self._mend, name)

    def _fall_off(self, name: str, device: int) -> None:
        self._engine.lose_device(name, device)

    def _miss(self, name: str, device: int) -> None:
        trouble = self._engine.crash(name)
        self._engine.lose_device(name, device)
        self._agenda.after(self._dice.randrange(10 * SECOND_MS, 10 * MINUTE_MS), self._bring_back, name, trouble)

    def _double(self, name: str, device: int) -> None:
        other = self._own[self._dice.choice(self._nodes)]
        alias = other[self._dice.randrange(len(other))] if other else ""
        if alias and alias not in self._engine.ids_of(name):
            self._engine.rename_device(name, device, alias)

    def _mend(self, name: str) -> None:
        self._engine.mend_devices(name, self._own[name])

    def _bring_back(self, name: str, trouble: int) -> None:
        if self._engine.is_same_trouble(name, trouble):
            self._engine.bring_back(name)
