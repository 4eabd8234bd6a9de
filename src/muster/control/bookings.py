"""Bookings as a reader sees them: each with its windows, their nodes and what is missing. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from muster.model.booking import Booking, Window
from muster.scheduler.reserving import is_fit
from muster.wire.views import BookingView, WindowView
from muster.world.world import World

NAMES_BYTES_MAX: Final = 640 * 1024
"""What the names of a booking's nodes may take of an answer; its windows have equal parts of that."""


def view_bookings(world: World) -> list[BookingView]:
    """Every booking, whatever opens first on top."""
    order = sorted(world.bookings.values(), key=lambda each: (each.windows[0].opens_at, each.name))
    return [_view(world, booking) for booking in order]


def _view(world: World, booking: Booking) -> BookingView:
    return BookingView(
        name=booking.name,
        tenant=booking.tenant,
        nodes=booking.nodes,
        windows=[_window(world, booking, window) for window in booking.windows],
        gpus=booking.gpus,
        flavor=booking.flavor,
        within=booking.within,
        shared=booking.shared,
        jobs=sum(job.spec.needs.booking == booking.name for job in world.jobs.values()),
    )


def _window(world: World, booking: Booking, window: Window) -> WindowView:
    """A window; it is short of what it never got, and of what is lost and not replaced yet. How many nodes it has is
    what it is not short of: of very many with long names some are not told."""
    fleet = world.fleet
    fit = [slot for slot in window.slots if is_fit(fleet, slot)]
    shown = fleet.shown()
    return WindowView(
        opens_at_ms=window.opens_at,
        closes_at_ms=window.closes_at,
        nodes=list(_cut((shown[slot] for slot in fit), NAMES_BYTES_MAX // len(booking.windows))),
        is_open=window.is_open,
        short=booking.nodes - len(fit),
    )


def _cut(names: Iterable[str], most_bytes: int) -> Iterator[str]:
    """As many of the first names as take so many bytes."""
    size = 0
    for name in names:
        size += len(name.encode()) + len('"",')
        if size > most_bytes:
            return
        yield name
