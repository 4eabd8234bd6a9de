"""A stage: the places as they will be when all who were told to stop are gone and every claim has what it waits for.

On it somebody's places can be taken and given back, to see who would fit then. It changes fleet and ledger in place,
with the same primitives as everybody, and puts everything back on the way out. Queue and shares never hear of it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, TypeAlias

from muster.model.group import Part
from muster.model.job import Job
from muster.model.node import NO_LACK
from muster.model.partition import devices_in
from muster.model.phase import RESIZED, Lease, Running, Stopping, TaskPhase
from muster.model.spec import Spec
from muster.scheduler.taking.herds import MARGIN_MS, Group, find_staying, leaving_tasks, row_of, spread_rows
from muster.units import Resources
from muster.world.claiming import Lifted, charge_claim, lift_claims, put_claims
from muster.world.compiled import Words
from muster.world.loans import CLAIM
from muster.world.runs import FIXED, LEAVING, STATE, STAYS
from muster.world.seating import show_all, show_if_room
from muster.world.sites import Site
from muster.world.widths import split_leases
from muster.world.world import World

Charge: TypeAlias = tuple[str, Site, Resources, int]
"""A tenant, a site, and so many asks there."""


class Seat(NamedTuple):
    """Places that some tasks of a job hold; `first` tells the tasks of an array apart."""

    job: int
    first: int
    spec: Spec
    leases: tuple[Lease, ...]


class Places(NamedTuple):
    """What several hold together: leases by what is asked for on them, and what their tenants are charged for; put
    together once for those who go and come more than once."""

    seats: Sequence[Seat]
    leases: dict[Resources, list[Lease]]
    charges: list[Charge]


class Stage:
    """A context manager over one world. `gone` are those whose places count as free, `seated` those who have them."""

    def __init__(self, world: World, now: int) -> None:
        self._world = world
        self._now = now
        self._lifted: Lifted | None = None
        self._gone: dict[tuple[int, int], Seat] = {}
        self._gone_on: dict[int, dict[tuple[int, int], Seat]] = {}
        self._seated: dict[int, Seat] = {}
        self._told: dict[int, None] = {}
        self._phases: dict[tuple[int, int], tuple[int, int]] = {}
        self._tickets: dict[int, int] = {}
        self._staying: dict[int, Words] = {}
        self._overdue: list[int] = []
        self._leavers = Places((), {}, [])
        self._charged: dict[int, None] = {}
        self._uncharged: list[int] = []

    def __enter__(self) -> Stage:
        world = self._world
        self._lifted = lift_claims(world.fleet)
        self._leavers = self.gather(list(leaving(world, self._now)))
        self.take_all(self._leavers)
        self._overdue = [number for number in world.know_runs().leaving if (number, 0) not in self._gone]
        for number in self._overdue:
            world.know_runs().write(number, STATE, FIXED)
        self._seat_claimants()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        world, runs = self._world, self._world.know_runs()
        self._unseat()
        self.give_back_all(self._leavers)
        self.give_back_all(self.gather(list(self._gone.values())))
        for number in self._uncharged:
            charge_claim(world, number, 1)
        if self._lifted is not None:
            put_claims(world.fleet, self._lifted)
        for number in self._told:
            runs.write(number, STATE, STAYS)
        for (number, task), (phase, since) in self._phases.items():
            world.arrays[number].phase[task], world.arrays[number].since[task] = phase, since
        for number in self._overdue:
            runs.write(number, STATE, LEAVING)

    def take(self, seat: Seat) -> None:
        """Let somebody be gone."""
        self.take_all(self.gather((seat,)))

    def take_all(self, places: Places) -> None:
        """Let several be gone."""
        self._show(places, -1)
        self._charge(places, -1)
        for seat in places.seats:
            key = seat[:2]
            self._gone[key] = seat
            for lease in seat.leases:
                self._gone_on.setdefault(lease.slot, {})[key] = seat

    def give_back(self, seat: Seat) -> None:
        """Let somebody be there again."""
        self.give_back_all(self.gather((seat,)))

    def give_back_all(self, places: Places) -> None:
        """Let several be there again."""
        for seat in places.seats:
            key = seat[:2]
            del self._gone[key]
            for lease in seat.leases:
                self._gone_on[lease.slot].pop(key, None)  # a gang may have two leases on a node
        self._show(places, 1)
        self._charge(places, 1)

    def gather(self, seats: Sequence[Seat]) -> Places:
        """Put together what several hold; what is alike is charged at once."""
        sites, by_ask = self._world.sites, dict[Resources, list[Lease]]()
        counts: dict[tuple[str, int, Resources], int] = {}
        for seat in seats:
            for ask, leases in seat.spec.parts(seat.leases):
                by_ask.setdefault(ask, []).extend(leases)
                for site, tasks in sites.spread(leases):
                    alike = (seat.spec.tenant, site.number, ask)
                    counts[alike] = counts.get(alike, 0) + tasks
        charges = [(tenant, sites.all[site], ask, tasks) for (tenant, site, ask), tasks in counts.items()]
        return Places(seats, by_ask, charges)

    def seat(self, job: Job, leases: tuple[Lease, ...], ticket: int = 0) -> None:
        """Let a job that waits have places, if they are there: by its claim, or by one that it gets now."""
        seat = Seat(job.id, 0, job.spec, leases)
        if self._has_shown(seat):
            self._tickets[job.id] = ticket or self._world.tickets + len(self._seated) + 1
            self._seated[job.id] = seat
            if job.id not in self._charged:
                self._charge(self.gather((seat,)), 1)

    def _seat_claimants(self) -> None:
        """Let those who have a claim have what they claim, if it is there. It is charged already, and stays so, but of
        those for whom it is not there."""
        claims, jobs = self._world.claims, self._world.jobs
        self._charged = dict.fromkeys(sorted(claims))
        for number in sorted(claims):
            self.seat(jobs[number], claims[number].leases, claims[number].ticket)
        for number in claims:
            if number not in self._seated:
                del self._charged[number]
                self._uncharged.append(number)
                charge_claim(self._world, number, -1)

    def _unseat(self) -> None:
        """Take everybody's places back who was seated; what is claimed stays charged."""
        for ask, leases in self.gather(list(self._seated.values())).leases.items():
            show_all(self._world.fleet, ask, leases, -1)
        self._charge(self.gather([seat for seat in self._seated.values() if seat.job not in self._charged]), -1)

    def tell(self, seats: Iterable[Seat]) -> None:
        """It is settled who goes: they count as told to stop."""
        for seat in seats:
            if seat.spec.array:
                tasks, task = self._world.arrays[seat.job], seat.first
                self._phases[seat.job, task] = tasks.phase[task], tasks.since[task]
                tasks.phase[task], tasks.since[task] = TaskPhase.STOPPING, self._now
                self._staying.pop(seat.job, None)
            else:
                self._world.know_runs().write(seat.job, STATE, LEAVING)
                self._told[seat.job] = None

    def fix(self, job: int) -> None:
        """Let nobody take more of a job."""
        self._world.know_runs().write(job, STATE, FIXED)
        self._told[job] = None

    def is_gone(self, job: int, first: int = 0) -> bool:
        """Whether somebody's places count as free."""
        return (job, first) in self._gone

    def has_leavers(self) -> bool:
        """Whether anybody is to be gone."""
        return bool(self._gone)

    def is_claimed(self, leases: Iterable[Lease]) -> bool:
        """Whether some device of these leases is somebody's who is seated: as a share of it would be."""
        wanted = {lease.slot: devices_in(lease.devices) for lease in leases}
        seats = [lease for seat in self._seated.values() for lease in seat.leases]
        return any(wanted.get(lease.slot, 0) & devices_in(lease.devices) for lease in seats)

    def longest_grace(self, leases: Iterable[Lease]) -> int:
        """The longest grace of those who are to be gone from the nodes of some leases."""
        return max((seat.spec.grace_ms for seat in self._gone_from(leases)), default=0)

    def is_left_to(self, leases: Iterable[Lease]) -> bool:
        """Whether anybody is to be gone from their nodes."""
        return next(self._gone_from(leases), None) is not None

    def _gone_from(self, leases: Iterable[Lease]) -> Iterator[Seat]:
        return (seat for lease in leases for seat in self._gone_on.get(lease.slot, {}).values())

    def spread(self) -> tuple[array[int], list[Group]]:
        """What is held besides gangs, as rows: by the tasks of each array that stay, and by those who are seated."""
        world, rows = self._world, list[tuple[int, ...]]()
        for seat in self._seated.values():
            claim = world.claims.get(seat.job)
            for ticket, leases in ((self._tickets[seat.job], seat.leases),) if claim is None else claim.parts():
                for where, ask, tasks in world.sites.share(seat.spec, leases):
                    held = (ticket, CLAIM, where.number, tasks)
                    rows.append(row_of(world.know_runs(), seat.job, seat.spec, ask, held))
        return spread_rows(world, self.staying, rows)

    def staying(self, job: int) -> Words:
        """The tasks of an array that hold places and are not about to be gone, the newest last; looked for once, until
        some of them are told to stop."""
        found = self._staying.get(job)
        if found is None:
            found = self._staying[job] = find_staying(self._world, self._world.jobs[job], self._now)
        return found

    def _show(self, places: Places, sign: int) -> None:
        """Show the places of those who hold some as held (1) or as free (-1)."""
        fleet = self._world.fleet
        if fleet.lacks:
            others = [seat for seat in places.seats if not self._has_shown_lacking(seat, sign)]
            places = places if len(others) == len(places.seats) else self.gather(others)
        for ask, leases in places.leases.items():
            show_all(fleet, ask, leases, sign)
            self._count_closed(ask, leases, sign)

    def _has_shown_lacking(self, seat: Seat, sign: int) -> bool:
        """Do so lease by lease, if it has any on a node that lacks something: what comes free there is withheld."""
        fleet = self._world.fleet
        if not any(lease.slot in fleet.lacks for lease in seat.leases):
            return False
        for ask, leases in seat.spec.parts(seat.leases):
            for lease in leases:
                lack = fleet.lacks.get(lease.slot, NO_LACK)
                if lack == NO_LACK:
                    fleet.show(lease.slot, ask, sign * lease.tasks, lease.devices)
                elif sign < 0:
                    fleet.vacate(lease.slot, seat.job, ask, lease.tasks, lease.devices)
                else:
                    fleet.set_lack(lease.slot, NO_LACK)
                    fleet.occupy(lease.slot, seat.job, ask, lease.tasks, lease.devices)
                    fleet.set_lack(lease.slot, lack)
            self._count_closed(ask, leases, sign)
        return True

    def _has_shown(self, seat: Seat) -> bool:
        """Show the places of somebody as held, if they are there."""
        fleet, shown = self._world.fleet, list[Part]()
        for part in seat.spec.parts(seat.leases):
            if not show_if_room(fleet, *part):
                for ask, leases in shown:
                    show_all(fleet, ask, leases, -1)
                return False
            shown.append(part)
        return True

    def _count_closed(self, ask: Resources, leases: Iterable[Lease], sign: int) -> None:
        """What is held on nodes that are closed counts for their site."""
        fleet, sites = self._world.fleet, self._world.sites
        for lease in leases:
            if not fleet.is_open(lease.slot):
                sites.give_back(lease.slot, ask, -sign * lease.tasks)

    def _charge(self, places: Places, sign: int) -> None:
        """What several hold counts (1), or not (-1)."""
        charge = self._world.ledger.charge
        for tenant, site, ask, tasks in places.charges:
            charge(tenant, site, ask, sign * tasks)


