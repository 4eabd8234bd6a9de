"""The goodput account: every moment of every accelerator in one bucket, in thousandths of a device times milliseconds.

Of devices that nobody holds there is a *stock* per flavor. While nothing changes each of its parts (all, idle, barred,
gone, kept, claimed) grows as a straight line, so a change is one step of a slope and nothing has to tick. Idle time is
split by who waits: see `muster.world.accounting`. Of what is held, spans are booked when they end, by tenant and
flavor, and those that have not ended follow from the jobs' own phases when somebody asks. So the two halves come about
in different ways, and that they add up is a law. What is useful is decided by the rule of `docs/concepts/goodput.md`,
and nothing here knows why a run ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec

from muster.model.fact import Progressed, TasksProgressed
from muster.model.goodput import Bucket, Mark
from muster.model.job import Job, NodePhase
from muster.model.partition import devices_in
from muster.model.phase import ACTIVE, Lease, Run, Running, Starting, Stopping, TaskPhase
from muster.model.ranges import Ranges, as_ranges, tasks_in
from muster.model.spec import Spec, has_devices
from muster.units import Resources
from muster.world.arena import DEVICE
from muster.world.diary import Diary
from muster.world.fleet import Fleet
from muster.world.marks import Marks
from muster.world.tasks import WRITING, Tasks

ALL, IDLE, BARRED, GONE, KEPT, CLAIMED = range(6)
"""The parts of a stock: all devices there are, and of those that nobody holds, where they stand. Those of nodes whose
booking is open are kept for it; of other nodes that are open, what somebody claims is claimed."""
PARTS: Final = 6
BOOKED_NODE: Final = -1
"""Of a node whose booking is open, all devices are kept."""
USEFUL, LOST, STARTING, RESTARTING, STOPPING, SPARE, CHECKPOINTING = range(7)
"""What is booked of devices that are held."""
PROVISIONAL: Final = 7
"""What has not ended and may yet be of use or lost: never booked."""
BOOKED: Final = (
    *(Bucket.USEFUL, Bucket.LOST, Bucket.STARTING, Bucket.RESTARTING, Bucket.STOPPING, Bucket.SPARE),
    Bucket.CHECKPOINTING,
)
Parts: TypeAlias = tuple[int, int, int, int, int, int]
Times: TypeAlias = dict[Bucket, int]
Span: TypeAlias = tuple[int, int, int]
"""What a stretch of time was spent on, when it began and when it ended."""
NO_PARTS: Final[Parts] = (0, 0, 0, 0, 0, 0)
_TIMES: Final = PARTS + 2
_UP: Final = int(NodePhase.UP)  # a plain int: enum members are slow to compare


def devices_of(ask: Resources, tasks: int = 1) -> int:
    """Thousandths of devices that tasks hold."""
    return (DEVICE * ask.gpus + ask.gpu_milli) * tasks


def parts_of(fleet: Fleet, slot: int) -> Parts:
    """How many thousandths of devices a node has, and where those stand that nobody holds: a device that is not there,
    or whose node is not heard of, is gone."""
    whole = DEVICE * fleet.capacities[slot].gpus
    if not whole:
        return NO_PARTS
    unheld = whole - (0 if fleet.is_idle(slot) else fleet.held(slot)[0])
    if fleet.phase[slot] != NodePhase.UP:
        return whole, 0, 0, unheld, 0, 0
    lacking = fleet.lacking_milli(slot) if slot in fleet.lacks else 0
    free = unheld - lacking
    if slot in fleet.bars:
        return whole, 0, free, lacking, 0, 0
    if find_kept(fleet, slot) == BOOKED_NODE:
        return whole, 0, 0, lacking, free, 0
    claimed = claimed_milli(fleet, slot)
    return whole, free - claimed, 0, lacking, 0, claimed


def claimed_milli(fleet: Fleet, slot: int) -> int:
    """Thousandths of devices that nobody holds and somebody claims, on a node that is open and not a booking's."""
    if slot not in fleet.claimed or not fleet.is_open(slot) or find_kept(fleet, slot) == BOOKED_NODE:
        return 0
    return fleet.kept_back(slot)[0]


def find_kept(fleet: Fleet, slot: int) -> int | None:
    """Which devices of a node are kept for somebody, as bits: all of one whose booking is open, or those that are
    claimed. None of a node like most others."""
    keeping = fleet.booked.get(slot)
    if keeping is not None and keeping.is_open:
        return BOOKED_NODE
    return fleet.claimed[slot].devices if slot in fleet.claimed else None


