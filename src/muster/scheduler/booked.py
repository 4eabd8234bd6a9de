"""booked: who may use the nodes of bookings.

Booked nodes are not in the index, so whoever looks for a place does not see them. They are let in for one search:

    its own jobs   see the nodes of their booking while its window is open, and no others
    guests         see a booked node if they fit nowhere else and will be gone when it is needed: by their own limit,
                   of an array each task by its own, or, if they accept eviction, as long as the window is far enough
                   away to be worth a start

Whoever is still there shortly before is told to stop in time (`muster.kernel.windows`). Which nodes a booking gets is
decided in `muster.scheduler.reserving`.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from muster.model.booking import Booking, Keeping, Window
from muster.model.job import Job
from muster.model.reason import Code, Reason
from muster.model.spec import Needs, Spec
from muster.scheduler.placing.fit import find_gang, widest_room
from muster.scheduler.placing.screen import let_in, shut_out
from muster.units import AMOUNT_MAX, HOUR_MS, MINUTE_MS, SECOND_MS, show_instant
from muster.world.arena import OPEN
from muster.world.compiled import words_of
from muster.world.fleet import Fleet
from muster.world.index import shelve
from muster.world.world import World

TIDY_MS: Final = 5 * SECOND_MS
"""How long before a window opens or closes whoever is to leave must be gone, grace and all."""
START_MS: Final = MINUTE_MS
"""How long a guest may take to start, besides its limit."""
LEAD_MS: Final = HOUR_MS
"""How long a guest that accepts eviction must be able to stay."""


def leaves_at(job: Job, keeping: Keeping) -> int:
    """When a job that holds a booked node is told to stop."""
    return last_start(job.spec, keeping.until)


def last_start(spec: Spec, until: int) -> int:
    """From when on a job does not start on a node that it has to be gone from by then: it would be told to stop."""
    return until - spec.grace_ms - TIDY_MS


def may_be_guest(spec: Spec, keeping: Keeping, now: int) -> bool:
    """Whether somebody may start on a node that is booked for others."""
    if keeping.is_open:
        return False
    stays_ms = AMOUNT_MAX if spec.limit_ms is None else spec.limit_ms + START_MS
    if spec.evictable:
        stays_ms = min(stays_ms, LEAD_MS)
    return now + stays_ms + spec.grace_ms + TIDY_MS <= keeping.until


def guest_slots(world: World, spec: Spec, now: int) -> list[int]:
    """The booked nodes that somebody may use for the time being."""
    booked = world.fleet.booked.items()
    return sorted(slot for slot, keeping in booked if may_be_guest(spec, keeping, now))


def own_slots(world: World, spec: Spec, now: int) -> list[int]:
    """The nodes of a job's booking, as far as it may start there now."""
    booked = world.fleet.booked.items()
    return sorted(
        slot
        for slot, keeping in booked
        if keeping.booking == spec.needs.booking and keeping.is_open and now < last_start(spec, keeping.until)
    )


class Rooms:
    """The booked nodes in one cycle: closed, but for one search at a time."""

    __slots__ = ("_now", "_stack", "_world", "latest")

    def __init__(self, world: World, now: int) -> None:
        self._world = world
        self._now = now
        self._stack = contextlib.ExitStack()
        self.latest = max((keeping.until for keeping in world.fleet.booked.values()), default=0)

    def __bool__(self) -> bool:
        return bool(self._world.fleet.booked)

    def is_own(self, needs: Needs) -> bool:
        """Whether needs name a booking that there is."""
        return bool(needs.booking) and needs.booking in self._world.bookings

    def open_for(self, spec: Spec) -> None:
        """Open what a job may use: its own nodes and no others; or, if it fits nowhere else, those that it may be a
        guest on."""
        fleet = self._world.fleet
        if not self._world.bookings:
            return
        if self.is_own(spec.needs):
            self._stack.enter_context(only(fleet, own_slots(self._world, spec, self._now)))
        elif fleet.booked and find_gang(fleet, spec.ask, spec.places, spec.needs) is None:
            self._stack.enter_context(opened(fleet, guest_slots(self._world, spec, self._now)))

    def opened(self) -> contextlib.AbstractContextManager[None]:
        """Every node let in on which somebody could be a guest."""
        booked = self._world.fleet.booked.items()
        return opened(self._world.fleet, [slot for slot, each in booked if not each.is_open])

    def close(self) -> None:
        """Close them again."""
        self._stack.close()


@contextlib.contextmanager
def opened(fleet: Fleet, slots: Iterable[int]) -> Iterator[None]:
    """Let booked nodes be found, as far as they are open."""
    words = fleet.words
    inside = [slot for slot in slots if fleet.is_open(slot) and not fleet.read(OPEN, slot)]
    for slot in inside:
        shelve(words, slot, 1)
    try:
        yield
    finally:
        for slot in inside:
            shelve(words, slot, -1)


@contextlib.contextmanager
def only(fleet: Fleet, slots: Sequence[int]) -> Iterator[None]:
    """Let some nodes be found, and no others."""
    words = fleet.words
    shut = array("q", [1]) * len(fleet)
    for slot in slots:
        shut[slot] = 0
    marks = words_of(shut)
    with opened(fleet, slots):
        shut_out(words, marks)
        try:
            yield
        finally:
            let_in(words, marks)


def find_booking_reason(world: World, job: Job) -> Reason | None:
    """What bookings have to do with a job's waiting: it waits for its own, or there is room only on nodes that others
    have booked; None if that is not why."""
    spec, fleet, now = job.spec, world.fleet, world.now
    booking = world.bookings.get(spec.needs.booking)
    if booking is not None:
        return _own_reason(world, spec, booking)
    if widest_room(fleet, spec.ask, spec.places, spec.needs) >= spec.places:
        return None
    with opened(fleet, fleet.booked):
        leases = find_gang(fleet, spec.ask, spec.places, spec.needs)
    kept = sorted((fleet.booked[lease.slot].until, lease.slot) for lease in leases or () if lease.slot in fleet.booked)
    if not kept:
        return None
    keeping = fleet.booked[kept[0][1]]
    return Reason(Code.NODES_BOOKED, keeping.booking, keeping.until, now, "until" if keeping.is_open else "from")


def _own_reason(world: World, spec: Spec, booking: Booking) -> Reason | None:
    """What a job of a booking waits for: the window that is open, short of nodes or not, or the next one; None if there
    is room in the one that is open."""
    now, window = world.now, booking.windows[0]
    is_ending = window.is_open and now >= last_start(spec, window.closes_at)
    if not window.is_open or (is_ending and len(booking.windows) > 1):
        coming = booking.windows[int(window.is_open)]
        return Reason(Code.WINDOW_TO_OPEN, booking.name, coming.opens_at, now, _show_short(booking, coming))
    with only(world.fleet, own_slots(world, spec, now)):
        room = widest_room(world.fleet, spec.ask, spec.places, spec.needs)
    detail = f"it closes at {show_instant(window.closes_at)}" if is_ending else _show_short(booking, window)
    return Reason(Code.BOOKING_FULL, booking.name, spec.places, room, detail) if room < spec.places else None


def _show_short(booking: Booking, window: Window) -> str:
    short = booking.nodes - len(window.slots)
    return f"{short} node{'s' if short > 1 else ''} short" if short else ""
