"""Claims: places that are being freed for one job that waits. While a claim stands, nobody else gets anything there."""

from __future__ import annotations

from collections.abc import Iterator

from muster.model.phase import Lease
from muster.model.record import Record


class Claim(Record, frozen=True):
    """The leases that a job is to have once whoever holds them is gone. It is given up at the instant `until`. `ticket`
    is its number among all who were given places, or a claim on them. If others were moved for it, `gain` and `cost`
    are the account of that: thousandths of devices times milliseconds. If it is for tasks of an array that move, each
    lease is for one of the `movers`, which stays as old as it was by its own one of the `tickets`."""

    leases: tuple[Lease, ...]
    until: int
    ticket: int = 0
    gain: int = 0
    cost: int = 0
    movers: tuple[int, ...] = ()
    tickets: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """How many tasks it is for."""
        return sum(lease.tasks for lease in self.leases)

    def parts(self) -> Iterator[tuple[int, tuple[Lease, ...]]]:
        """What is claimed by one ticket: all of it, or what each has who moves."""
        if not self.movers:
            yield self.ticket, self.leases
        for ticket, lease in zip(self.tickets, self.leases, strict=False):
            yield ticket, (lease,)

    def after(self, ticket: int) -> list[Lease]:
        """What of it is claimed by later tickets."""
        return [lease for mine, leases in self.parts() if mine > ticket for lease in leases]
