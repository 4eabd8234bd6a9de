"""Sharing: how a tier orders its jobs by an index, and lets them take turns on the same places.

    arrival     nobody goes before who came earlier
    attained    who got the least service so far goes first; in steps, so that equals do not chase each other
    narrow      the same, and of equals the one that asks for fewer devices
    advised     as an adviser says, job by job (the advice `index`)
    remaining   who has the least left to run, of what an adviser says that it runs in all
    service     the same, times the devices that it holds meanwhile

A lower index goes first. Of whom no adviser spoke, attained service is all that is known. With a quantum, a better
index takes places from a worse one that had them for at least so long; without one, nobody is stopped. What runs counts
with `keep_milli` of its index, and less with each time that it was stopped for others. A job is *owed* when it waited
for `owed_after_ms`, and for `owed_times` the service that it got: those go first, on `owed_milli` of the places, until
they got `credit_ms` more than that. An adviser may say that all have to wait for longer here, before anybody is owed.
"""

from __future__ import annotations

from typing import Final

from muster.model.record import Record
from muster.units import HOUR_MS, Limit

ARRIVAL: Final = "arrival"
ATTAINED: Final = "attained"
NARROW: Final = "narrow"
ADVISED: Final = "advised"
REMAINING: Final = "remaining"
SERVICE: Final = "service"
INDEXES: Final = (ARRIVAL, ATTAINED, NARROW, ADVISED, REMAINING, SERVICE)
STEPS_MAX: Final = 64
MILLI: Final = 1000


class Sharing(Record, frozen=True):
    """One way to share. `steps` are amounts of service, in device-milliseconds: with any, attained service counts by
    how many of them it passed; with none, by a grid that grows by half octaves, or, if the narrow go first, by powers
    of ten of a device-hour."""

    index: str = ATTAINED
    quantum_ms: Limit = None
    keep_milli: int = 500
    tire_milli: int = 900
    steps: tuple[int, ...] = ()
    owed_after_ms: Limit = None
    owed_times: int = 10
    owed_milli: int = 250
    credit_ms: int = 4 * HOUR_MS