class Stock:
    """All devices of a flavor: in each part, up to an instant t, `offsets + levels * t` was spent; and how much of the
    idle time somebody waited who was over the quota (`blocked`), or within it (`fragmented`)."""

    __slots__ = ("blocked", "flavor", "fragmented", "levels", "offsets")

    def __init__(self, flavor: str) -> None:
        self.flavor = flavor
        self.levels = [0] * PARTS
        self.offsets = [0] * PARTS
        self.blocked = 0
        self.fragmented = 0

    def step(self, part: int, amount: int, at: int) -> None:
        """A part has so much more from now on; its own inverse with the opposite sign."""
        self.levels[part] += amount
        self.offsets[part] -= amount * at

    def time(self, part: int, at: int) -> int:
        """What was spent in a part up to an instant."""
        return self.offsets[part] + self.levels[part] * at

    def fork(self) -> Stock:
        """An independent copy."""
        twin = Stock(self.flavor)
        twin.levels, twin.offsets = self.levels.copy(), self.offsets.copy()
        twin.blocked, twin.fragmented = self.blocked, self.fragmented
        return twin


class Carry(NamedTuple):
    """What a run did since its last checkpoint with other widths, or before it began to write the next one, up to an
    instant, and may yet be lost: flavor, thousandths of devices, from and to when."""

    at: int
    spans: tuple[tuple[str, int, int, int], ...] = ()


