"""Appointments: teams that book nodes, hand in jobs for them, and now and then change their mind. From one seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from muster.model.booking import Booking, Window
from muster.model.event import CancelBooking, Event, Reserve, Submit
from muster.model.spec import Needs, Spec
from muster.simulator.agenda import Agenda
from muster.simulator.faults import Troubles
from muster.simulator.options import SimOptions
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources

JOBS: Final = 4
"""How many jobs come for a booking."""


class Appointments(Troubles):
    """Somebody books a node or a few, for soon or for later, for once or for some days."""

    def __init__(self, agenda: Agenda, take: Callable[[Event], None], options: SimOptions, dice: random.Random) -> None:
        super().__init__(agenda, [f"team-{number}" for number in range(options.tenants)], dice)
        self._take = take
        self._options = options

    def _strike(self, name: str) -> None:
        dice, self.count = self._dice, self.count + 1
        opens_at = self._agenda.now + dice.randrange(MINUTE_MS, 8 * HOUR_MS)
        span = dice.randrange(10 * MINUTE_MS, 4 * HOUR_MS)
        times = dice.choice((1, 1, 1, 3))
        windows = [Window(at, at + span) for at in range(opens_at, opens_at + times * DAY_MS, DAY_MS)]
        nodes = dice.randrange(1, max(2, self._options.nodes // 8))
        called = f"{name}-{self.count}"
        within = dice.choice(("", "", "rack"))
        booking = Booking(called, name, nodes, tuple(windows), within=within, shared=dice.random() < 0.3)
        self._take(Reserve(booking, dice.choice((0, 0, 6 * HOUR_MS)) if times == 1 else 0, cause=f"user of {name}"))
        for _ in range(JOBS):
            self._agenda.after(dice.randrange(12 * HOUR_MS), self._take, self._submit(name, called, nodes))
        if dice.random() < 0.3:
            self._agenda.after(dice.randrange(5 * HOUR_MS), self._take, CancelBooking(called, cause=f"user of {name}"))

    def _submit(self, tenant: str, booking: str, nodes: int) -> Submit:
        """A job for a booking; if there is none of that name by then, it is refused."""
        dice, gpus = self._dice, self._options.gpus
        whole = dice.random() < 0.5
        spec = Spec(
            command=("simulate", str(dice.choice((MINUTE_MS, 20 * MINUTE_MS, 2 * HOUR_MS)) // self._options.pace)),
            name="booked",
            tenant=tenant,
            gang=nodes if whole else 1,
            array=0 if whole or dice.random() < 0.7 else 5,
            ask=Resources(gpus if whole else min(1, gpus), 2000, 2**30),
            evictable=dice.random() < 0.5,
            needs=Needs(booking=booking),
        )
        return Submit(spec, cause=f"user of {tenant}")
