"""The pages of the auditor's books: what the facts say of one job, and of one node."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import msgspec

from muster.model import fact
from muster.model.job import Bar, BarKind, Meter, NodePhase
from muster.model.node import NO_LACK, Lack, Said, Traits, flavor_of
from muster.model.phase import (
    RESIZED,
    STOPS,
    Cancelled,
    Failed,
    Queued,
    Running,
    Spread,
    Starting,
    Stopping,
    Succeeded,
    TaskPhase,
    Why,
)
from muster.model.spec import Spec
from muster.units import AMOUNT_MAX, Limit, Resources
from muster.world.arena import DEVICE
from muster.world.goodput import Parts
from muster.world.laws.holding import Holding
from muster.world.laws.law import require
from muster.world.tasks import HOLDING, NOWHERE

SPREAD: Final = -1
"""The phase of an array: each of its tasks has one of its own."""
PHASE_OF: Final[dict[type, int]] = {
    Queued: TaskPhase.QUEUED,
    Starting: TaskPhase.STARTING,
    Running: TaskPhase.RUNNING,
    Stopping: TaskPhase.STOPPING,
    Succeeded: TaskPhase.SUCCEEDED,
    Failed: TaskPhase.FAILED,
    Cancelled: TaskPhase.CANCELLED,
    Spread: SPREAD,
}


SENT_BACK: Final = "what is sent back to the queue does not end"


class JobBook:
    """What the facts say of one job. `ranks` are 0 before, 1 up, 2 over, 3 left; `why` is why its run was last told to
    stop; `end` is when its run ends at the latest, while it holds anything, and from `yields_at` on it yields;
    `shrinks_to` is the width to come, or 0. `leases` are the places of its ranks, `spares` the others. Of tasks of an
    array, `began` has when they were last up, and `whys` why those are to stop that are."""

    __slots__ = (
        "began",
        "devices",
        "end",
        "epoch",
        "epochs",
        "held",
        "leases",
        "meter",
        "phase",
        "phases",
        "ranks",
        "shrinks_to",
        "slots",
        "spares",
        "spec",
        "why",
        "whys",
        "yields_at",
    )

    def __init__(self, spec: Spec, *, follows: bool = False) -> None:
        self.spec = spec
        self.phase: int = SPREAD if spec.array else TaskPhase.QUEUED
        self.epoch = 0
        self.why = Why.EXIT
        self.end: Limit = None
        self.yields_at: Limit = None
        self.held = spec.held
        self.leases: list[tuple[int, int, int]] = []
        self.spares: list[tuple[int, int, int]] = []
        self.meter: Meter | None = None
        self.ranks = bytearray()
        self.shrinks_to = 0
        ready = 0 if follows else min(spec.at_most or spec.array, spec.array)
        self.phases = bytearray([TaskPhase.QUEUED]) * ready + bytearray([TaskPhase.BLOCKED]) * (spec.array - ready)
        self.epochs = array("i", bytes(4 * spec.array))
        self.slots = array("i", [NOWHERE]) * spec.array
        self.devices = array("q", bytes(8 * spec.array))
        self.whys = bytearray(spec.array)
        self.began = array("q", bytes(8 * spec.array))

    def scale(self, item: fact.Scaled) -> None:
        """It has other bounds."""
        law = "bounds are at least one, the least first"
        require(1 <= item.least <= item.most, law, f"job {item.job}: {item.least} to {item.most}")
        if self.spec.array:
            self.spec = msgspec.structs.replace(self.spec, at_most=item.most)
            return
        self.spec = msgspec.structs.replace(self.spec, gang=item.least, gang_most=item.most)

    def seat_task(self, task: int, slot: int, devices: int) -> int:
        """One more try of a task is there, with its part of the devices; what is left of them for others."""
        mine, left = (devices, devices) if self.spec.ask.gpu_milli else deal(devices, self.spec.ask.gpus)
        self.devices[task], self.slots[task] = mine, slot
        self.epochs[task] += 1
        return left

    def goes_on(self, slot: int) -> bool:
        """Whether it has tasks on a slot that nobody told to stop."""
        if not self.spec.array:
            return self.phase in (TaskPhase.STARTING, TaskPhase.RUNNING)
        here = [self.phases[task] for task, at in enumerate(self.slots) if at == slot]
        return TaskPhase.STARTING in here or TaskPhase.RUNNING in here

    def check_throttle(self, number: int) -> None:
        """Tasks of an array have started: no more hold places than may be at it at once."""
        holding, most = sum(self.phases.count(phase) for phase in HOLDING), self.spec.at_most
        require(not most or holding <= most, "no more tasks are at it than may be", f"job {number}: {holding}")

    def begin_tasks(self, first: int, count: int, at: int) -> None:
        """Tasks of an array are up."""
        self.began[first : first + count] = array("q", [at]) * count

    def stop_tasks(self, number: int, first: int, count: int, why: Why, at: int) -> None:
        """Tasks of an array are to stop, for a reason: for their limit if they ran for as long, and not sooner."""
        if why == Why.LIMIT:
            limit_ms = AMOUNT_MAX if self.spec.limit_ms is None else self.spec.limit_ms
            due = max(self.began[first : first + count]) + limit_ms
            require(due <= at, "no task is stopped before its limit", f"job {number}: tasks from {first} at {at}")
        self.whys[first : first + count] = bytes([STOPS.index(why)]) * count

    @property
    def is_moving(self) -> bool:
        """Whether a gang was told to go on elsewhere, and is not gone yet."""
        return self.phase == TaskPhase.STOPPING and self.why == Why.MIGRATE

    def are_moving(self, movers: Sequence[int]) -> bool:
        """Whether some tasks of an array were told to go on elsewhere, each of them, or wait for it."""
        told = [task for task in movers if self.phases[task] == TaskPhase.STOPPING]
        waits = all(self.phases[task] == TaskPhase.QUEUED for task in movers if task not in told)
        return bool(movers) and waits and all(STOPS[self.whys[task]] == Why.MIGRATE for task in told)

    def end_tasks(self, number: int, first: int, count: int, after: TaskPhase, why: Why) -> None:
        """Tasks of an array give their places back: those that were to stop have failed if it was for their limit, else
        they wait again; for the same reason."""
        if TaskPhase.STOPPING not in self.phases[first : first + count]:
            return
        told = [STOPS[kind] for kind in range(len(STOPS)) if kind in self.whys[first : first + count]]
        right = TaskPhase.FAILED if told == [Why.LIMIT] else TaskPhase.QUEUED
        where = f"job {number}: tasks from {first} were told to stop, now {after.name}"
        require(after in (right, TaskPhase.CANCELLED), SENT_BACK, where)
        same = after == TaskPhase.CANCELLED or told == [why]
        require(same, "what was told to stop says what it was for", f"job {number}, tasks from {first}: {told}, {why}")
        self.whys[first : first + count] = bytes(count)

    def grow(self, number: int, more: list[tuple[int, int, int]]) -> None:
        """Its run has places more: it has only just got the others, or it bears it in place."""
        count = sum(tasks for _, tasks, _ in more)
        is_fresh, width = self.phase == TaskPhase.STARTING, len(self._members()) + count
        bears = is_fresh or (self.phase == TaskPhase.RUNNING and self.spec.in_place and not self.shrinks_to)
        require(bears, "only a run that bears it grows", f"job {number}")
        require(width <= self.spec.gang_most, "no run is wider than it may be", f"job {number}: {width}")
        self.ranks += bytes(count)
        if not is_fresh:
            self.leases += more
            return
        places: dict[int, tuple[int, int, int]] = {}
        for slot, tasks, devices in (*self.leases, *more):
            _, before, mask = places.get(slot, (slot, 0, 0))
            places[slot] = (slot, before + tasks, mask | devices)
        self.leases = list(places.values())

    def ask_shrink(self, item: fact.ShrinkAsked) -> None:
        """The last ranks of its run are to leave."""
        runs = self.phase == TaskPhase.RUNNING and self.spec.in_place
        width = self.shrinks_to or len(self._members())
        require(runs and item.width < width, "only a run that bears it shrinks", f"job {item.job}")
        self._check_least(item.job, item.width)
        self.shrinks_to = item.width

    def shrink(self, item: fact.Shrunk) -> list[tuple[int, int, int]]:
        """They are gone: their places, from the last on."""
        require(item.width == self.shrinks_to, "a run shrinks to what was asked", f"job {item.job}: {item.width}")
        self._check_least(item.job, item.width)
        leaving = self._members()[item.width :]
        over = all(self.ranks[rank] == 2 for rank in leaving)
        require(over, "who leaves is over", f"job {item.job}: {leaving}")
        gone: list[tuple[int, int, int]] = []
        count = len(leaving)
        while count:
            slot, tasks, devices = self.leases.pop()
            stay = max(0, tasks - count)
            mine, devices = deal(devices, self.spec.ask.gpus * stay)  # the lowest stay with those who stay
            if stay:
                self.leases.append((slot, stay, mine))
            gone.append((slot, tasks - stay, devices))
            count -= tasks - stay
        for rank in leaving:
            self.ranks[rank] = 3
        self.shrinks_to = 0
        return gone

    def lose(self, item: fact.RanksLost) -> list[tuple[int, int, int]]:
        """Ranks of its run are lost, and it goes on with the others: their places."""
        members, lost = self._members(), range(item.first, item.first + item.count)
        bears = self.phase == TaskPhase.RUNNING and self.spec.in_place and not self.shrinks_to
        require(bears, "only a run that bears it goes on without some", f"job {item.job}")
        alive = all(rank in members and self.ranks[rank] < 2 for rank in lost)
        require(alive and len(members) > item.count, "only some that are alive are lost", f"job {item.job}: {lost}")
        kept, gone = list[tuple[int, int, int]](), list[tuple[int, int, int]]()
        place, begin = 0, members.index(item.first)
        for slot, tasks, left in self.leases:
            devices = left
            for side, end in ((kept, begin), (gone, begin + item.count), (kept, place + tasks)):
                count = min(max(0, end - place), tasks)
                if count:
                    mine, devices = deal(devices, self.spec.ask.gpus * count)
                    side.append((slot, count, left if self.spec.ask.gpu_milli else mine))
                    place, tasks = place + count, tasks - count
        self.leases = kept
        for rank in lost:
            self.ranks[rank] = 3
        return gone

    def places(self) -> list[tuple[int, int, int]]:
        """All that it holds."""
        return [*self.leases, *self.spares]

    def part_spares(self) -> None:
        """It has just got all its places: those beyond its ranks are spares."""
        self.leases, self.spares = self._split(self.leases, self.spec.gang)

    def give_spares(self, number: int, more: list[tuple[int, int, int]]) -> None:
        """Its run has spares more."""
        goes_on = self.phase in (TaskPhase.STARTING, TaskPhase.RUNNING) and not self.held
        require(goes_on, "only a run that goes on gets spares", f"job {number}")
        self.spares += more
        held = sum(tasks for _, tasks, _ in self.spares)
        law = "nobody holds more spares than it asked for"
        require(held <= self.spec.spares, law, f"job {number}: {held} of {self.spec.spares}")

    def use_spares(self, item: fact.SparesUsed) -> None:
        """Its first spares are ranks now."""
        bears = self.phase == TaskPhase.RUNNING and self.spec.in_place and not self.shrinks_to
        require(bears, "only a run that bears it gets ranks for spares", f"job {item.job}")
        lacks = self.spec.gang - len(self._members())
        require(0 < item.tasks <= lacks, "a spare is for a rank that was lost", f"job {item.job}: {item.tasks}")
        used, self.spares = self._split(self.spares, item.tasks)
        found = sum(tasks for _, tasks, _ in used)
        require(found == item.tasks, "only spares that it has are used", f"job {item.job}: {found} of {item.tasks}")
        self.leases += used
        self.ranks += bytes(item.tasks)

    def drop_spares(self, item: fact.SparesDropped) -> list[tuple[int, int, int]]:
        """It gives up those that it has on some nodes: their places."""
        gone = [each for each in self.spares if each[0] in item.slots]
        said = list(zip(item.slots, item.tasks, strict=True))
        require([each[:2] for each in gone] == said, "only spares that it has are let go", f"job {item.job}: {said}")
        self.spares = [each for each in self.spares if each[0] not in item.slots]
        return gone

    def _split(self, places: list[tuple[int, int, int]], count: int) -> list[list[tuple[int, int, int]]]:
        """The first so many of them, and the others."""
        sides: list[list[tuple[int, int, int]]] = [[], []]
        for slot, tasks, left in places:
            here, devices = min(tasks, count), left
            for side, number in zip(sides, (here, tasks - here), strict=True):
                if number:
                    mine, devices = deal(devices, self.spec.ask.gpus * number)
                    side.append((slot, number, mine))
            count -= here
        return sides

    def is_owed_rest(self, why: Why) -> bool:
        """Whether it keeps what is left of its places when it is sent back: a gang of one kind that broke, or is to
        have another width."""
        is_broken = (why == Why.LOST and (self.spec.gang > 1 or self.spec.spares > 0)) or why in RESIZED
        return is_broken and not (self.held or self.spec.needs.groups)

    def least_leases(self) -> list[tuple[int, int, int]]:
        """The places of its first ranks, as many as it cannot do without."""
        found, count = list[tuple[int, int, int]](), self.spec.gang
        for slot, tasks, devices in self.leases:
            if count > 0:
                found.append((slot, tasks, devices))
                count -= tasks
        return found

    def places_behind(self, count: int) -> list[tuple[int, int]]:
        """The places of all but its first so many ranks, as (slot, tasks)."""
        found = list[tuple[int, int]]()
        for slot, tasks, _ in self.leases:
            if tasks > count:
                found.append((slot, tasks - count))
            count = max(0, count - tasks)
        return found

    def _members(self) -> list[int]:
        return [rank for rank, state in enumerate(self.ranks) if state != 3]

    def _check_least(self, number: int, width: int) -> None:
        require(width >= self.spec.gang, "no run shrinks below its least", f"job {number}: {width} of {self.spec.gang}")

    def use(self, cpu_ms: int, rss_bytes: int) -> None:
        """Tasks used this much, beside what others did."""
        require(cpu_ms >= 0 and rss_bytes >= 0, "nobody uses less than nothing", f"{cpu_ms}, {rss_bytes}")
        known = self.meter or Meter()
        self.meter = Meter(known.cpu_ms + cpu_ms, max(known.rss_bytes, rss_bytes))

    def stage(self) -> TaskPhase:
        """How far it is, as far as others care: without a place so far, with one now or before, or over."""
        if self.phase >= TaskPhase.SUCCEEDED:
            return TaskPhase(self.phase)
        return TaskPhase.RUNNING if any(self.epochs) or self.epoch else TaskPhase.QUEUED


class NodeBook:
    """What the facts say of one node."""

    __slots__ = ("bars", "capacity", "devices", "held", "is_kept", "lack", "losses", "name", "phase", "said", "traits")

    def __init__(self, name: str, capacity: Resources, traits: Traits, devices: tuple[str, ...]) -> None:
        self.name = name
        self.capacity = capacity
        self.traits = traits
        self.devices = devices
        self.lack = NO_LACK
        self.said: Said | None = None
        self.phase = NodePhase.UP
        self.bars: dict[tuple[BarKind, str], Bar] = {}
        self.held = Holding()
        self.losses: list[tuple[int, int]] = []
        self.is_kept = False

    def flavor(self) -> str:
        """The kind of capacity that it is."""
        return flavor_of(self.traits, self.capacity)

    def parts(self, missing: Lack) -> Parts:
        """How much of devices it has, and of what nobody holds, how much is idle, barred, gone, kept and claimed; so
        much is `missing` for those who would start."""
        whole, held = DEVICE * self.capacity.gpus, sum(self.held.devices.values())
        free = sum(self.held.rests_of(self.capacity, self.lack)) if self.phase == NodePhase.UP else 0
        gone = whole - held - free
        if self.bars:
            return whole, 0, free, gone, 0, 0
        if self.is_kept:
            return whole, 0, 0, gone, free, 0
        anybodys = sum(self.held.rests_of(self.capacity, missing)) if free else 0
        return whole, anybodys, 0, gone, 0, free - anybodys


def deal(devices: int, count: int) -> tuple[int, int]:
    """The lowest `count` devices, and the rest."""
    mine = 0
    for _ in range(count):
        low = devices & -devices
        mine |= low
        devices ^= low
    return mine, devices
