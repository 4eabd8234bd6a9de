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
from muster.model.phase import Lease, Stopping, TaskPhase
from muster.model.spec import Spec
from muster.units import MINUTE_MS
from muster.world.claiming import charge_claim
from muster.world.loans import CLAIM, TASKS_OF_ARRAY, Row
from muster.world.runs import FIXED, LEAVING, STATE, STAYS, Runs, amounts_of
from muster.world.tasks import Tasks, spans_of
from muster.world.usage import amount_of
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
        self._told: dict[int, None] = {}
        self._phases: dict[tuple[int, int], int] = {}
        self._overdue: list[int] = []

    def __enter__(self) -> Stage:
        world = self._world
        self._kept = world.fleet.claimed.copy()
        for slot in self._kept:
            world.fleet.set_claimed(slot, NO_LACK)
        for seat in list(leaving(world, self._now)):
            self.take(seat)
        self._overdue = [number for number in world.know_runs().leaving if (number, 0) not in self._gone]
        for number in self._overdue:
            world.know_runs().write(number, STATE, FIXED)
        for number in sorted(world.claims):
            charge_claim(world, number, -1)
            self.seat(world.jobs[number], world.claims[number].leases)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        world, runs = self._world, self._world.know_runs()
        for seat in self._seated.values():
            self._vacate(seat)
        for seat in self._gone.values():
            self._occupy(seat)
        for number in world.claims:
            charge_claim(world, number, 1)
        for slot, kept in self._kept.items():
            world.fleet.set_claimed(slot, kept)
        for number in self._told:
            runs.write(number, STATE, STAYS)
        for (number, task), phase in self._phases.items():
            world.arrays[number].phase[task] = phase
        for number in self._overdue:
            runs.write(number, STATE, LEAVING)

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

    def tell(self, seats: Iterable[Seat]) -> None:
        """It is settled who goes: they count as told to stop."""
        for seat in seats:
            if seat.spec.array:
                phases = self._world.arrays[seat.job].phase
                self._phases[seat.job, seat.first] = phases[seat.first]
                phases[seat.first] = TaskPhase.STOPPING
            else:
                self._world.know_runs().write(seat.job, STATE, LEAVING)
                self._told[seat.job] = None

    def is_gone(self, job: int, first: int = 0) -> bool:
        """Whether somebody's places count as free."""
        return (job, first) in self._gone

    def has_leavers(self) -> bool:
        """Whether anybody is to be gone."""
        return bool(self._gone)

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

    def spread(self) -> list[Row]:
        """What is held besides gangs: by the tasks of each array that stay, on each site, and by those who are
        seated."""
        world, rows = self._world, list[Row]()
        runs = world.know_runs()
        for number in runs.arrays:
            job = world.jobs[number]
            for site, tasks in staying_by_site(world, world.arrays[number]):
                seat = Seat(number, TASKS_OF_ARRAY, job.spec, ())
                rows.append(_spread_row(runs, job.accepted_at, seat, site, tasks))
        for seat in self._seated.values():
            for where, tasks in world.sites.spread(seat.leases):
                rows.append(_spread_row(runs, self._now, seat._replace(first=CLAIM), where.number, tasks))
        return rows

    def _vacate(self, seat: Seat) -> None:
        world, fleet, ask = self._world, self._world.fleet, seat.spec.ask
        for lease in seat.leases:
            if lease.slot in fleet.lacks:
                fleet.vacate(lease.slot, seat.job, ask, lease.tasks, lease.devices)
            else:
                fleet.show(lease.slot, ask, -lease.tasks, lease.devices)
            if not fleet.is_open(lease.slot):
                world.sites.give_back(lease.slot, ask, lease.tasks)
        for site, tasks in world.sites.spread(seat.leases):
            world.ledger.charge(seat.spec.tenant, site, ask, -tasks)

    def _occupy(self, seat: Seat) -> None:
        """The inverse of `_vacate`: on a node that lacks something, what came free there was withheld."""
        world, fleet, ask = self._world, self._world.fleet, seat.spec.ask
        for lease in seat.leases:
            lack = fleet.lacks.get(lease.slot, NO_LACK)
            if lack == NO_LACK:
                fleet.show(lease.slot, ask, lease.tasks, lease.devices)
            else:
                fleet.set_lack(lease.slot, NO_LACK)
                fleet.occupy(lease.slot, seat.job, ask, lease.tasks, lease.devices)
                fleet.set_lack(lease.slot, lack)
            if not fleet.is_open(lease.slot):
                world.sites.give_back(lease.slot, ask, -lease.tasks)
        for site, tasks in world.sites.spread(seat.leases):
            world.ledger.charge(seat.spec.tenant, site, ask, tasks)


_STAYING: Final = (TaskPhase.STARTING, TaskPhase.RUNNING)


def staying_by_site(world: World, tasks: Tasks) -> list[tuple[int, int]]:
    """How many tasks of an array hold places and were not told to stop, by the number of the site."""
    if len(world.sites.all) == 1:
        count = sum(tasks.phase.count(phase) for phase in _STAYING)
        return [(0, count)] if count else []
    found: dict[int, int] = {}
    for first, count in spans_of(tasks.phase, _STAYING, 0, len(tasks)):
        for slot, _, width in tasks.seats(first, count):
            number = world.sites.by_slot[slot].number
            found[number] = found.get(number, 0) + width
    return sorted(found.items())


def _spread_row(runs: Runs, since: int, seat: Seat, site: int, tasks: int) -> Row:
    """As `muster.world.runs` has them; `first` says whose it is, and nothing of it is borrowed so far."""
    spec = seat.spec
    tenant, kind = runs.tenants.number(spec.tenant), runs.kinds.number((spec.tier, spec.priority))
    worth, amounts = amount_of(spec.ask, 1), amounts_of(spec.ask, tasks)
    state = STAYS if spec.evictable else FIXED
    return (since, seat.job, tenant, kind, seat.first, site, *amounts, worth, 0, state, 0, 0, tasks)


def leaving(world: World, now: int) -> Iterator[Seat]:
    """Everybody who was told to stop and is about to be gone."""
    runs = world.know_runs()
    for number in sorted([*runs.leaving, *runs.arrays]):
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
