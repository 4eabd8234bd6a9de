"""Widths: how many tasks the runs of elastic gangs have, and the primitives that change it.

A run has at least as many places as its spec's `gang`, its *least part*: the first ones, by rank. What it has beyond
that comes behind them and goes from the end. Ranks are never given twice in one run, for a word about one that left may
still be under way: who joins later has a higher one. `grow` and `shrink` are each other's inverse in all that is held;
`part` takes out what was lost, wherever it stood. Beside the places of its ranks a run may hold *spares*, which are the
places of nobody until `use_spares` makes ranks of them. Whoever decides it is elsewhere. Like the world's own
primitives, only `apply` calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from muster.model.errors import InvariantError
from muster.model.job import Job, Resize
from muster.model.phase import ACTIVE, Lease, Run, Running, Starting, Stopping, TaskPhase
from muster.model.spec import Needs, Spec
from muster.units import Resources
from muster.world.goodput import devices_of
from muster.world.promises import note_promise
from muster.world.spending import spend
from muster.world.tasks import Tasks

if TYPE_CHECKING:  # the world keeps them
    from muster.world.world import World


LEFT: Final = TaskPhase.CANCELLED
"""The phase of a rank that left its run."""
MEMBERS: Final = (TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.STOPPING, TaskPhase.SUCCEEDED, TaskPhase.QUEUED)
"""Those of all others."""
RANKS_MAX: Final = 1_000_000
"""How many ranks one run may ever have had; then it grows no more."""


Kind: TypeAlias = tuple[Resources, Needs]
"""What each task of a gang asks for, and where it may run."""


class Widths:
    """`elastic` are the elastic gangs that hold places, each with its kind: `narrow` those that have less than they
    may, by kind, and each with since when its run has any places; `wide` those that have more than they need, and
    `mending` those that run with less, since they lost the rest. `spared` are the gangs that hold spares, and `lacking`
    those that hold fewer than they ask for and are to go on. `resizes` is when a job last got another width, or lost
    some. `throttled` are the arrays that are not over and say how many of their tasks may be at it at once."""

    __slots__ = ("elastic", "lacking", "mending", "narrow", "resizes", "spared", "throttled", "wide")

    def __init__(self) -> None:
        self.elastic: dict[int, Kind] = {}
        self.narrow: dict[Kind, dict[int, int]] = {}
        self.wide: dict[int, None] = {}
        self.mending: dict[int, None] = {}
        self.spared: dict[int, None] = {}
        self.lacking: dict[int, None] = {}
        self.resizes: dict[int, Resize] = {}
        self.throttled: dict[int, None] = {}

    @property
    def has_any(self) -> bool:
        """Whether anybody who holds places is elastic, or has or lacks spares."""
        return bool(self.elastic or self.spared or self.lacking)

    def add(self, job: int, spec: Spec, since: int) -> None:
        """The run of an elastic gang holds what it needs."""
        kind = self.elastic[job] = (spec.ask, spec.needs)
        if spec.gang < spec.gang_most:
            self.narrow.setdefault(kind, {})[job] = since

    def keep(self, job: Job, run: Run) -> None:
        """A gang that holds places is elastic: it has another width, or other bounds."""
        number, spec, width = job.id, job.spec, width_of(job)
        self._forget(number)
        kind = self.elastic[number] = (spec.ask, spec.needs)
        if width < spec.gang_most:
            self.narrow.setdefault(kind, {})[number] = run.since
        if width > spec.gang:
            self.wide[number] = None
        elif width < spec.gang and isinstance(job.phase, Running):
            self.mending[number] = None

    def note_spares(self, job: Job, run: Run) -> None:
        """A gang has a run with such spares."""
        held = sum(lease.tasks for lease in run.spares)
        self.spared.pop(job.id, None)
        self.lacking.pop(job.id, None)
        if held:
            self.spared[job.id] = None
        if held < job.spec.spares and not isinstance(job.phase, Stopping):
            self.lacking[job.id] = None

    def leave(self, job: int) -> None:
        """A run is over: nothing of it is still to leave."""
        self.spared.pop(job, None)
        self.lacking.pop(job, None)
        self._forget(job)
        resize = self.resizes.get(job)
        if resize is not None and resize.to:
            self.resizes[job] = Resize(resize.at)

    def throttle(self, job: Job, tasks: Tasks) -> None:
        """A new array says how many of its tasks may be at it at once: of those that wait, the others are blocked."""
        self.throttled[job.id] = None
        beyond = tasks.counts[TaskPhase.QUEUED] - job.spec.at_most
        if beyond > 0:
            tasks.set_phase(job.spec.at_most, beyond, TaskPhase.BLOCKED)

    def fork(self) -> Widths:
        """An independent copy."""
        twin = Widths()
        twin.elastic, twin.wide = self.elastic.copy(), self.wide.copy()
        twin.narrow = {kind: runs.copy() for kind, runs in self.narrow.items()}
        twin.mending, twin.resizes = self.mending.copy(), self.resizes.copy()
        twin.spared, twin.lacking, twin.throttled = self.spared.copy(), self.lacking.copy(), self.throttled.copy()
        return twin

    def _forget(self, job: int) -> None:
        kind = self.elastic.pop(job, None)
        if kind in self.narrow and self.narrow[kind].pop(job, None) is not None and not self.narrow[kind]:
            del self.narrow[kind]
        self.wide.pop(job, None)
        self.mending.pop(job, None)


def leases_of(job: Job) -> tuple[Lease, ...]:
    """The places of a gang's ranks, in their order."""
    return job.phase.run.leases if isinstance(job.phase, ACTIVE) else ()


