"""A stage: the places as they will be when all who were told to stop are gone and every claim has what it waits for.

On it somebody's places can be taken and given back, to see who would fit then. It changes fleet and ledger in place,
with the same primitives as everybody, and puts everything back on the way out. Queue and shares never hear of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final, NamedTuple

from muster.model.job import Job
from muster.model.node import NO_LACK, Lack
from muster.model.phase import ACTIVE, Lease, Stopping, TaskPhase
from muster.model.spec import Spec
from muster.units import MINUTE_MS
from muster.world.claiming import charge_claim
from muster.world.loans import Holding, Loans
from muster.world.tasks import spans_of
from muster.world.world import World

MARGIN_MS: Final = MINUTE_MS
"""How much longer than its grace a run may take to be gone; who takes longer is not counted on."""


class Seat(NamedTuple):
    """Places that some tasks of a job hold; `first` tells the tasks of an array apart."""

    job: int
    first: int
    spec: Spec
    leases: tuple[Lease, ...]


class Stage:
    """A context manager over one world. `gone` are those whose places count as free, `seated` those who have them."""

    def __init__(self, world: World, now: int) -> None:
        self._world = world
        self._now = now
        self._kept: dict[int, Lack] = {}
        self._gone: dict[tuple[int, int], Seat] = {}
        self._seated: dict[int, Seat] = {}

    def __enter__(self) -> Stage:
        world = self._world
        self._kept = world.fleet.claimed.copy()
        for slot in self._kept:
            world.fleet.set_claimed(slot, NO_LACK)
        for seat in list(leaving(world, self._now)):
            self.take(seat)
        for number in sorted(world.claims):
            charge_claim(world, number, -1)
            self.seat(world.jobs[number], world.claims[number].leases)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for seat in self._seated.values():
            self._vacate(seat)
        for seat in self._gone.values():
            self._occupy(seat)
        for number in self._world.claims:
            charge_claim(self._world, number, 1)
        for slot, kept in self._kept.items():
            self._world.fleet.set_claimed(slot, kept)

    def take(self, seat: Seat) -> None:
        """Let somebody be gone."""
        self._vacate(seat)
        self._gone[seat[:2]] = seat

    def give_back(self, seat: Seat) -> None:
        """Let them be there again."""
        del self._gone[seat[:2]]
        self._occupy(seat)

    def seat(self, job: Job, leases: tuple[Lease, ...]) -> None:
        """Let a job that waits have places, if they are there."""
        fleet, ask = self._world.fleet, job.spec.ask
        if all(fleet.has_room(lease.slot, ask, lease.tasks, lease.devices) for lease in leases):
            seat = self._seated[job.id] = Seat(job.id, 0, job.spec, leases)
            self._occupy(seat)

    def is_gone(self, job: int, first: int = 0) -> bool:
        """Whether somebody's places count as free."""
        return (job, first) in self._gone

    def is_claimed(self, leases: Iterable[Lease]) -> bool:
        """Whether some device of these leases is somebody's who is seated: as a share of it would be."""
        wanted = {lease.slot: lease.devices for lease in leases}
        seats = [lease for seat in self._seated.values() for lease in seat.leases]
        return any(wanted.get(lease.slot, 0) & lease.devices for lease in seats)

    def longest_grace(self, leases: Iterable[Lease]) -> int:
        """The longest grace of those who are to be gone from the nodes of some leases."""
        return max((seat.spec.grace_ms for seat in self._gone_from(leases)), default=0)

    def is_left_to(self, leases: Iterable[Lease]) -> bool:
        """Whether anybody is to be gone from their nodes."""
        return next(self._gone_from(leases), None) is not None

    def _gone_from(self, leases: Iterable[Lease]) -> Iterator[Seat]:
        slots = {lease.slot for lease in leases}
        return (seat for seat in self._gone.values() if any(lease.slot in slots for lease in seat.leases))

    def loans(self) -> Loans:
        """Who would borrow what."""
        world, tenants = self._world, dict[str, list[int]]()
        for (tenant, _, _), jobs in world.know_runs().by_class.items():
            tenants.setdefault(tenant, []).extend(jobs)
        for number in self._seated:
            tenants.setdefault(world.jobs[number].spec.tenant, [])
        return Loans(
            world.quotas, world.ledger, sorted(tenants), lambda tenant: self._holdings(tenant, tenants[tenant])
        )

    def _holdings(self, tenant: str, jobs: Iterable[int]) -> Iterator[Holding]:
        world = self._world
        for seat in self._seated.values():
            if seat.spec.tenant == tenant:
                yield Holding(self._now, seat.job, seat.spec.ask, world.sites.spread(seat.leases))
        for number in jobs:
            if (number, 0) not in self._gone or world.jobs[number].spec.array:
                yield holding_of(world, world.jobs[number])

    def _vacate(self, seat: Seat) -> None:
        world, ask = self._world, seat.spec.ask
        for lease in seat.leases:
            world.fleet.vacate(lease.slot, seat.job, ask, lease.tasks, lease.devices)
            if not world.fleet.is_open(lease.slot):
                world.sites.give_back(lease.slot, ask, lease.tasks)
        for site, tasks in world.sites.spread(seat.leases):
            world.ledger.refund(seat.spec.tenant, site, ask, tasks)

    def _occupy(self, seat: Seat) -> None:
        """The inverse of `_vacate`: on a node that lacks something, what came free there was withheld."""
        world, fleet, ask = self._world, self._world.fleet, seat.spec.ask
        for lease in seat.leases:
            lack = fleet.lacks.get(lease.slot, NO_LACK)
            if lack != NO_LACK:
                fleet.set_lack(lease.slot, NO_LACK)
            fleet.occupy(lease.slot, seat.job, ask, lease.tasks, lease.devices)
            if lack != NO_LACK:
                fleet.set_lack(lease.slot, lack)
            if not fleet.is_open(lease.slot):
                world.sites.give_back(lease.slot, ask, -lease.tasks)
        for site, tasks in world.sites.spread(seat.leases):
            world.ledger.charge(seat.spec.tenant, site, ask, tasks)


