"""reserving: which nodes a booking gets, and when it opens if it is flexible.

A window takes whole nodes that are up, unbarred and complete, that no other window has meanwhile, and that will be
empty when it opens: whoever is there ends by its limit, an array task by task, or accepts eviction and can be told in
time. Of those, as few as can be have somebody who would be stopped; then the smallest nodes that are large enough, then
the lowest slots. All are in one domain, the one with the fewest that would do. A decision is a function of the world
and `now`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, islice
from typing import Final

from muster.model.booking import Booking, Window
from muster.model.job import Job
from muster.model.node import LEVELS, Level
from muster.model.phase import Stopping
from muster.model.reason import Code, Reason
from muster.scheduler.booked import TIDY_MS
from muster.scheduler.booked_quota import overlap
from muster.units import AMOUNT_MAX, Limit, show_instant
from muster.world.booking import windows_of
from muster.world.fleet import Fleet
from muster.world.world import World

INSTANTS_MAX: Final = 64
"""At how many instants a flexible window is tried."""


class Partings:
    """When whoever is there will be gone from a node, by its limit or because it was told to stop. The tasks of an
    array are gone through once."""

    def __init__(self, world: World, now: int) -> None:
        self._world = world
        self._of_tasks: dict[int, dict[int, int]] = {}
        self.now = now

    def find(self, job: Job, slot: int) -> Limit:
        """When a job will have left a node, if that is known."""
        tail_ms = job.spec.grace_ms + TIDY_MS
        if isinstance(job.phase, Stopping):
            return max(job.phase.since, self.now - tail_ms) + tail_ms
        end = self._last_on(job, slot) if job.spec.array else self._world.ends.find(job.id)
        return None if end is None else max(end, self.now) + tail_ms

    def all(self) -> Iterator[int]:
        """Every instant at which somebody with a limit will be gone."""
        jobs, ends = self._world.jobs, self._world.ends
        for number in ends.spread:
            for slot in self._ends_of(jobs[number]):
                gone_at = self.find(jobs[number], slot)
                if gone_at is not None:
                    yield gone_at
        yield from (end + jobs[number].spec.grace_ms + TIDY_MS for end, number in ends)

    def _last_on(self, job: Job, slot: int) -> Limit:
        end = self._ends_of(job)[slot]
        return end if end < AMOUNT_MAX else None

    def _ends_of(self, job: Job) -> dict[int, int]:
        """By node, when the last of an array's tasks there ends."""
        known = self._of_tasks.get(job.id)
        if known is None:
            limit_ms = AMOUNT_MAX if job.spec.limit_ms is None else job.spec.limit_ms
            endings = self._world.arrays[job.id].endings(limit_ms, shared=False)
            known = self._of_tasks[job.id] = {lease.slot: end for end, lease in endings}  # the last one counts
        return known


def find_window(world: World, booking: Booking, window: Window, flexible_ms: int, now: int) -> Window | Reason:
    """The window with its nodes, opening as early as it can; or why there is none."""
    span_ms, most, partings = window.closes_at - window.opens_at, 0, Partings(world, now)
    for opens_at in _instants(world, partings, window.opens_at, flexible_ms):
        tried = Window(opens_at, opens_at + span_ms)
        slots = find_nodes(world, booking, tried, partings)
        if len(slots) == booking.nodes:
            return Window(opens_at, tried.closes_at, tuple(slots))
        most = max(most, len(slots))
    when = f" from {show_instant(window.opens_at)} on"  # it may want many windows
    return Reason(Code.NO_NODES_TO_BOOK, booking.name, booking.nodes, most, when)


