"""Outlook: the fleet as it will be when leases have ended, on the living arena and with exact inverses.

To look ahead, what ends by an instant is lifted off its nodes, a search is made, and it is lowered again. To keep
something back, part of a node is shaded: no search meets it until it is unshaded. Nobody who sits anywhere notices, and
whoever leaves an outlook leaves the fleet as it was. It decides nothing, and knows jobs only by what they hold.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby, islice
from operator import itemgetter
from types import TracebackType
from typing import Final, TypeAlias

from muster.model.group import Part
from muster.model.job import Job
from muster.model.node import Lack
from muster.model.partition import devices_in
from muster.model.phase import ACTIVE, Lease, Running
from muster.units import MINUTE_MS, Resources
from muster.world import arena as at
from muster.world.fleet import Fleet
from muster.world.lacks import NOTHING, Withheld, beside_devices, give_back, withhold
from muster.world.world import World

ENDS_MAX: Final = 4096
"""How many ends are looked at: a job that would have to wait for more of them is not looked ahead for."""

LATE_MS: Final = 10 * MINUTE_MS
"""How long after its limit and its grace a run is still expected to end at any moment."""

End: TypeAlias = tuple[int, int, tuple[Lease, ...]]
"""When, whose, and of an array what: a gang gives all its places back."""
Shade: TypeAlias = dict[int, Lack]
"""By slot, which devices and how much beside them is kept back, as far as it is free."""


class Shading:
    """Some slots in the shade, until it is lifted."""

    __slots__ = ("_fleet", "_held", "shade")

    def __init__(self, fleet: Fleet, shade: Shade) -> None:
        self._fleet = fleet
        self._held: list[tuple[int, Withheld]] = []
        self.shade = shade

    def __enter__(self) -> Shading:
        words = self._fleet.words
        self._held = [(slot, withhold(words, slot, lack, NOTHING)) for slot, lack in self.shade.items()]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._held:
            give_back(self._fleet.words, *self._held.pop())


class Outlook:
    """What comes free on the pools of an ask, instant by instant. `instants` are those that were looked at so far, and
    `lifted` how many of them have passed, as the fleet shows itself; `freed` is what that gave, by slot. Whoever looks
    `for_guest` looks for one who yields itself: nobody gives way to that."""

    __slots__ = ("_ends", "_for_guest", "_pools", "_steps", "_world", "freed", "instants", "lifted")

    def __init__(self, world: World, now: int, pools: frozenset[int], *, for_guest: bool = False) -> None:
        self._world = world
        self._pools = pools
        self._for_guest = for_guest
        self._ends: Iterator[tuple[int, list[tuple[Resources, Lease]]]] = self._find_ends(now)
        self._steps: list[list[tuple[Resources, Lease]]] = []
        self.instants: list[int] = []
        self.lifted = 0
        self.freed: dict[int, list[int]] = {}

    def __enter__(self) -> Outlook:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.go(0)

    def look(self, count: int) -> int:
        """Look at so many instants, and give how many there are of those."""
        while len(self.instants) <= count and (found := next(self._ends, None)) is not None:
            end, leases = found
            if self.instants and self.instants[-1] == end:
                self._steps[-1] += leases
            else:
                self.instants.append(end)
                self._steps.append(leases)
        return min(count, len(self.instants))

    def look_until(self, instant: int) -> int:
        """How many instants there are up to this one."""
        known = -1
        while known < len(self.instants) and not (self.instants and self.instants[-1] > instant):
            known = len(self.instants)
            self.look(known)
        return bisect_right(self.instants, instant)

    def go(self, count: int) -> None:
        """Show the fleet when so many instants have passed."""
        while self.lifted < count:
            self._move(self._steps[self.lifted], -1)
            self.lifted += 1
        while self.lifted > count:
            self.lifted -= 1
            self._move(self._steps[self.lifted], 1)

    def _move(self, leases: Iterable[tuple[Resources, Lease]], sign: int) -> None:
        for ask, lease in leases:
            self._world.fleet.show(lease.slot, ask, sign * lease.tasks, lease.devices)
            freed = self.freed.setdefault(lease.slot, [0, 0, 0, 0])
            for kind, amount in enumerate(beside_devices(ask)):
                freed[kind] -= sign * amount * lease.tasks

    def _find_ends(self, now: int) -> Iterator[tuple[int, list[tuple[Resources, Lease]]]]:
        """Ends as they are foreseen, in order, each with what it gives back where it is of use. One that is past may
        come at any moment, until it is so late that nobody knows; whoever yields then has but to be told."""
        jobs, ends, for_guest = self._world.jobs, self._world.ends, self._for_guest
        of_tasks = [self._endings_of(jobs[number]) for number in sorted(ends.spread)]
        upcoming = ends.upcoming(now, for_guest=for_guest)
        found = merge(((*each, ()) for each in upcoming), *of_tasks, key=itemgetter(0, 1))
        for end, number, tasks in islice(found, ENDS_MAX):
            job = jobs[number]
            can_be_told = job.spec.yields and isinstance(job.phase, Running) and not for_guest
            if end + job.spec.grace_ms + LATE_MS < now and not can_be_told:
                continue
            held = job.phase.run.places if isinstance(job.phase, ACTIVE) else tasks
            leases = [(ask, lease) for ask, part in job.spec.parts(held) for lease in part]
            useful = [each for each in leases if self._is_useful(each[1].slot)]
            if useful:
                yield max(end, now), useful

    def _endings_of(self, job: Job) -> Iterator[End]:
        """The ends of an array's tasks, in order: those of one instant together."""
        spec, tasks = job.spec, self._world.arrays[job.id]
        endings = tasks.endings(spec.limit_ms or 0, spec.ask.gpu_milli > 0)
        for end, leases in groupby(endings, key=itemgetter(0)):
            yield end, job.id, tuple(lease for _, lease in leases)

    def _is_useful(self, slot: int) -> bool:
        """A node that is closed, or lacks something, gives nothing that could be counted on."""
        fleet = self._world.fleet
        return fleet.is_listed(slot) and slot not in fleet.lacks and fleet.read(at.POOL, slot) in self._pools


def whole(fleet: Fleet, slots: Iterable[int]) -> Shade:
    """All of some nodes."""
    return {slot: Lack((1 << fleet.capacities[slot].gpus) - 1, fleet.capacities[slot]) for slot in slots}


def part(parts: Iterable[Part], freed: dict[int, list[int]]) -> Shade:
    """Of each node, what some leases need beyond what comes free there until they begin; devices are kept whole."""
    needed: dict[int, list[int]] = {}
    devices: dict[int, int] = {}
    for ask, lease in ((ask, lease) for ask, leases in parts for lease in leases):
        here = needed.setdefault(lease.slot, [-amount for amount in freed.get(lease.slot, (0, 0, 0, 0))])
        for kind, amount in enumerate(beside_devices(ask)):
            here[kind] += amount * lease.tasks
        devices[lease.slot] = devices.get(lease.slot, 0) | devices_in(lease.devices)
    return {slot: Lack(devices[slot], _beside(max(0, each) for each in here)) for slot, here in needed.items()}


def _beside(amounts: Iterable[int]) -> Resources:
    cpu_milli, memory_bytes, disk_bytes, network_mbps = amounts
    return Resources(0, cpu_milli, memory_bytes, 0, disk_bytes, network_mbps)