def leaving(world: World, now: int) -> Iterator[Seat]:
    """Everybody who was told to stop and is about to be gone."""
    runs = world.know_runs()
    for number in sorted([*runs.leaving, *runs.arrays]):
        job = world.jobs[number]
        if is_leaving(world, job, now):
            if isinstance(job.phase, Stopping):
                yield from _gang_seats(job, job.phase)
            else:
                yield from (
                    Seat(number, first, job.spec, (lease,)) for first, _, lease in leaving_tasks(world, job, now)
                )
    for number, resize in sorted(world.widths.resizes.items()):
        job = world.jobs[number]
        if resize.to and isinstance(job.phase, Running) and is_leaving(world, job, now):
            gone = split_leases(job.phase.run.leases, resize.to, job.spec.ask)[1]
            yield Seat(number, resize.to, job.spec, tuple(gone))


def _gang_seats(job: Job, phase: Stopping) -> Iterator[Seat]:
    """What a gang will have given back when it has stopped: all, unless it keeps the least that it needs and its
    spares."""
    spec, leases = job.spec, phase.run.leases
    if phase.why not in RESIZED or job.held:
        yield Seat(job.id, 0, spec, phase.run.places)
    elif sum(lease.tasks for lease in leases) > spec.gang:
        yield Seat(job.id, spec.gang, spec, tuple(split_leases(leases, spec.gang, spec.ask)[1]))


def is_leaving(world: World, job: Job, now: int) -> bool:
    """Whether a job, or some of its tasks, were told to stop or to leave and have not taken too long yet."""
    if job.spec.array:
        has_any = world.arrays[job.id].counts[TaskPhase.STOPPING]
        return bool(has_any) and next(leaving_tasks(world, job, now), None) is not None
    if isinstance(job.phase, Stopping):
        return now < job.phase.since + job.spec.grace_ms + MARGIN_MS
    resize = world.widths.resizes.get(job.id)
    return resize is not None and resize.to > 0 and now < resize.at + job.spec.grace_ms + MARGIN_MS