class Goodput:
    """The account. Its stocks are by flavor and `by_slot`; `booked` is by tenant and flavor; `marks` are of gangs, for
    tasks have theirs beside their columns, and `saves` are at which step a next run of theirs could resume; `kept` says
    by slot which devices are kept for somebody, as `find_kept` does; `carries` is what runs did before they got the
    width that they have. Nothing before `since` counts, and idle time is split up to `at`. What is booked also goes
    into the `diary`, if somebody keeps one; it is nobody's content and no fork has it."""

    __slots__ = ("at", "booked", "by_slot", "carries", "diary", "kept", "marks", "saves", "since", "stocks")

    def __init__(self) -> None:
        self.since = 0
        self.at = 0
        self.stocks: dict[str, Stock] = {}
        self.by_slot: list[Stock] = []
        self.booked: dict[tuple[str, str], list[int]] = {}
        self.marks: dict[int, Mark] = {}
        self.saves: dict[int, int] = {}
        self.kept: dict[int, int] = {}
        self.diary: Diary | None = None
        self.carries: dict[int, Carry] = {}

    # -- what nobody holds ---------------------------------------------------------------------------------------

    def settle(self, fleet: Fleet, slot: int) -> None:
        """Say what a slot's flavor is, now that it is known; whoever changes it counts the node off and on again."""
        flavor = fleet.flavor(slot)
        stock = self.stocks.get(flavor)
        if stock is None:
            stock = self.stocks[flavor] = Stock(flavor)
        if slot == len(self.by_slot):
            self.by_slot.append(stock)
        else:
            self.by_slot[slot] = stock

    def count(self, fleet: Fleet, slot: int, sign: int, at: int) -> None:
        """Count a node on (1) or off (-1)."""
        stock = self.by_slot[slot]
        for part, amount in enumerate(parts_of(fleet, slot)):
            if amount:
                stock.step(part, sign * amount, at)

    def note_kept(self, fleet: Fleet, slot: int) -> None:
        """Say what is kept of a node; whoever changes it counts the node off and on again."""
        kept = find_kept(fleet, slot)
        self.kept.pop(slot, None)
        if kept is not None:
            self.kept[slot] = kept

    def claim(self, slot: int, more: int, at: int) -> None:
        """So many thousandths of idle devices of a node are claimed from now on, or with a minus are idle again."""
        if more:
            self.by_slot[slot].step(CLAIMED, more, at)
            self.by_slot[slot].step(IDLE, -more, at)

    def take(self, ask: Resources, leases: Sequence[Lease], at: int, sign: int = 1) -> None:
        """Leases begin on nodes that are open, or with the sign -1 end there; those without devices are in no
        account."""
        each, by_slot, kept = sign * (DEVICE * ask.gpus + ask.gpu_milli), self.by_slot, self.kept
        for lease in leases if each else ():
            slot, amount = lease.slot, each * lease.tasks
            if slot in kept:
                self._step_kept(lease, -amount, at)
            else:
                stock = by_slot[slot]
                stock.levels[IDLE] -= amount
                stock.offsets[IDLE] += amount * at

    def shut(self, fleet: Fleet, ask: Resources, lease: Lease, at: int) -> None:
        """A lease that ended did so on a node that is not open, and lacks nothing: nothing of it is idle."""
        self.take(ask, [lease], at)
        part = GONE if fleet.phase[lease.slot] != _UP else BARRED
        self.by_slot[lease.slot].step(part, devices_of(ask, lease.tasks), at)

    def _step_kept(self, lease: Lease, amount: int, at: int) -> None:
        """So much more is free from now on, of the devices of a lease on a node of which something is kept."""
        stock, kept, named = self.by_slot[lease.slot], self.kept[lease.slot], devices_in(lease.devices)
        if kept == BOOKED_NODE:
            stock.step(KEPT, amount, at)
            return
        claimed = amount // named.bit_count() * (named & kept).bit_count()  # the same of each device of a lease
        stock.step(CLAIMED, claimed, at)
        stock.step(IDLE, amount - claimed, at)

    def restore(self, fleet: Fleet, times: Mapping[str, Sequence[int]], at: int) -> None:
        """So much was spent up to now in the first four parts, blocked and fragmented, and in the other parts if
        anything was; levels are those of the nodes."""
        for flavor in (*self.stocks, *times):
            stock = self.stocks[flavor] = self.stocks.get(flavor) or Stock(flavor)
            row = (*times.get(flavor, ()), *(0,) * _TIMES)[:_TIMES]
            stock.blocked, stock.fragmented = row[KEPT : KEPT + 2]
            stock.levels, stock.offsets = [0] * PARTS, [*row[:KEPT], *row[KEPT + 2 :]]
        for slot in range(len(fleet)):
            self.count(fleet, slot, 1, at)
        self.at = at

    def spent(self, at: int) -> dict[str, list[int]]:
        """What `restore` wants to know, by flavor; of those that never had a device, nothing."""
        found = {}
        for flavor in sorted(self.stocks):
            stock = self.stocks[flavor]
            parts = [stock.time(part, at) for part in range(PARTS)]
            times = [*parts[:KEPT], stock.blocked, stock.fragmented, *parts[KEPT:]]
            if any(times):
                found[flavor] = trimmed(times, KEPT + 2)
        return found

    # -- what is held --------------------------------------------------------------------------------------------

    def close(self, job: Job, run: Run, at: int, *, is_useful: bool) -> None:
        """The phase of a gang that holds places by this run ends: book what it was spent on."""
        held = self._held(job.spec, run.leases)
        if held:
            ran_as = USEFUL if is_useful else LOST
            self._book(job, held, self._spans(job, at, ran_as))
            if job.id in self.carries:
                self._book_carry(job, ran_as)

    def carry(self, job: Job, at: int) -> None:
        """A run gets another width, or begins or ceases to write a checkpoint: what it did so far may yet be of use or
        lost, and what it wrote was spent on that."""
        held, (start, *ran) = self._held(job.spec, _leases_of(job)), self._spans(job, at)
        self._book(job, held, (start, *(span for span in ran if span[0] == CHECKPOINTING)))
        done = [(begin, end) for kind, begin, end in ran if kind == PROVISIONAL and begin < end]
        now = [(*each, *span) for each in held for span in done]
        if ran:
            self.carries[job.id] = Carry(at, (*self.carries.get(job.id, Carry(at)).spans, *now))

    def close_spares(self, job: Job, at: int) -> None:
        """A gang gets other spares than it has, or none: book for how long it had these."""
        if isinstance(job.phase, ACTIVE):
            run = job.phase.run
            self._book(job, self._held(job.spec, run.spares), ((SPARE, max(run.spared_at, self.since), at),))

    def saved_at(self, job: int, since: int) -> int:
        """From when on what a run does, which began then, would be lost."""
        mark = self.marks.get(job)
        return since if mark is None else max(since, mark.saved_at)

    def mark(self, job: Job, item: Progressed, at: int) -> None:
        """A run is so far. If it is checkpointed, what it did up to now is of use, whatever becomes of it; what it does
        while it writes one is that, and nothing else."""
        known, step, writes = self.marks.get(job.id, Mark(0)), item.step, item.checkpointing
        if not item.checkpointed:
            if writes != known.is_writing and has_devices(job.spec):
                self.carry(job, at)
            self.marks[job.id] = msgspec.structs.replace(known, step=step, is_writing=writes)
            return
        self._book(job, self._held(job.spec, _leases_of(job)), self._spans(job, at, USEFUL)[1:])
        if job.id in self.carries:
            self._book_carry(job, USEFUL)
            self.carries[job.id] = Carry(at)
        self.marks[job.id] = Mark(step, step, at)
        self.saves[job.id] = step

    def close_tasks(self, job: Job, tasks: Tasks, ranges: Ranges, at: int, *, is_useful: bool = False) -> None:
        """The phases of tasks that hold devices end; they are in none until somebody says so."""
        ran_as = USEFUL if is_useful else LOST
        for flavor, kind, amount, begin in self._task_spans(job, tasks, ranges):
            self._book(job, ((flavor, amount),), ((ran_as if kind == PROVISIONAL else kind, begin, at),))
        if tasks.marks is not None and tasks.marks.carries:
            for flavor, amount, (begin, end) in self._carried(job, tasks, tasks_in(ranges)):
                self._book(job, ((flavor, amount),), ((ran_as, begin, end),))

    def mark_tasks(self, job: Job, tasks: Tasks, item: TasksProgressed, at: int) -> None:
        """Tasks that run are so far: the same as `mark`, each by itself."""
        marks, ranges = tasks.know_marks(), item.ranges
        if item.checkpointed:
            if has_devices(job.spec):
                self.close_tasks(job, tasks, ranges, at, is_useful=True)
            marks.save(ranges, item.step, at)
            return
        turning = marks.find_turning(ranges, item.checkpointing)
        if has_devices(job.spec):
            for task in turning:
                self._turn_task(job, tasks, marks, task, at)
        marks.turn(turning, item.checkpointing, at)
        marks.tell(ranges, item.step)

    def _turn_task(self, job: Job, tasks: Tasks, marks: Marks, task: int, at: int) -> None:
        """A task begins or ceases to write a checkpoint: what it wrote was spent on that, and what it did so far may
        yet be of use or lost."""
        begin = max(tasks.since[task], marks.since[task])
        if marks.writes[task]:
            flavor = self.by_slot[tasks.slot[task]].flavor
            self._book(job, ((flavor, devices_of(job.spec.ask)),), ((CHECKPOINTING, begin, at),))
        elif begin < at:
            marks.carries[task] = (*marks.carries.get(task, ()), (begin, at))

    def _carried(self, job: Job, tasks: Tasks, some: Iterable[int]) -> Iterator[tuple[str, int, tuple[int, int]]]:
        """What some tasks did before they began to write a checkpoint that is not written: by flavor, thousandths of
        devices, from and to when."""
        carries = tasks.marks.carries if tasks.marks is not None else {}
        for task in some:
            for stretch in carries.get(task, ()):
                yield self.by_slot[tasks.slot[task]].flavor, devices_of(job.spec.ask), stretch

    def open_spans(self, job: Job, tasks: Tasks | None, at: int) -> Iterator[tuple[str, int, Span]]:
        """What a job that holds devices spends in phases that have not ended: by flavor, thousandths of devices."""
        if not has_devices(job.spec):
            return
        if tasks is not None:
            for flavor, kind, amount, begin in self._task_spans(job, tasks, as_ranges(0, len(tasks))):
                yield flavor, amount, (kind, begin, at)
            for flavor, amount, (begin, end) in self._carried(job, tasks, tasks.marks.carries if tasks.marks else ()):
                yield flavor, amount, (PROVISIONAL, begin, end)
        elif isinstance(job.phase, ACTIVE):
            yield from self._gang_spans(job, job.phase.run, at)

    def _gang_spans(self, job: Job, run: Run, at: int) -> Iterator[tuple[str, int, Span]]:
        for span in self._spans(job, at):
            for ask, leases in job.spec.parts(run.leases):
                for lease in leases:
                    yield self.by_slot[lease.slot].flavor, devices_of(ask, lease.tasks), span
        if job.id in self.carries:
            for flavor, amount, begin, end in self.carries[job.id].spans:
                yield flavor, amount, (PROVISIONAL, begin, end)
        for lease in run.spares:
            span = (SPARE, max(run.spared_at, self.since), at)
            yield self.by_slot[lease.slot].flavor, devices_of(job.spec.ask, lease.tasks), span

    def fork(self) -> Goodput:
        """An independent copy."""
        twin = Goodput()
        twin.since, twin.at, twin.marks, twin.kept = self.since, self.at, self.marks.copy(), self.kept.copy()
        twin.carries, twin.saves = self.carries.copy(), self.saves.copy()
        twins = {stock: stock.fork() for stock in self.stocks.values()}
        twin.stocks = {stock.flavor: stock for stock in twins.values()}
        twin.by_slot = list(map(twins.__getitem__, self.by_slot))  # a loop over all slots would be a fifth of a fork
        twin.booked = {key: row.copy() for key, row in self.booked.items()}
        return twin

    def _spans(self, job: Job, at: int, ran_as: int = PROVISIONAL) -> tuple[Span, ...]:
        """What a gang's phase was spent on since it began: of one that runs, its start comes first. What it ran for
        turned out so, if it has ended."""
        phase, since = job.phase, self.since
        if type(phase) is Running:
            began = phase.since if phase.since > since else since  # as `max` would say, at half the cost
            placed = phase.run.since if phase.run.since > since else since
            mark = self.marks.get(job.id) if self.marks else None
            ran_since = began if mark is None else max(began, mark.saved_at)
            if self.carries and job.id in self.carries:  # what came before it is booked, or carried
                does = CHECKPOINTING if mark is not None and mark.is_writing else ran_as
                return (STARTING, at, at), (does, max(ran_since, self.carries[job.id].at), at)
            return (RESTARTING if job.epoch > 1 else STARTING, placed, began), (ran_as, ran_since, at)
        if isinstance(phase, Starting):
            return ((RESTARTING if job.epoch > 1 else STARTING, max(phase.run.since, since), at),)
        return ((STOPPING, max(phase.since, since), at),) if isinstance(phase, Stopping) else ()

    def _task_spans(self, job: Job, tasks: Tasks, ranges: Ranges) -> Iterator[tuple[str, int, int, int]]:
        """What tasks of an array are at: flavor, kind, thousandths of devices, and since when. Where there is one
        flavor, nobody looks on which node they are."""
        each, has_flavors = devices_of(job.spec.ask), len(self.stocks) > 1
        for age in tasks.ages(ranges, has_flavors, tasks.marks):
            if age.phase in _KIND_OF:
                is_restart = age.is_again and age.phase == TaskPhase.STARTING
                kind = RESTARTING if is_restart else _KIND_OF[age.phase]
                yield self.by_slot[age.slot].flavor, kind, each * age.tasks, age.since

    def _book_carry(self, job: Job, ran_as: int) -> None:
        for flavor, amount, begin, end in self.carries.pop(job.id).spans:
            self._book(job, ((flavor, amount),), ((ran_as, begin, end),))

    def _held(self, spec: Spec, leases: Sequence[Lease]) -> list[tuple[str, int]]:
        """Thousandths of devices that leases of a gang hold, if any, by what they ask for and flavor."""
        if len(leases) == 1 and not spec.needs.groups:  # as most have it
            each, lease = DEVICE * spec.ask.gpus + spec.ask.gpu_milli, leases[0]
            return [(self.by_slot[lease.slot].flavor, each * lease.tasks)] if each else []
        parts = [(each, part) for ask, part in spec.parts(leases) if (each := devices_of(ask))]
        return [(flavor, each * tasks) for each, part in parts for flavor, tasks in self._by_flavor(part)]

    def _by_flavor(self, leases: Sequence[Lease]) -> Iterable[tuple[str, int]]:
        """How many tasks are on each flavor."""
        tasks: dict[str, int] = {}
        for lease in leases:
            flavor = self.by_slot[lease.slot].flavor
            tasks[flavor] = tasks.get(flavor, 0) + lease.tasks
        return tasks.items()

    def _book(self, job: Job, held: Sequence[tuple[str, int]], spans: Sequence[Span]) -> None:
        """So many thousandths of devices of some flavors were held for these spans."""
        for flavor, amount in held:
            key = (job.spec.tenant, flavor)
            row = self.booked.get(key)
            for kind, begin, end in spans:
                if begin < end:
                    if row is None:
                        row = self.booked[key] = [0] * len(BOOKED)
                    row[kind] += amount * (end - begin)
            if self.diary is not None:
                for span in spans:
                    self.diary.spend(job, flavor, amount, span)


def trimmed(amounts: list[int], least: int) -> list[int]:
    """Amounts as a snapshot has them: of those behind the first few, which there were always, none that is nothing."""
    end = len(amounts)
    while end > least and not amounts[end - 1]:
        end -= 1
    return amounts[:end]


def _leases_of(job: Job) -> Sequence[Lease]:
    return job.phase.run.leases if isinstance(job.phase, ACTIVE) else ()


_KIND_OF: Final[dict[int, int]] = {
    TaskPhase.STARTING: STARTING,
    TaskPhase.RUNNING: PROVISIONAL,
    TaskPhase.STOPPING: STOPPING,
    WRITING: CHECKPOINTING,
}
