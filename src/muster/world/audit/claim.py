"""The auditor's books of claims: who is to have which places, what that keeps from others and counts in the quota.

Kept from the facts alone, beside the books of places and of quota; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec.structs import astuple

from muster.model import fact
from muster.model.claim import Claim
from muster.model.node import Lack
from muster.model.partition import devices_in, slots_in
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.model.tier import EVICTIONS_MAX
from muster.units import DAY_MS, MINUTE_MS, Resources
from muster.world.audit.books import JobBook
from muster.world.audit.group import Seat, cut
from muster.world.audit.quota import Held, Plot, QuotaBooks
from muster.world.laws.law import require

SERVED, TURN = "served", "its turn"
"""Why a claim is over, and what it is for, as the facts say it."""
LATE_MS: Final = MINUTE_MS
LEFT_MS: Final = 10 * MINUTE_MS
"""How much longer than the longest grace a claim stands at most, and for how long one on what is left of a gang."""
FindPlots: TypeAlias = Callable[[Sequence[tuple[int, int]]], Sequence[tuple[Plot, int]]]
"""What places count for, as (slot, tasks)."""


class ClaimBooks:
    """`claims` by job, each with the spec of the job, and by group with the plots that it counts on."""

    def __init__(self, quota: QuotaBooks) -> None:
        self.claims: dict[int, Claim] = {}
        self._quota = quota
        self._specs: dict[int, Spec] = {}
        self._held: dict[int, list[Held]] = {}
        self._owed: dict[int, list[tuple[int, int]]] = {}
        self._took: dict[int, list[int]] = {}
        self._served: dict[int, None] = {}

    def check(self, item: fact.Claimed, at: int, jobs: Mapping[int, JobBook]) -> None:
        """A claim ends by itself; and whoever stops others again and again does so more and more rarely, unless it is
        its turn."""
        longest = max(LEFT_MS, *(book.spec.grace_ms + LATE_MS for book in jobs.values()))
        soon = at < item.until <= at + longest
        require(soon, "a claim has an end to come, and soon", f"job {item.job}: {item.until} at {at}")
        if item.victims:
            self._take(item.job, at, is_turn=item.cause == TURN)

    def _take(self, job: int, at: int, *, is_turn: bool) -> None:
        lately = [taken for taken in self._took.get(job, ()) if taken > at - DAY_MS][-EVICTIONS_MAX:]
        if len(lately) > 1 and not is_turn:
            self.check_backing_off(job, lately, at)
        self._took[job] = [*lately, at]

    def check_backing_off(self, job: int, lately: list[int], at: int) -> None:
        """After two times in a day it takes a minute until the next, and twice as long each time after it."""
        again_at = lately[-1] + (MINUTE_MS << len(lately) - 2)
        require(at >= again_at, "a job that takes again and again backs off", f"job {job}: {lately} and {at}")

    def claim(self, job: int, spec: Spec, claim: Claim, find_plots: FindPlots) -> None:
        """A job claims places; they count as held."""
        if job in self.claims:
            self.drop(job)
        spares = self._owed.pop(job, [])
        kept = {lease.slot for lease in claim.leases}.issuperset(slot for slot, _ in spares)
        require(kept, "a broken gang keeps its spares", f"job {job}: slots {spares}")
        self.claims[job], self._specs[job] = claim, spec
        self._count(job, find_plots)

    def _count(self, job: int, find_plots: FindPlots) -> None:
        """What a job claims counts as held, group by group."""
        parts = self._parts(job)
        self._held[job] = [(spec, find_plots([(slot, tasks) for slot, tasks, _ in seats])) for spec, seats in parts]
        for held in self._held[job]:
            self._quota.claim(*held, 1)

    def _uncount(self, job: int) -> None:
        for held in self._held.pop(job):
            self._quota.claim(*held, -1)

    def _parts(self, job: int) -> list[tuple[Spec, list[Seat]]]:
        """What a job claims, by group."""
        return cut(job, self._specs[job], [astuple(lease) for lease in self.claims[job].leases])

    def owe(self, job: int, places: list[tuple[int, int]], spares: list[tuple[int, int]]) -> None:
        """A gang is broken: it keeps what is left of its places and its spares, if anything is: so many on slots."""
        if places or spares:
            self._owed[job] = spares

    def spares_owed(self, job: int) -> int:
        """How many spares a broken gang keeps."""
        return sum(tasks for _, tasks in self._owed.get(job, ()))

    def serve(self, job: int) -> None:
        """What a job claimed is its own now: it may be all of it, or what is left."""
        self._served[job] = None

    def is_served(self, job: int) -> bool:
        """Whether a job starts by a claim, and not with all that it asked for."""
        return self._served.pop(job, False) is None

    def is_owed(self, job: int) -> bool:
        """Whether a gang is to keep what is left of its places, and has not got it yet."""
        return job in self._owed

    def is_whole(self, job: int) -> bool:
        """Whether the claim of a job is for all of a gang, or for tasks of an array: not for what is left of one."""
        return bool(self._specs[job].array) or self.claims[job].width >= self._specs[job].gang

    def drop(self, job: int) -> list[int]:
        """It claims nothing any more: the slots that it did."""
        require(job in self.claims, "only a claim that stands is dropped", f"job {job}")
        self._uncount(job)
        del self._specs[job]
        return [lease.slot for lease in self.claims.pop(job).leases]

    def forget(self, job: int) -> None:
        """A job is gone: it takes nothing any more."""
        self._took.pop(job, None)

    def after(self, ticket: int) -> list[Held]:
        """What is claimed by later tickets."""
        later = [job for job, claim in self.claims.items() if not claim.movers and claim.ticket > ticket]
        return [held for job in later for held in self._held[job]]

    def movers_after(self, ticket: int) -> list[tuple[Spec, list[tuple[int, int]]]]:
        """What is claimed for tasks that move and have later tickets, as (slot, tasks)."""
        moving = {job: claim.after(ticket) for job, claim in self.claims.items() if claim.movers}
        return [(self._specs[job], [(lease.slot, lease.tasks) for lease in leases]) for job, leases in moving.items()]

    def on(self, slot: int) -> list[int]:
        """The jobs that claim something of a node."""
        return [job for job, claim in self.claims.items() if any(lease.slot == slot for lease in claim.leases)]

    def replot(self, job: int, find_plots: FindPlots) -> None:
        """The nodes of a claim are others now, and so is what it counts as."""
        self._uncount(job)
        self._count(job, find_plots)

    def missing(self, slot: int, lack: Lack) -> Lack:
        """What of a node nobody may have: what it lacks, and what is claimed."""
        devices, amount = lack.devices, lack.amount
        for job in self.on(slot):
            for spec, seats in self._parts(job):
                for _, tasks, named in (seat for seat in seats if seat[0] == slot):
                    devices |= devices_in(named)
                    amount = amount.plus(spec.ask.times(tasks))
        return Lack(devices, amount)

    def check_claimants(self, jobs: Mapping[int, JobBook]) -> None:
        """Whoever has a claim waits for it, or moves there, and is not held; a broken gang has one on what is left."""
        require(not self._owed, "a broken gang keeps what is left", f"jobs {list(self._owed)}")
        for number in self.claims:
            book = jobs.get(number)
            phases = () if book is None or book.held else (book.phase, *book.phases)
            moves = book is not None and (book.is_moving or book.are_moving(self.claims[number].movers))
            waits = TaskPhase.QUEUED in phases or (moves and bool(phases))
            require(waits, "whoever has a claim waits", f"job {number}")

    def check_seat(self, job: int, ask: Resources, slot: int, tasks: int, devices: int) -> None:
        """Whoever gets devices gets none that somebody else claims; of one that is shared, it leaves them theirs."""
        mine, left = devices_in(devices), 1000 - ask.gpu_milli * tasks
        for rival in self.on(slot):
            share = self._specs[rival].ask.gpu_milli
            for lease in self.claims[rival].leases:
                if rival != job and lease.slot == slot and devices_in(lease.devices) & mine:
                    left -= share * lease.tasks
                    is_shared = share and ask.gpu_milli and not slots_in(lease.devices) & slots_in(devices)
                    fits = bool(is_shared) and left >= 0
                    require(fits, "what is claimed goes to nobody else", f"job {job} on slot {slot}, of job {rival}")
