"""Claims: places that are being freed for one job that waits. While a claim stands, nobody else gets anything there."""

from __future__ import annotations

from muster.model.phase import Lease
from muster.model.record import Record


class Claim(Record, frozen=True):
    """The leases that a job is to have once whoever holds them is gone. It is given up at the instant `until`. `ticket`
    is its number among all who were given places, or a claim on them. If others were moved for it, `gain` and `cost`
    are the account of that: thousandths of devices times milliseconds."""

    leases: tuple[Lease, ...]
    until: int
    ticket: int = 0
    gain: int = 0
    cost: int = 0

    @property
    def width(self) -> int:
        """How many tasks it is for."""
        return sum(lease.tasks for lease in self.leases)