_STAYING: Final = (TaskPhase.STARTING, TaskPhase.RUNNING)


def holding_of(world: World, job: Job) -> Holding:
    """What a job holds, and since when; tasks of an array that were told to stop are as good as gone."""
    if isinstance(job.phase, ACTIVE):
        run = job.phase.run
        return Holding(run.since, job.id, job.spec.ask, world.sites.spread(run.leases))
    leases = [lease for seat in _task_seats(world, job, _STAYING) for lease in seat.leases]
    return Holding(job.accepted_at, job.id, job.spec.ask, world.sites.spread(leases))


def leaving(world: World, now: int) -> Iterator[Seat]:
    """Everybody who was told to stop and is about to be gone."""
    for number in world.know_runs().all():
        job = world.jobs[number]
        if is_leaving(world, job, now):
            if isinstance(job.phase, Stopping):
                yield Seat(number, 0, job.spec, job.phase.run.leases)
            else:
                yield from _task_seats(world, job, (TaskPhase.STOPPING,))


def is_leaving(world: World, job: Job, now: int) -> bool:
    """Whether a job, or some tasks of an array, were told to stop and have not taken too long yet."""
    if job.spec.array:
        return bool(world.arrays[job.id].counts[TaskPhase.STOPPING])
    return isinstance(job.phase, Stopping) and now < job.phase.since + job.spec.grace_ms + MARGIN_MS


def _task_seats(world: World, job: Job, phases: tuple[TaskPhase, ...]) -> Iterator[Seat]:
    """The places of an array's tasks in some phases, each node's for itself."""
    tasks = world.arrays[job.id]
    for span in spans_of(tasks.phase, phases, 0, len(tasks)):
        for slot, first, count in tasks.seats(*span, shared=job.spec.ask.gpu_milli > 0):
            yield Seat(job.id, first, job.spec, (Lease(slot, count, tasks.held_devices(first, count)),))