def spares_of(job: Job) -> tuple[Lease, ...]:
    """The places that a gang holds for no rank."""
    return job.phase.run.spares if isinstance(job.phase, ACTIVE) else ()


def places_of(job: Job) -> tuple[Lease, ...]:
    """All places that a gang holds."""
    return job.phase.run.places if isinstance(job.phase, ACTIVE) else ()


def width_of(job: Job) -> int:
    """How many tasks the run of a gang has; 0 if there is none."""
    return sum([lease.tasks for lease in leases_of(job)])


def members_of(ranks: bytearray) -> Sequence[int]:
    """The ranks of a run that have not left it, in the order of its places."""
    if ranks.find(LEFT) < 0:
        return range(len(ranks))
    return [rank for rank, phase in enumerate(ranks) if phase != LEFT]


def split_leases(leases: Sequence[Lease], count: int, ask: Resources) -> tuple[list[Lease], list[Lease]]:
    """The leases for the first so many tasks, and the others."""
    here: list[Lease] = []
    for at, lease in enumerate(leases):
        if not count:
            return here, list(leases[at:])
        if lease.tasks > count:
            devices = lease.devices if ask.gpu_milli else lowest_of(lease.devices, ask.gpus * count)
            rest = lease.devices if ask.gpu_milli else lease.devices & ~devices
            left = Lease(lease.slot, lease.tasks - count, rest)
            return [*here, Lease(lease.slot, count, devices)], [left, *leases[at + 1 :]]
        here.append(lease)
        count -= lease.tasks
    return here, []


def least_part(job: Job) -> tuple[Lease, ...]:
    """The places that a gang cannot do without."""
    return tuple(split_leases(leases_of(job), job.spec.gang, job.spec.ask)[0])


def lowest_of(devices: int, count: int) -> int:
    """The lowest so many bits that are set."""
    found = 0
    for _ in range(count):
        low = devices & -devices
        found, devices = found | low, devices ^ low
    return found


def hold_ranks(world: World, job: Job, run: Run) -> Run:
    """A gang of several tasks has just got all its places: the first are those of its ranks, the others its spares."""
    spec = job.spec
    world.ranks[job.id] = bytearray([TaskPhase.STARTING]) * spec.gang
    if spec.gang_most:
        world.widths.add(job.id, spec, run.since)
    if spec.spares:
        ranks, spares = split_leases(run.leases, spec.gang, spec.ask)
        run = replace(run, leases=tuple(ranks), spares=tuple(spares), spared_at=run.since)
        world.widths.note_spares(job, run)
    return run


