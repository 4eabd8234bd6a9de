"""The inspector: every law, at the pace that it can afford. It watches a kernel and changes nothing.

After every entry: the auditor's books, and the engine's word that what is over does not run. At sampled entries: all
laws of the world, the fold of the encoded journal, the law of restore, what is remembered, and that nobody who could
start is asleep.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import astuple

from muster.kernel.kernel import Kernel, Outcome, rare_in
from muster.lifecycle.gang import TABLE
from muster.model import fact
from muster.model.event import Event
from muster.model.job import Job
from muster.model.phase import TAKEN, Lease, TaskPhase, Why
from muster.scheduler import repair
from muster.scheduler.booked import only, own_slots
from muster.scheduler.claims import Outlook
from muster.scheduler.cycle import run_cycle
from muster.scheduler.growing import ROOM
from muster.scheduler.moving import MOVED
from muster.scheduler.placing.fit import Pools, widest_room
from muster.scheduler.placing.within import pools_within
from muster.scheduler.shadows import Shadow
from muster.scheduler.taking.preemption import FOR_JOB
from muster.scheduler.timeshare import is_on_floor
from muster.simulator.engine import SimulatedEngine
from muster.units import Limit
from muster.wire.codec import decode_entry
from muster.world.apply import apply, apply_entry
from muster.world.audit.auditor import Auditor
from muster.world.audit.group import cut
from muster.world.audit.history import HistoryBooks
from muster.world.audit.idle import IdleBooks
from muster.world.laws.holding import Holding
from muster.world.laws.invariants import check_same, check_world, leases_of
from muster.world.laws.law import require
from muster.world.queue import INSIDE, OVER, Shape
from muster.world.snapshot import restore, snapshot
from muster.world.tasks import HOLDING
from muster.world.widths import LEFT, RANKS_MAX, least_part, spares_of, split_leases
from muster.world.widths import leases_of as ranks_of
from muster.world.world import World

RESTORE_LAW: Final = "a restored world decides like the living one"


class Inspector:
    """Watches one kernel. `every` is how many entries lie between two full inspections."""

    def __init__(self, kernel: Kernel, engine: SimulatedEngine, every: int = 1000) -> None:
        self.auditor = Auditor(TABLE)
        self.inspections = 0
        self._kernel = kernel
        self._engine = engine
        self._every = every
        self._shadow = World()
        self._history = HistoryBooks(kernel.world, self._shadow)
        self._idle = IdleBooks()

    def handle(self, batch: Sequence[Event], now: int) -> Outcome:
        """Let the kernel handle a batch; at sampled entries, let a restored and a forked twin handle it too."""
        world = self._kernel.world
        self._idle.look(world, now)
        if (world.seq + 1) % self._every:
            return self._kernel.handle(batch, now)
        twins, before = [restore(snapshot(world)), world.fork()], world.fork()
        outcome = self._kernel.handle(batch, now)
        for twin in twins:
            check_alike(outcome, Kernel(twin), batch)
        check_shadows(before, outcome, world)
        return outcome

    def observe(self, outcome: Outcome, data: bytes) -> None:
        """Check an entry that the kernel just made."""
        world = self._kernel.world
        self.auditor.observe(world, outcome.facts)
        self.auditor.marks.check_starts(outcome.facts, outcome.instructions)
        self._idle.observe(world)
        for item in outcome.facts:
            self._check_ended(item)
        entry = decode_entry(data)
        apply_entry(self._shadow, entry.seq, entry.at, entry.facts)
        self._history.observe(world)
        if world.seq % self._every == 0:
            self.inspect()

    def inspect(self) -> None:
        """All laws, now."""
        world = self._kernel.world
        kept = map(operator.is_, self._kernel.rare, rare_in(world))
        require(all(kept), "what the kernel looks at is the world's own", "something rare was replaced")
        check_world(world)
        check_world(self._shadow)
        check_same(world, self._shadow)
        self._history.check(world)
        check_nobody_overslept(world)
        self.inspections += 1

    def _check_ended(self, item: fact.Fact) -> None:
        """What gave its place back has no live process."""
        if isinstance(item, fact.TasksEnded):
            for span in item.spans:
                self._check_dead(item.job, *span)
        elif isinstance(item, (fact.Ended, fact.Requeued)):
            job = self._kernel.world.jobs[item.job]
            self._check_dead(item.job, 0, RANKS_MAX if job.spec.gang_most else job.spec.tasks)
        elif isinstance(item, fact.RanksLost):
            self._check_dead(item.job, item.first, item.count)
        elif isinstance(item, fact.Shrunk):
            left = [rank for rank, phase in enumerate(self._kernel.world.ranks.get(item.job, b"")) if phase == LEFT]
            for rank in left:
                self._check_dead(item.job, rank, 1)

    def _check_dead(self, job: int, first: int, count: int) -> None:
        live = self._engine.find_live(job, first, count)
        if live is not None:
            where = f"job {job} epoch {live.epoch}, tasks from {live.first}, on {live.node}"
            require(False, "one accepted attempt per task", f"it gave its place back and still runs: {where}")


def check_alike(living: Outcome, twin: Kernel, batch: Sequence[Event]) -> None:
    """The law of restore: of the same batch the same answers, facts and instructions, in the same order. It wakes up no
    later, for what was looked at in vain is looked at again; but that somebody is worth another try at once is a
    memory, and so is when there may be another chance, if there is none by then."""
    other = twin.handle(batch, living.at)
    for name in ("seq", "at", "answers", "facts", "instructions"):
        mine, theirs = getattr(living, name), getattr(other, name)
        require(mine == theirs, RESTORE_LAW, f"entry {living.seq}: {name} {_difference(mine, theirs)}")
    if living.wake_at is not None and living.wake_at > living.at:
        in_time = other.wake_at is not None and other.wake_at <= living.wake_at
        in_time = in_time or not Kernel(twin.world.fork()).handle([], living.wake_at).facts
        require(in_time, RESTORE_LAW, f"entry {living.seq}: wakes at {other.wake_at}, living at {living.wake_at}")


def check_shadows(before: World, outcome: Outcome, after: World) -> None:
    """Whoever cast a shadow could still start by then, if what runs ends as it is foreseen to: counted anew, lease by
    lease."""
    grown = {item.job: item for item in outcome.facts if isinstance(item, fact.Grown)}
    for shadow in shadows_in(before, outcome):
        seats, spec = [astuple(lease) for lease in shadow.leases], after.jobs[shadow.job].spec
        parts = cut(shadow.job, spec, seats)
        for slot in dict.fromkeys(lease.slot for lease in shadow.leases):
            stays = Holding()
            for job, where, tasks, devices, end in _firm_leases(after, outcome.at, spec.yields, grown):
                if where == slot and (end is None or max(end, outcome.at) > shadow.at):
                    stays.add(job.spec.ask, tasks, devices)
            planned = [(each.ask, *seat[1:]) for each, mine in parts for seat in mine if seat[0] == slot]
            fits = all(stays.add(*each) for each in planned)
            fits = fits and min(stays.left_of(after.fleet.capacities[slot])) >= 0
            require(fits, "no start delays a shadow", f"job {shadow.job} by {shadow.at} on {after.fleet.names[slot]}")


def _firm_leases(
    world: World, now: int, for_guest: bool, grown: Mapping[int, fact.Grown]
) -> Iterator[tuple[Job, int, int, int, Limit]]:
    """All that is held, and until when at the latest, but for what elastic gangs have beyond their least: who waits
    gets that back. To a guest no guest gives way."""
    for job, slot, count, devices in leases_of(world):
        if job.id not in world.widths.elastic and not job.spec.array:
            yield job, slot, count, devices, world.ends.foreseen(job.id, now, for_guest=for_guest)
    for number in world.widths.elastic:
        job = world.jobs[number]
        least = least_part(job) if number not in grown else _least_before(job, grown[number])
        firm = (*least, *spares_of(job))
        end = world.ends.foreseen(number, now, for_guest=for_guest)
        yield from ((job, lease.slot, lease.tasks, lease.devices, end) for lease in firm)
    for number, tasks in sorted(world.arrays.items()):
        job = world.jobs[number]
        for task, phase in enumerate(tasks.phase):
            if phase in HOLDING:
                yield job, tasks.slot[task], 1, tasks.devices[task], _end_of_task(job, phase, tasks.since[task])


def _least_before(job: Job, grown: fact.Grown) -> list[Lease]:
    """What a gang could not do without before it grew, which comes after the cycle: with what it got, the first devices
    that it has on a node may be others."""
    ask, before = job.spec.ask, list[Lease]()
    more = dict(zip(grown.slots, zip(grown.tasks, grown.devices, strict=True), strict=True))
    for lease in ranks_of(job):
        tasks, devices = more.get(lease.slot, (0, 0))
        if lease.tasks > tasks:
            before.append(Lease(lease.slot, lease.tasks - tasks, lease.devices & ~(0 if ask.gpu_milli else devices)))
    return split_leases(before, job.spec.gang, ask)[0]


def _end_of_task(job: Job, phase: int, since: int) -> Limit:
    """A task goes by its own limit, wherever it got: who was told to stop may be gone at any moment."""
    limit_ms = job.spec.limit_ms
    return None if limit_ms is None else since if phase == TaskPhase.STOPPING else since + limit_ms


def shadows_in(before: World, outcome: Outcome) -> list[Shadow]:
    """The shadows of the cycle that ended a batch: that cycle again, on what the batch made of the world before it."""
    seen: list[Shadow] = []
    is_over = False
    for item in outcome.facts:
        is_of_cycle = _is_of_cycle(item)
        is_over = is_over or is_of_cycle
        if _is_after_cycle(item) or (is_over and not is_of_cycle):
            break
        if not is_of_cycle:
            apply(before, item, outcome.at)
    before.budgets.now = outcome.at
    run_cycle(before, outcome.at, "", seen)
    return seen


def _is_after_cycle(item: fact.Fact) -> bool:
    """Whose places are taken and who grows is decided after the cycle."""
    if isinstance(item, fact.StopAsked):
        return item.why in (*TAKEN, Why.SHRINK, Why.YIELD) or item.cause.startswith(ROOM)
    if isinstance(item, fact.ShrinkAsked):
        return item.cause.startswith(FOR_JOB)
    if isinstance(item, fact.Claimed):
        return item.cause not in (repair.LEFT, MOVED)
    return isinstance(item, fact.SparesGiven) or (isinstance(item, fact.Grown) and item.cause != repair.INSTEAD)


def _is_of_cycle(item: fact.Fact) -> bool:
    if isinstance(item, fact.ClaimDropped):
        return item.cause in [outlook.value for outlook in Outlook]
    return isinstance(item, fact.Placed | fact.TasksPlaced) and item.cause.startswith("cycle ")


def check_nobody_overslept(world: World) -> None:
    """A shape that sleeps does not fit, unless all its lines are over their quota or take turns; and a line that stands
    outside its guarantee has no room where it would stand better."""
    law = "nobody who could start is asleep"
    for key, shape in world.queue.shapes.items():
        for line in shape.lines.values():
            if line.band[0] != INSIDE:
                pools = pools_within(world, line.tenant, shape, line.band[0] - 1)
                room = _room_for(world, shape, pools)
                require(room < shape.gang, law, f"{line.tenant}, {key}: room for {room} in pools {pools}")
        if (
            shape in world.queue.awake
            or shape in world.queue.shadowed
            or all(line.band[0] == OVER or is_on_floor(world, line) for line in shape.lines.values())
        ):
            continue
        room = _room_for(world, shape)
        require(room < shape.gang, law, f"{key}: room for {room}, gang of {shape.gang}")


def _room_for(world: World, shape: Shape, pools: Pools = None) -> int:
    """How many of a gang's tasks could start where it may: in its booking, if it has one."""
    fleet, spec = world.fleet, world.jobs[next(iter(shape.lines.values())).head()].spec
    is_booked = shape.needs.booking in world.bookings
    with only(fleet, own_slots(world, spec, world.now)) if is_booked else contextlib.nullcontext():
        return widest_room(fleet, shape.ask, shape.gang, shape.needs, pools)


def _difference(mine: object, theirs: object) -> str:
    if isinstance(mine, list) and isinstance(theirs, list):
        for index, pair in enumerate(zip(mine, theirs, strict=False)):
            if pair[0] != pair[1]:
                return f"[{index}]: living {pair[0]}, other {pair[1]}"
    return f"living {mine}, other {theirs}"
