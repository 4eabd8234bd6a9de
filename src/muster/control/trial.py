"""Trials: what a change would do at once, found by making it in a world that is then thrown away.

The kernel itself decides, twice: what it would do anyway comes first and is not counted, so that what is left follows
from the change. Only the present is looked at: who starts, who is told to stop, whose reason to wait is another. What
comes of it in hours or days is a forecast, and is not made here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeGuard

from muster.control.bookings import view_bookings
from muster.control.views import complete_reason, cut_places, find_reason, price_of, view_job
from muster.kernel.kernel import Kernel
from muster.model import fact
from muster.model.errors import RejectedError
from muster.model.event import Event, MigrateJob, Reserve, ScaleJob, Submit
from muster.model.job import Resize
from muster.model.phase import ACTIVE, TaskPhase
from muster.model.reason import Done, Refused
from muster.model.spec import Spec
from muster.scheduler.reasons import explain
from muster.wire.forecast_views import TrialJob, TrialView
from muster.wire.views import BookingView, Place
from muster.wire.words import put_in_words
from muster.world.snapshot import restore, snapshot
from muster.world.widths import width_of
from muster.world.world import World

COMPARED_MAX: Final = 500
SHOWN_MAX: Final = 100


class Aftermath(NamedTuple):
    """A world after a change, what it was before, and the facts between them."""

    before: World
    after: World
    facts: list[fact.Fact]
    answer: Done


def try_out(world: World, event: Event, now: int, *more: Event) -> TrialView:
    """What an event would do to a world, which is used up by this, or several that come at once; RejectedError if it
    would be refused."""
    found = _play(world, [event, *more], now)
    own = found.answer.job if isinstance(event, Submit) else 0
    starts = [job for job in _started(found.facts) if job != own]
    stops = list(dict.fromkeys(item.job for item in found.facts if _tells_to_stop(item)))
    waits = list(_changed(found, frozenset(starts)))
    job = found.after.jobs.get(own)
    places = _find_new_places(found, event.job) if isinstance(event, MigrateJob) else []
    reason = None if job is None else find_reason(found.after, own)
    return TrialView(
        seq=world.seq,
        job=None if job is None else view_job(found.after, job),
        why=complete_reason(found.after, reason),
        price_micros=0 if job is None else price_of(found.after, job),
        starts=[_tell(found.after, number, "starts") for number in starts[:SHOWN_MAX]],
        stops=[_tell(found.after, number, "is told to stop") for number in stops[:SHOWN_MAX]],
        waits=waits[:SHOWN_MAX],
        started=len(starts),
        stopped=len(stops),
        waiting=len(waits),
        places=cut_places(places),
        places_total=len(places),
        tasks=_count_tasks(found.after, event.job) if isinstance(event, ScaleJob) else 0,
        booking=_find_booking(found.after, event) if isinstance(event, Reserve) else None,
    )


def _play(world: World, events: Sequence[Event], now: int) -> Aftermath:
    """Let everything settle that is due anyway, and only then make the change, on a copy."""
    kernel = Kernel(world)
    now = max(now, world.now)
    for _ in range(2):
        kernel.handle([], now)
    changed = Kernel(restore(snapshot(world)))
    outcome = changed.handle(events, now)
    answers = [answer for answer in outcome.answers if isinstance(answer, Done)]
    for answer in outcome.answers:
        if isinstance(answer, Refused):
            raise RejectedError(answer.reason)
    later = changed.handle([], now)
    return Aftermath(world, changed.world, [*outcome.facts, *later.facts], answers[0])


def _tells_to_stop(item: fact.Fact) -> TypeGuard[fact.StopAsked | fact.TasksMoved]:
    """Of a gang, or of tasks of an array."""
    return isinstance(item, fact.StopAsked) or (isinstance(item, fact.TasksMoved) and item.phase == TaskPhase.STOPPING)


def _find_new_places(found: Aftermath, number: int) -> list[Place]:
    """What is kept for a job that moves, node by node."""
    shown, held = found.after.fleet.shown(), dict[str, int]()
    for item in found.facts:
        if isinstance(item, fact.Claimed) and item.job == number:
            for slot, tasks in zip(item.slots, item.tasks, strict=True):
                held[shown[slot]] = held.get(shown[slot], 0) + tasks
    return [Place(node, tasks) for node, tasks in held.items()]


def _count_tasks(world: World, number: int) -> int:
    """How many tasks a gang would have in a while; 0 if it has none, or is an array."""
    job = world.jobs[number]
    if job.spec.array or not isinstance(job.phase, ACTIVE):
        return 0
    return world.widths.resizes.get(number, Resize(0)).to or width_of(job)


def _find_booking(world: World, event: Reserve) -> BookingView | None:
    return next((view for view in view_bookings(world) if view.name == event.booking.name), None)


def _started(facts: list[fact.Fact]) -> list[int]:
    found: dict[int, None] = {}
    for item in facts:
        if isinstance(item, fact.Placed):
            found |= dict.fromkeys(item.jobs)
        elif isinstance(item, fact.TasksPlaced):
            found[item.job] = None
    return list(found)


def _changed(found: Aftermath, started: frozenset[int]) -> Iterator[TrialJob]:
    """Jobs that wait for another reason than before, among the first that wait."""
    waiting = [job for job in found.before.jobs.values() if found.before.is_waiting(job)]
    for job in waiting[:COMPARED_MAX]:
        after = found.after.jobs.get(job.id)
        if after is None or job.id in started:
            continue
        old, new = explain(found.before, job), explain(found.after, after)
        if old is not None and new is not None and old.reason.code != new.reason.code:
            words = put_in_words(new.reason).what
            yield TrialJob(job.id, job.spec.tenant, job.spec.name, f"{words} (before: {put_in_words(old.reason).what})")


def _tell(world: World, number: int, what: str) -> TrialJob:
    spec: Spec = world.jobs[number].spec
    return TrialJob(number, spec.tenant, spec.name, what)