def grow(world: World, job: Job, more: Sequence[Lease], at: int) -> None:
    """Give a run places behind those that it has. The inverse of `shrink`."""
    spec, phase = job.spec, job.phase
    if not isinstance(phase, (Starting, Running)):
        raise InvariantError("only a run that goes on grows", f"job {job.id} is {type(phase).__name__}")
    if devices_of(spec.ask):
        world.goodput.carry(job, at)
        world.goodput.take(spec.ask, more, at)
    for lease in more:
        world.fleet.occupy(lease.slot, job.id, spec.ask, lease.tasks, lease.devices)
    world.charge(spec, more, at, phase.run.find_end(spec.limit_ms))
    if world.budgets.accounts:
        spend(world, job, more, 1)
    if world.fleet.company.by_name:
        world.fleet.company.seat(spec, more, 1)
    world.ranks[job.id] += bytes([TaskPhase.STARTING]) * sum(lease.tasks for lease in more)
    is_fresh = isinstance(phase, Starting)
    leases = _merged([*phase.run.leases, *more]) if is_fresh else (*phase.run.leases, *more)
    _set_leases(world, job, leases)
    if not is_fresh:
        _note_width(world, job, at)


def use_spares(world: World, job: Job, count: int, at: int) -> None:
    """The first spares of a run are the places of new ranks, behind those that it has."""
    if not isinstance(job.phase, Running):
        raise InvariantError("only a run that goes on uses its spares", f"job {job.id}")
    run = job.phase.run
    used, rest = split_leases(run.spares, count, job.spec.ask)
    if devices_of(job.spec.ask):
        world.goodput.carry(job, at)
        world.goodput.close_spares(job, at)
    world.ranks[job.id] += bytes([TaskPhase.STARTING]) * count
    after = replace(run, leases=(*run.leases, *used), spares=tuple(rest), spared_at=at)
    world.jobs[job.id] = replace(job, phase=replace(job.phase, run=after))
    world.widths.keep(world.jobs[job.id], after)
    world.widths.note_spares(job, after)
    _note_width(world, job, at)


def give_spares(world: World, job: Job, more: Sequence[Lease], at: int) -> None:
    """A run holds more spares. The inverse of `drop_spares`."""
    spec, phase = job.spec, job.phase
    if not isinstance(phase, (Starting, Running)):
        raise InvariantError("only a run that goes on gets spares", f"job {job.id}")
    world.goodput.close_spares(job, at)
    if devices_of(spec.ask):
        world.goodput.take(spec.ask, more, at)
    for lease in more:
        world.fleet.occupy(lease.slot, job.id, spec.ask, lease.tasks, lease.devices)
    world.charge(spec, more, at, phase.run.find_end(spec.limit_ms))
    if world.budgets.accounts:
        spend(world, job, more, 1)
    _set_spares(world, job, (*phase.run.spares, *more), at)


def drop_spares(world: World, job: Job, slots: Sequence[int], at: int) -> None:
    """A run gives up the spares that it has on some nodes."""
    kept = [lease for lease in spares_of(job) if lease.slot not in slots]
    gone = [lease for lease in spares_of(job) if lease.slot in slots]
    world.goodput.close_spares(job, at)
    _release(world, job, gone, at)
    _set_spares(world, job, tuple(kept), at)


def _set_spares(world: World, job: Job, spares: tuple[Lease, ...], at: int) -> None:
    """Replace the spares of a run and nothing else."""
    phase = job.phase
    if isinstance(phase, ACTIVE):
        run = replace(phase.run, spares=spares, spared_at=at)
        after = world.jobs[job.id] = replace(job, phase=replace(phase, run=run))
        world.widths.note_spares(job, run)
        if world.runs is not None:
            world.runs.remove(job)
            world.runs.add_gang(after, run, world.sites.by_slot, world.goodput.saved_at(job.id, run.since))
            if isinstance(phase, Stopping):
                world.runs.leave(job.id)


def _note_width(world: World, before: Job, at: int) -> None:
    """A run that is up has more ranks than before; one that lacked some may be whole again."""
    world.widths.resizes[before.id] = Resize(at)
    if width_of(before) < before.spec.gang:
        _reseat(world, before, world.jobs[before.id])


def ask_shrink(world: World, job: Job, width: int, at: int) -> None:
    """The last ranks of a run are told to leave: those that are not over."""
    ranks = world.ranks[job.id]
    for rank in members_of(ranks)[width:]:
        if ranks[rank] != TaskPhase.SUCCEEDED:
            ranks[rank] = TaskPhase.STOPPING
    world.widths.resizes[job.id] = Resize(at, width)


def shrink(world: World, job: Job, width: int, at: int) -> None:
    """Take the last places of a run back."""
    kept, gone = split_leases(leases_of(job), width, job.spec.ask)
    _give_back(world, job, kept, gone, at)
    ranks = world.ranks[job.id]
    for rank in members_of(ranks)[width:]:
        ranks[rank] = LEFT
    world.widths.resizes[job.id] = Resize(at)


