"""Booking: which nodes are kept for which booking, as far as the world has to know.

A node that a window has leaves the index from the moment it is booked: whoever may use it all the same has to ask for
it. For which booking a node is kept next follows from the windows alone. Which nodes a booking gets, and who may be
there before it opens, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from muster.model.booking import Booking, Keeping, Window

if TYPE_CHECKING:  # the world says how a line of a booking stands
    from muster.world.world import World


def put_booking(world: World, booking: Booking) -> None:
    """Keep nodes for a booking, in place of those that it had; without windows it is over."""
    if booking.windows:
        world.bookings[booking.name] = booking
    else:
        del world.bookings[booking.name]
    settle_bookings(world)


def drop_booking(world: World, name: str) -> None:
    """Keep them no longer."""
    put_booking(world, replace(world.bookings[name], windows=()))


def change_window(world: World, name: str, opens_at: int, change: Callable[[Window], Window]) -> None:
    """Let one window of a booking be another."""
    booking = world.bookings[name]
    windows = tuple(change(window) if window.opens_at == opens_at else window for window in booking.windows)
    put_booking(world, replace(booking, windows=windows))


def settle_bookings(world: World) -> None:
    """Let the fleet know what is kept: everybody is worth a try, and may stand better."""
    fleet, goodput = world.fleet, world.goodput
    wanted = keepings(world.bookings.values())
    for slot in sorted(wanted.keys() | fleet.booked.keys()):
        if fleet.booked.get(slot) != wanted.get(slot):
            goodput.count(fleet, slot, -1, world.budgets.now)
            fleet.set_booked(slot, wanted.get(slot))
            goodput.note_kept(fleet, slot)
            goodput.count(fleet, slot, 1, world.budgets.now)
    world.queue.wake_all()
    world.wake_outside()


def keepings(bookings: Iterable[Booking]) -> dict[int, Keeping]:
    """By slot, for which booking it is kept next: of its windows, the one that opens first."""
    first: dict[int, tuple[int, Keeping]] = {}
    for booking, window in windows_of(bookings):
        keeping = Keeping(booking.name, window.closes_at if window.is_open else window.opens_at, window.is_open)
        for slot in window.slots:
            if slot not in first or window.opens_at < first[slot][0]:
                first[slot] = (window.opens_at, keeping)
    return {slot: keeping for slot, (_, keeping) in first.items()}


def windows_of(bookings: Iterable[Booking]) -> Iterator[tuple[Booking, Window]]:
    """Every window of some bookings."""
    return ((booking, window) for booking in bookings for window in booking.windows)


def is_admitted(world: World, tenant: str, booking: Booking) -> bool:
    """Whether a tenant's jobs may run in a booking: its own, or, if it is shared, those of everybody below too."""
    return tenant == booking.tenant or (booking.shared and booking.tenant in world.ledger.chain(tenant))