def find_nodes(
    world: World, booking: Booking, window: Window, partings: Partings, kept: Collection[int] = ()
) -> list[int]:
    """Nodes for a window, as many as it wants or as there are at most in one domain; `kept` are those that it has."""
    level = LEVELS[booking.within or "cluster"]
    home = {domain_of(world.fleet, slot, level) for slot in kept}
    groups: dict[object, list[tuple[int, int, int]]] = {}
    for slot, stopped in _candidates(world, booking, window, partings):
        domain = domain_of(world.fleet, slot, level)
        if slot not in kept and (not home or domain in home):
            groups.setdefault(domain, []).append((stopped, world.fleet.capacities[slot].gpus, slot))
    wanted = booking.nodes - len(kept)
    choices = [(_rank(group, wanted), sorted(group)[:wanted]) for group in groups.values()]
    best = min(choices, default=((), []))[1]
    return sorted([*kept, *(slot for _, _, slot in best)])


def is_fit(fleet: Fleet, slot: int) -> bool:
    """Whether a window may have a node, or keep it: it is there, nobody bars it, and nothing of it is missing."""
    return fleet.is_open(slot) and slot not in fleet.lacks


def find_too_few(fleet: Fleet, booking: Booking) -> Reason | None:
    """Whether the whole fleet has too few nodes for a booking, whatever their state."""
    level, counts = LEVELS[booking.within or "cluster"], dict[object, int]()
    for slot in range(len(fleet)):
        if _is_wanted(fleet, slot, booking):
            domain = domain_of(fleet, slot, level)
            counts[domain] = counts.get(domain, 0) + 1
    most = max(counts.values(), default=0)
    return Reason(Code.TOO_FEW_NODES, level.name.lower(), booking.nodes, most) if most < booking.nodes else None


def domain_of(fleet: Fleet, slot: int, level: Level) -> object:
    """The domain of a node at a level."""
    return slot if level == Level.NODE else fleet.traits[slot].place.path(level)


def _rank(group: list[tuple[int, int, int]], wanted: int) -> tuple[int, int, int, int]:
    """The better domain first: with enough nodes, or the most; the fewest to stop, the fewest nodes, the lowest."""
    taken = sorted(group)[:wanted]
    return -len(taken), sum(stopped for stopped, _, _ in taken), len(group), min(slot for _, _, slot in group)


def _candidates(world: World, booking: Booking, window: Window, partings: Partings) -> Iterator[tuple[int, int]]:
    """Every node that a window could have, and how many jobs would be stopped there."""
    fleet = world.fleet
    busy = {
        slot
        for other, each in windows_of(world.bookings.values())
        if overlap(each, window) and (other.name, each.opens_at) != (booking.name, window.opens_at)
        for slot in each.slots
    }
    for slot in range(len(fleet)):
        if slot not in busy and is_fit(fleet, slot) and _is_wanted(fleet, slot, booking):
            stopped = _count_stopped(world, slot, window.opens_at, partings)
            if stopped is not None:
                yield slot, stopped


def _is_wanted(fleet: Fleet, slot: int, booking: Booking) -> bool:
    """Whether a node is of the kind that a booking asks for; one with a taint is somebody's already."""
    has_flavor = not booking.flavor or fleet.flavor(slot) == booking.flavor
    return has_flavor and fleet.capacities[slot].gpus >= booking.gpus and not fleet.traits[slot].taints


def _count_stopped(world: World, slot: int, opens_at: int, partings: Partings) -> int | None:
    """How many would have to be stopped so that a node is empty at an instant; None if somebody stays."""
    keeping = world.fleet.booked.get(slot)
    if keeping is not None and keeping.is_open and keeping.until <= opens_at:
        return 0
    stopped = 0
    for number in world.fleet.holders.get(slot, ()):
        job = world.jobs[number]
        gone_at = partings.find(job, slot)
        if gone_at is None or gone_at > opens_at:
            if not job.spec.evictable or partings.now + job.spec.grace_ms + TIDY_MS > opens_at:
                return None
            stopped += 1
    return stopped


def _instants(world: World, partings: Partings, opens_at: int, flexible_ms: int) -> list[int]:
    """When a window could open: as it says, or later when something ends."""
    if not flexible_ms:
        return [opens_at]
    latest = opens_at + flexible_ms
    closings = (window.closes_at for _, window in windows_of(world.bookings.values()))
    found = sorted({at for at in chain(partings.all(), closings) if opens_at < at < latest})
    return [opens_at, *islice(found, INSTANTS_MAX), latest]