def part(world: World, job: Job, first: int, count: int, at: int) -> None:
    """Ranks are lost, wherever they stand, and their places with them. A run that has less than it needs by that
    mends from the first loss on."""
    ranks, ask, is_first = world.ranks[job.id], job.spec.ask, job.id not in world.widths.mending
    before, rest = split_leases(leases_of(job), members_of(ranks).index(first), ask)
    gone, behind = split_leases(rest, count, ask)
    _give_back(world, job, [*before, *behind], gone, at)
    ranks[first : first + count] = bytes([LEFT]) * count
    if is_first:
        world.widths.resizes[job.id] = Resize(at)
    _reseat(world, job, world.jobs[job.id])


def _give_back(world: World, job: Job, kept: Sequence[Lease], gone: Sequence[Lease], at: int) -> None:
    """A run has some of its places no more."""
    if devices_of(job.spec.ask):
        world.goodput.carry(job, at)
    _release(world, job, gone, at)
    _set_leases(world, job, tuple(kept))


def _release(world: World, job: Job, gone: Sequence[Lease], at: int) -> None:
    spec = job.spec
    world.vacate(job, gone, at)
    if world.budgets.accounts:
        spend(world, job, gone, -1)
    if job.id in world.budgets.prices:
        world.budgets.drop_prices(job.id, world.fleet.flavors_held(job.id))
    if isinstance(job.phase, ACTIVE):
        world.refund(spec, gone, at, job.phase.run.find_end(spec.limit_ms))
    if world.fleet.company.by_name:
        world.leave_company(spec, gone)


def set_bounds(world: World, job: Job, least: int, most: int) -> None:
    """A gang has other bounds from now on, whether it waits or runs; an array only the upper one."""
    if job.spec.array:
        world.jobs[job.id] = replace(job, spec=replace(job.spec, at_most=most))
        world.widths.throttled[job.id] = None
        return
    is_waiting = world.is_waiting(job)
    if is_waiting:
        world.dequeue(job)
    if world.mix is not None:
        world.mix.add(job.spec, -1)
    spec = replace(job.spec, gang=least, gang_most=most)
    note_promise(world, job.spec, -1)
    note_promise(world, spec, 1)
    after = replace(job, spec=spec)
    if world.mix is not None:
        world.mix.add(spec, 1)
    world.jobs[job.id] = after
    if is_waiting:
        world.enqueue(after)
    else:
        _reseat(world, job, after)


def _reseat(world: World, before: Job, after: Job) -> None:
    """What is kept of a run by its least part is kept anew."""
    if not isinstance(after.phase, ACTIVE):
        return
    spec, run = after.spec, after.phase.run
    world.widths.keep(after, run)
    if after.id not in world.ranks:
        phase = TaskPhase.RUNNING if isinstance(after.phase, Running) else TaskPhase.STARTING
        world.ranks[after.id] = bytearray([phase]) * width_of(after)
    if world.queue.floors.by_scope:
        world.queue.floors.unseat(before)
    world.queue.floors.seat(after, run.since, world.tiers[spec.tier].sharing)
    if world.runs is not None:
        world.runs.remove(before)
        world.runs.add_gang(after, run, world.sites.by_slot, world.goodput.saved_at(after.id, run.since))


def _set_leases(world: World, job: Job, leases: tuple[Lease, ...]) -> None:
    """Replace the places of a run and nothing else."""
    phase = job.phase
    if isinstance(phase, ACTIVE):
        run = replace(phase.run, leases=leases)
        after = replace(job, phase=replace(phase, run=run))
        world.jobs[job.id] = after
        world.widths.keep(after, run)
        if world.runs is not None and isinstance(phase, Starting):
            world.runs.remove(job)
            world.runs.add_gang(after, run, world.sites.by_slot, run.since)


def _merged(leases: Sequence[Lease]) -> tuple[Lease, ...]:
    """One lease for each node, in the order in which nodes first come."""
    found: dict[int, Lease] = {}
    for lease in leases:
        known = found.get(lease.slot, Lease(lease.slot, 0))
        found[lease.slot] = Lease(lease.slot, known.tasks + lease.tasks, known.devices | lease.devices)
    return tuple(found.values())
