"""The auditor's books of bookings: which nodes are whose in which window, and who may be there meanwhile.

Kept from the facts alone. It looks at windows, not at what the world derived from them, and knows nothing of how nodes
were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from muster.model import fact
from muster.model.booking import Booking, Window
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.world.audit.books import JobBook
from muster.world.laws.law import require, require_same
from muster.world.world import World

BookingFact: TypeAlias = fact.Booked | fact.WindowMoved | fact.WindowOpened | fact.WindowClosed | fact.BookingDropped


class BookingBooks:
    """Bookings by name."""

    def __init__(self) -> None:
        self.bookings: dict[str, Booking] = {}

    def book(self, item: BookingFact, at: int) -> list[int]:
        """A booking is another now: the slots whose keeping may have changed."""
        before = self.bookings.get(_name_of(item))
        if isinstance(item, fact.Booked):
            require(before is None, "a booking has its name alone", item.booking.name)
            after = item.booking
        else:
            require(before is not None, "only a booking that there is changes", item.booking)
            after = _change(self.bookings[item.booking], item, at)
        self.bookings.pop(after.name, None)
        if after.windows:
            self.bookings[after.name] = after
        self._check_apart()
        both = (before, after) if before is not None else (after,)
        return sorted({slot for booking in both for window in booking.windows for slot in window.slots})

    def check_seat(self, number: int, spec: Spec, slot: int, at: int) -> None:
        """Whoever gets a place on a booked node belongs there, or will be gone before it is needed."""
        mine = spec.needs.booking if spec.needs.booking in self.bookings else ""
        first = min(self._windows_on(slot), key=lambda pair: pair[1].opens_at, default=None)
        where = f"job {number} on slot {slot} at {at}"
        if first is None:
            require(not mine, "what is booked runs where it was booked", where)
            return
        booking, window = first
        if window.is_open or mine:
            require(window.is_open and mine == booking.name, "in its window a node is its booking's", where)
            return
        leaves = spec.evictable or (spec.limit_ms is not None and at + spec.limit_ms <= window.opens_at)
        require(leaves and at < window.opens_at, "a guest is gone when the window opens", f"{where}, {window}")

    def check_left(self, name: str, jobs: Mapping[int, JobBook]) -> None:
        """When a window opens, whoever does not belong to it has left, or was told to in time."""
        slots = self.bookings[name].windows[0].slots
        for number, book in jobs.items():
            if book.spec.needs.booking == name:
                continue
            there = [book.phase for slot, _, _ in book.leases if slot in slots]
            there += [phase for slot, phase in zip(book.slots, book.phases, strict=True) if slot in slots]
            stays = any(phase != TaskPhase.STOPPING for phase in there)
            require(not stays, "nobody is in the way of a window", f"job {number} in {name}")

    def has(self, slot: int) -> bool:
        """Whether a node is in any window."""
        return next(self._windows_on(slot), None) is not None

    def is_kept(self, slot: int) -> bool:
        """Whether a node is a booking's now."""
        return any(window.is_open for _, window in self._windows_on(slot))

    def covers(self, spec: Spec) -> bool:
        """Whether a job runs in a booking, of which the quota was asked before."""
        return spec.needs.booking in self.bookings

    def compare(self, world: World) -> None:
        """Whether the world says the same."""
        require_same(world.bookings, self.bookings, "bookings are what the facts say")

    def _windows_on(self, slot: int) -> Iterator[tuple[Booking, Window]]:
        for booking in self.bookings.values():
            for window in booking.windows:
                if slot in window.slots:
                    yield booking, window

    def _check_apart(self) -> None:
        taken: dict[int, list[Window]] = {}
        for booking in self.bookings.values():
            for window in booking.windows:
                for slot in window.slots:
                    for other in taken.setdefault(slot, []):
                        apart = window.closes_at <= other.opens_at or other.closes_at <= window.opens_at
                        require(apart, "no node is in two windows at once", f"slot {slot}: {window} and {other}")
                    taken[slot].append(window)


def _name_of(item: BookingFact) -> str:
    return item.booking.name if isinstance(item, fact.Booked) else item.booking


def _change(booking: Booking, item: BookingFact, at: int) -> Booking:
    first, *later = booking.windows
    if isinstance(item, fact.WindowMoved):
        moved = [
            replace(window, slots=tuple(item.slots)) if window.opens_at == item.opens_at else window
            for window in booking.windows
        ]
        return replace(booking, windows=tuple(moved))
    if isinstance(item, fact.WindowOpened):
        require(first.opens_at <= at < first.closes_at, "a window opens at its time", f"{booking.name} at {at}")
        return replace(booking, windows=(replace(first, is_open=True), *later))
    if isinstance(item, fact.WindowClosed):
        require(first.closes_at <= at, "a window closes at its time", f"{booking.name} at {at}")
        return replace(booking, windows=tuple(later))
    return replace(booking, windows=())
