"""Bookings: they are made and given up here, their windows open and close, and whoever is in their way is told in time.

A booking has its nodes from the moment it is made. If one of them is lost before or in a window, another one takes its
place as soon as there is any; until then the window is short, and says so. Nothing here chooses a node.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from muster.kernel.bars import stop_seats
from muster.kernel.budgets import stop_spenders
from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.booking import BOOKINGS_MAX, Booking, Window, find_booking_fault
from muster.model.job import Job
from muster.model.phase import Why
from muster.model.reason import DONE, RULED_OUT, Code, Done, Reason, Refused
from muster.model.spec import Spec, is_name
from muster.scheduler.booked import leaves_at, only
from muster.scheduler.booked_quota import find_quota_fault
from muster.scheduler.placing.fit import blank_of, widest_room
from muster.scheduler.reserving import Partings, find_nodes, find_too_few, find_window, is_fit
from muster.world.booking import is_admitted
from muster.world.seats import stayers_on, stays_on
from muster.world.world import World

_NODE_FACTS: Final = (
    fact.NodeJoined,
    fact.NodeSaid,
    fact.NodeLacks,
    fact.NodePhased,
    fact.NodeBarred,
    fact.NodeUnbarred,
)


def on_reserve(turn: Turn, item: event.Reserve) -> Done | Refused:
    """Book nodes: all windows, or nothing. Saying the same again is refused, since its name is taken."""
    booking, world = item.booking, turn.world
    for field, name in (("name", booking.name), ("tenant", booking.tenant)):
        if not is_name(name):
            return refuse(Code.BAD_NAME, field, len(name), 128, name[:40])
    fault = find_booking_fault(booking, item.flexible_ms, turn.now) or find_too_few(world.fleet, booking)
    if fault is not None:
        return Refused(fault)
    if booking.name in world.bookings:
        return refuse(Code.BOOKING_TAKEN, "name", detail=booking.name)
    if len(world.bookings) >= BOOKINGS_MAX:
        return refuse(Code.TOO_LARGE, "bookings", len(world.bookings) + 1, BOOKINGS_MAX)
    windows = _find_windows(turn, item)
    if isinstance(windows, Refused):
        return windows
    turn.emit(fact.Booked(replace(booking, windows=windows), item.cause))
    return DONE


def on_cancel_booking(turn: Turn, item: event.CancelBooking) -> Done | Refused:
    """Give a booking up: its nodes are anybody's, and what runs there goes on as far as its tenant's budgets go."""
    if item.name not in turn.world.bookings:
        return refuse(Code.UNKNOWN_BOOKING, "booking", detail=item.name[:128])
    turn.emit(fact.BookingDropped(item.name, item.cause))
    stop_spenders(turn)
    return DONE


def find_spec_fault(world: World, spec: Spec) -> Reason | None:
    """Why a job may not run in the booking that it names."""
    booking = world.bookings.get(spec.needs.booking)
    if booking is None:
        return Reason(Code.UNKNOWN_BOOKING, "booking", detail=spec.needs.booking)
    if not is_admitted(world, spec.tenant, booking):
        return Reason(Code.NOT_ITS_BOOKING, booking.name, detail=spec.tenant)
    whole = [window.slots for window in booking.windows if len(window.slots) == booking.nodes]
    if not whole:
        return None  # what a window would have that is not short is not known
    blank = blank_of(world.fleet, spec.needs)
    with only(blank, whole[0]):
        room = widest_room(blank, spec.ask, spec.gang, spec.needs)
    if room < spec.gang:
        return Reason(Code.NEVER_FITS, "tasks", spec.gang, room, f"{RULED_OUT}booking = {booking.name}")
    return None


def mend_windows(turn: Turn) -> None:
    """Give windows other nodes for those that they lost, as soon as there are any. Looked at when a node changed, and
    as long as a window is short."""
    world = turn.world
    changed = any(isinstance(item, _NODE_FACTS) for item in turn.facts)
    for name in sorted(world.bookings):
        booking = world.bookings[name]
        for window in booking.windows:
            if changed or len(window.slots) < booking.nodes:
                _mend(turn, booking, window)


def fire_windows(turn: Turn) -> None:
    """Do what is due at this turn's time: windows close, who has to leave booked nodes is told, windows open. They are
    told before, since a late turn may have to do all of it at once."""
    world, now = turn.world, turn.now
    for name in sorted(world.bookings):
        if world.bookings[name].windows[0].closes_at <= now:
            turn.emit(fact.WindowClosed(name, cause="its time"))
    for slot in sorted(world.fleet.booked):
        keeping = world.fleet.booked[slot]
        due = {job.id for job in _holders(world, slot) if leaves_at(job, keeping) <= now}
        leavers = [seat for seat in stayers_on(world, slot) if seat.job in due] if due else []
        stop_seats(turn, leavers, Why.BOOKING, f"booking {keeping.booking}")
    for name in sorted(world.bookings):
        window = world.bookings[name].windows[0]
        if window.opens_at <= now and not window.is_open:
            short = world.bookings[name].nodes - len(window.slots)
            turn.emit(fact.WindowOpened(name, cause=f"its time, {short} nodes short" if short else "its time"))


def find_window_wake(world: World) -> int | None:
    """When a window next opens or closes, or somebody has to leave one of its nodes."""
    instants = list[int]()
    for booking in world.bookings.values():
        window = booking.windows[0]
        instants.append(window.closes_at if window.is_open else window.opens_at)
    for slot, keeping in world.fleet.booked.items():
        instants += [leaves_at(job, keeping) for job in _holders(world, slot) if stays_on(world, job, slot)]
    return min(instants, default=None)


def _holders(world: World, slot: int) -> list[Job]:
    """Whoever holds part of a node."""
    return [world.jobs[number] for number in world.fleet.holders.get(slot, ())]


def _find_windows(turn: Turn, item: event.Reserve) -> tuple[Window, ...] | Refused:
    """The windows of a booking with their nodes, or why one of them has none."""
    windows: list[Window] = []
    for window in item.booking.windows:
        found = find_window(turn.world, item.booking, window, item.flexible_ms, turn.now)
        if isinstance(found, Reason):
            return Refused(found)
        reason = find_quota_fault(turn.world, item.booking, found)
        if reason is not None:
            return Refused(reason)
        windows.append(found)
    return tuple(windows)


def _mend(turn: Turn, booking: Booking, window: Window) -> None:
    kept = [slot for slot in window.slots if is_fit(turn.world.fleet, slot)]
    if len(kept) == booking.nodes:
        return
    slots = find_nodes(turn.world, booking, window, Partings(turn.world, turn.now), kept)
    if tuple(slots) != window.slots:
        lost = len(window.slots) - len(kept)
        cause = f"{lost} nodes lost" if lost else "there are nodes again"
        turn.emit(fact.WindowMoved(booking.name, window.opens_at, slots, cause))
