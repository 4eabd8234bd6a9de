"""Feeds: an admin who puts nodes behind a power feed for a while, with less of it than they could take. From one seed.

They cut across racks, a node may be behind both, and halfway the budget falls below what may be running then.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from muster.model.event import DropOverlay, Event, SetFlavor, SetOverlay
from muster.model.node import Flavor
from muster.model.overlay import POWER, Overlay
from muster.model.tenant import GPU
from muster.simulator.agenda import Agenda
from muster.simulator.faults import Troubles
from muster.simulator.load import PRICE_MICROS
from muster.simulator.options import SimOptions
from muster.units import HOUR_MS, MINUTE_MS

NAMES: Final = ("feed-a", "feed-b")
CORE_WATTS: Final = 5


class Feeds(Troubles):
    """Sets an overlay, lowers its budget, and removes it."""

    def __init__(
        self,
        agenda: Agenda,
        take: Callable[[Event], None],
        options: SimOptions,
        nodes: list[str],
        dice: random.Random,
    ) -> None:
        super().__init__(agenda, list(NAMES), dice)
        self._take = take
        self._gpus = options.gpus
        self._members = nodes

    def _strike(self, name: str) -> None:
        dice, self.count = self._dice, self.count + 1
        watts = dice.choice((400, 700))
        flavor = Flavor(GPU, price_micros=PRICE_MICROS, watts=watts, core_watts=CORE_WATTS)
        self._take(SetFlavor(GPU, flavor, cause="admin"))
        members = tuple(dice.sample(self._members, dice.randint(1, len(self._members))))
        peak, span = len(members) * self._gpus * watts, dice.randrange(10 * MINUTE_MS, 6 * HOUR_MS)
        budget = peak * dice.randint(2, 10) // 10
        self._take(SetOverlay(name, Overlay(POWER, budget, members), cause="admin"))
        self._agenda.after(span // 2, self._take, SetOverlay(name, Overlay(POWER, budget // 2, members), cause="admin"))
        self._agenda.after(span, self._take, DropOverlay(name, cause="admin"))
