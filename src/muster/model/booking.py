"""Bookings: a tenant's contract for whole nodes in windows of time, and the one check of what is asked for.

A booking that recurs is a list of windows: whoever makes it knows calendars and zones, and here there are instants
only. Which nodes a window has is decided when it is made. Nothing here knows the fleet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from muster.model.node import LEVELS
from muster.model.reason import Code, Reason
from muster.model.record import Record
from muster.units import AMOUNT_MAX, INSTANT_MAX

WINDOWS_MAX: Final = 64
"""How many windows of a booking are fixed ahead."""
BOOKINGS_MAX: Final = 1024
BOOKED_NODES_MAX: Final = 100_000


class Window(Record, frozen=True):
    """From the instant `opens_at` up to `closes_at` these nodes are the booking's; it `is_open` in between."""

    opens_at: int
    closes_at: int
    slots: tuple[int, ...] = ()
    is_open: bool = False


class Booking(Record, frozen=True):
    """So many whole `nodes` with at least `gpus` devices each, of one flavor if it names one, all in one domain of the
    level `within` (a cluster, unless said otherwise). Jobs of its tenant may run there; if it is `shared`, those of all
    tenants below it too. The windows are in order; one that has fewer slots than `nodes` is short."""

    name: str
    tenant: str
    nodes: int
    windows: tuple[Window, ...]
    gpus: int = 0
    flavor: str = ""
    within: str = ""
    shared: bool = False


class Keeping(Record, frozen=True):
    """For which booking a node is kept next: whoever does not belong there must be gone by the instant `until`, when
    the window opens; or, if it `is_open`, everybody by when it closes."""

    booking: str
    until: int
    is_open: bool


def find_booking_fault(booking: Booking, flexible_ms: int, now: int) -> Reason | None:
    """The first thing wrong with a booking by itself, asked for now."""
    for field, value, least, most in (
        ("nodes", booking.nodes, 1, BOOKED_NODES_MAX),
        ("gpus", booking.gpus, 0, BOOKED_NODES_MAX),
        ("flexible_ms", flexible_ms, 0, AMOUNT_MAX),
        ("windows", len(booking.windows), 1, WINDOWS_MAX),
    ):
        if not least <= value <= most:
            return Reason(Code.BAD_AMOUNT, field, value, most, f"between {least} and {most}")
    if booking.within and booking.within not in LEVELS:
        return Reason(Code.BAD_SPEC, "within", detail=f"{booking.within[:40]!r} is not one of {', '.join(LEVELS)}")
    if flexible_ms and len(booking.windows) > 1:
        return Reason(Code.BAD_SPEC, "flexible_ms", detail="only a booking with one window may be flexible")
    return _find_window_fault(booking.windows, flexible_ms, now)


def _find_window_fault(windows: Sequence[Window], flexible_ms: int, now: int) -> Reason | None:
    """Windows last, are still to come, and follow each other."""
    before = now
    for window in windows:
        opens_at, closes_at = window.opens_at, window.closes_at
        if closes_at <= opens_at:
            return Reason(Code.BAD_WINDOW, "closes before it opens", closes_at, opens_at)
        if opens_at < before:
            return Reason(Code.BAD_WINDOW, "is past" if before == now else "overlaps the one before", opens_at, before)
        if closes_at + flexible_ms > INSTANT_MAX:
            return Reason(Code.BAD_WINDOW, "is too far ahead", opens_at, now)
        before = closes_at
    return None
