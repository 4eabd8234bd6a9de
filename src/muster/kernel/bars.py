"""What keeps new work off a node: bars are set and lifted here, and a drain that lets nothing finish stops what runs.

A bar is somebody's: only its owner lifts it, or its own time. It knows nothing of who may own what; that is for the
surface to say. People name a node by its address, or by the end of it if that is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.job import BAR_REASON_CHARS_MAX, BARS_MAX, Bar, BarKind
from muster.model.phase import Stopping, TaskPhase, Why
from muster.model.reason import DONE, Code, Done, Reason, Refused
from muster.model.spec import is_name
from muster.units import INSTANT_MAX
from muster.world.seats import Seat, seats_on


def on_bar_node(turn: Turn, item: event.BarNode) -> Done | Refused:
    """Bar a node. Saying the same again changes nothing; saying it otherwise replaces the bar."""
    slot = turn.world.fleet.find_slot(item.name)
    if isinstance(slot, Reason):
        return Refused(slot)
    fault = _find_fault(item, turn.now)
    if fault is not None:
        return fault
    bars = turn.world.fleet.bars.get(slot, ())
    known = _find_bar(bars, item.kind, item.owner)
    if known is None and len(bars) >= BARS_MAX:
        return refuse(Code.TOO_LARGE, "bars", len(bars) + 1, BARS_MAX)
    bar = Bar(item.kind, item.owner, item.reason, turn.now, item.until, item.lets_finish)
    if known is None or msgspec.structs.replace(known, since=turn.now) != bar:
        turn.emit(fact.NodeBarred(slot, bar, item.cause))
        if not bar.lets_finish:
            stop_seats(turn, seats_on(turn.world, slot), Why.DRAIN, f"node {item.name} drained")
    return DONE


def on_unbar_node(turn: Turn, item: event.UnbarNode) -> Done | Refused:
    """Lift a bar; one that does not stand is lifted already."""
    slot = turn.world.fleet.find_slot(item.name)
    if isinstance(slot, Reason):
        return Refused(slot)
    if _find_bar(turn.world.fleet.bars.get(slot, ()), item.kind, item.owner) is not None:
        turn.emit(fact.NodeUnbarred(slot, item.kind, item.owner, item.cause))
    return DONE


def stop_seats(turn: Turn, seats: Iterable[Seat], why: Why, cause: str) -> None:
    """Stop what sits there: it keeps its place until the engine confirms, and then waits again."""
    for seat in seats:
        if turn.world.jobs[seat.job].spec.array:
            _stop_tasks(turn, seat, why, cause)
        else:
            stop_gang(turn, seat.job, why, cause)


def stop_gang(turn: Turn, number: int, why: Why, cause: str) -> None:
    """A gang stops as a whole, wherever its other ranks are; one that is stopping already keeps its own reason."""
    job = turn.world.jobs[number]
    if not isinstance(job.phase, Stopping):
        turn.emit(fact.StopAsked(number, why, cause=cause))
        turn.stop_run(job)


def _find_fault(item: event.BarNode, now: int) -> Refused | None:
    if not is_name(item.owner):
        return refuse(Code.BAD_NAME, "owner", len(item.owner), 128, item.owner[:40])
    if len(item.reason) > BAR_REASON_CHARS_MAX:
        return refuse(Code.TOO_LARGE, "reason", len(item.reason), BAR_REASON_CHARS_MAX)
    if item.until is not None and not now < item.until <= INSTANT_MAX:
        return refuse(Code.BAD_AMOUNT, "until", item.until, INSTANT_MAX, f"after {now}, up to {INSTANT_MAX}")
    if item.kind == BarKind.CORDON and not item.lets_finish:
        return refuse(Code.BAD_SPEC, "lets_finish", detail="a cordon stops nothing; use a drain")
    return None


def _find_bar(bars: tuple[Bar, ...], kind: BarKind, owner: str) -> Bar | None:
    return next((bar for bar in bars if (bar.kind, bar.owner) == (kind, owner)), None)


def _stop_tasks(turn: Turn, seat: Seat, why: Why, cause: str) -> None:
    if seat.phase != TaskPhase.STOPPING:
        turn.emit(fact.TasksMoved(seat.job, seat.first, seat.count, TaskPhase.STOPPING, cause, why=why))
        turn.stop(turn.world.jobs[seat.job], seat.epoch, seat.first, seat.count)


def stop_ranges(turn: Turn, number: int, ranges: Sequence[int], why: Why, cause: str) -> None:
    """Stop tasks of an array, wherever they are: one word for all of them, and one to the engine for each run."""
    if ranges:
        first, count, *more = ranges
        moved = fact.TasksMoved(number, first, count, TaskPhase.STOPPING, cause, more, why)
        turn.emit(moved)
        for span in moved.spans:
            stop_range(turn, number, *span)


def stop_range(turn: Turn, number: int, first: int, count: int) -> None:
    """Tell the engine to stop tasks of an array, each run of them with its own epoch."""
    job, tasks = turn.world.jobs[number], turn.world.arrays[number]
    while count:
        width = tasks.same_epoch(first, count)
        turn.stop(job, tasks.epoch[first], first, width)
        first, count = first + width, count - width
