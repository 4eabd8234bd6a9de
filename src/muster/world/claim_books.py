"""The auditor's books of claims: who is to have which places, what that keeps from others and counts in the quota.

Kept from the facts alone, beside the books of places and of quota; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from muster.model.claim import Claim
from muster.model.node import Lack
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.world.books import JobBook
from muster.world.law import require
from muster.world.quota_books import Plot, QuotaBooks

Plots: TypeAlias = Sequence[tuple[Plot, int]]


class ClaimBooks:
    """`claims` by job, each with the spec of the job and the plots that it counts on."""

    def __init__(self, quota: QuotaBooks) -> None:
        self.claims: dict[int, Claim] = {}
        self._quota = quota
        self._specs: dict[int, Spec] = {}
        self._plots: dict[int, Plots] = {}
        self._owed: dict[int, None] = {}

    def claim(self, job: int, spec: Spec, claim: Claim, plots: Plots) -> None:
        """A job claims places; they count as held."""
        if job in self.claims:
            self.drop(job)
        self._owed.pop(job, None)
        self.claims[job], self._specs[job], self._plots[job] = claim, spec, plots
        self._quota.claim(spec, plots, 1)

    def owe(self, job: int, has_places: bool) -> None:
        """A gang is broken: it keeps what is left of its places, if anything is."""
        if has_places:
            self._owed[job] = None

    def drop(self, job: int) -> list[int]:
        """It claims nothing any more: the slots that it did."""
        claim = self.claims.pop(job, None)
        require(claim is not None, "only a claim that stands is dropped", f"job {job}")
        self._quota.claim(self._specs.pop(job), self._plots.pop(job), -1)
        return [] if claim is None else [lease.slot for lease in claim.leases]

    def on(self, slot: int) -> list[int]:
        """The jobs that claim something of a node."""
        return [job for job, claim in self.claims.items() if any(lease.slot == slot for lease in claim.leases)]

    def replot(self, job: int, plots: Plots) -> None:
        """The nodes of a claim are others now, and so is what it counts as."""
        self._quota.claim(self._specs[job], self._plots[job], -1)
        self._plots[job] = plots
        self._quota.claim(self._specs[job], plots, 1)

    def missing(self, slot: int, lack: Lack) -> Lack:
        """What of a node nobody may have: what it lacks, and what is claimed."""
        devices, amount = lack.devices, lack.amount
        for job in self.on(slot):
            for lease in self.claims[job].leases:
                if lease.slot == slot:
                    devices |= lease.devices
                    amount = amount.plus(self._specs[job].ask.times(lease.tasks))
        return Lack(devices, amount)

    def check_claimants(self, jobs: Mapping[int, JobBook]) -> None:
        """Whoever has a claim waits for it, and is not held; a broken gang has one on what is left."""
        require(not self._owed, "a broken gang keeps what is left", f"jobs {list(self._owed)}")
        for number in self.claims:
            book = jobs.get(number)
            waits = book is not None and TaskPhase.QUEUED in (book.phase, *book.phases) and not book.held
            require(waits, "whoever has a claim waits", f"job {number}")

    def check_seat(self, job: int, slot: int, devices: int) -> None:
        """Whoever gets devices gets none that somebody else claims."""
        for rival in self.on(slot):
            leases = self.claims[rival].leases
            clash = rival != job and any(lease.slot == slot and lease.devices & devices for lease in leases)
            require(not clash, "what is claimed goes to nobody else", f"job {job} on slot {slot}, of job {rival}")
