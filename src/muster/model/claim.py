"""Claims: places that are being freed for one job that waits. While a claim stands, nobody else gets anything there."""

from __future__ import annotations

from muster.model.phase import Lease
from muster.model.record import Record


class Claim(Record, frozen=True):
    """The leases that a job is to have once whoever holds them is gone. It is given up at the instant `until`."""

    leases: tuple[Lease, ...]
    until: int
