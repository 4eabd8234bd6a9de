"""Forecasts as readers see them: what history knows is learned, rollouts are made, what they found is put in words.

Built on a fork, when somebody asks; nothing is stored. Whoever may not see a job is not told its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from muster.forecast.comers import NOBODY, Comers, gather
from muster.forecast.comparison import compare
from muster.forecast.lengths import Lengths, Ran
from muster.forecast.rollout import Arrival
from muster.forecast.starts import JOBS_MAX, Outlook, foresee
from muster.model.event import Event
from muster.model.history import Remembered
from muster.model.spec import Spec
from muster.units import DAY_MS, SECOND_MS, show_duration, show_instant
from muster.wire.forecast_views import DayRow, DayView, ForecastView
from muster.wire.history import decode_ending
from muster.world.world import World

LIKES_READ: Final = 2000
"""From how many of the jobs that ended last run times are learned."""


def learn(remembered: Iterable[Remembered]) -> Lengths:
    """What ended jobs tell of run times; an array's tell nothing of a task's."""
    found: list[Ran] = []
    for each in remembered:
        ending = decode_ending(each.finished.data)
        if not ending.counts and ending.served_ms:
            found.append(Ran(each.finished.tenant, ending.name, ending.served_ms))
    return Lengths(found)


def come_again(remembered: Iterable[Remembered], now: int) -> list[Arrival]:
    """Jobs of the last day, a day later; those that never ran do not come."""
    return [each._replace(at=each.at + DAY_MS) for each in _who_came(remembered) if each.at >= now - DAY_MS]


def find_comers(world: World, remembered: Iterable[Remembered], now: int) -> Comers:
    """Who came in the last day, whether they are over or still here; of arrays nobody says how long their tasks run."""
    here = [Arrival(job.accepted_at, job.spec, None) for job in world.jobs.values() if not job.spec.array]
    return gather([*_who_came(remembered), *here], now)


def _who_came(remembered: Iterable[Remembered]) -> Iterator[Arrival]:
    for each in remembered:
        ending = decode_ending(each.finished.data)
        if ending.counts or not ending.served_ms:
            continue
        spec = Spec(
            ("again",),
            name=ending.name,
            tenant=each.finished.tenant,
            tier=ending.tier,
            gang=ending.tasks,
            ask=ending.ask,
        )
        yield Arrival(ending.accepted_at, spec, ending.served_ms)


def say_start(
    world: World, job: int, now: int, lengths: Lengths, sees: Callable[[str], bool], comers: Comers = NOBODY
) -> ForecastView:
    """When a job that waits will likely start."""
    view = ForecastView(job, world.seq, max(now, world.now))
    known = world.jobs.get(job)
    if known is None or not world.is_waiting(known):
        return view
    outlook = foresee(world, job, view.as_of_ms, lengths, comers)
    if outlook is None:
        return ForecastView(job, view.seq, view.as_of_ms, words=_excuse(len(world.jobs)))
    after = [number for number in outlook.after if number in world.jobs and sees(world.jobs[number].spec.tenant)]
    likes = lengths.count_likes(known.spec)
    words = _put_in_words(outlook, view.as_of_ms, _say_after(world, job, after))
    return ForecastView(
        job, view.seq, view.as_of_ms, outlook.rollouts, outlook.earliest, outlook.latest, after, likes, words
    )


def say_day(world: World, change: Event, now: int, lengths: Lengths, comers: list[Arrival]) -> DayView | None:
    """What a change would do in a day; None if there is too much to run ahead."""
    found = compare(world, change, now, lengths, comers)
    if found is None:
        return None
    rows = [
        DayRow(day.tenant, day.jobs, day.started, (day.waited_ms[0] // day.jobs, day.waited_ms[1] // day.jobs))
        for day in found.days
    ]
    return DayView(rows, found.taken, found.held_milli, found.comers)


def _say_after(world: World, job: int, after: list[int]) -> str:
    """Whose end a start waits for first; an array may wait for tasks of its own."""
    if not after:
        return ""
    if after[0] == job:
        return ", when tasks of its own are over"
    return f", when job {after[0]} of {world.jobs[after[0]].spec.tenant} is over"


def _put_in_words(outlook: Outlook, now: int, cause: str) -> str:
    """`likely start: 14:05 to 14:40 (in 12m to 47m), when job 2 of vision is over`."""
    if outlook.earliest is None and outlook.is_endless:
        return "no likely start: those it waits for have no limit, and nothing like them has ended"
    if outlook.earliest is None:
        return "no likely start within 7 days: nodes are closed to it, or its quota is, or too many go first"
    first = _show_clock(outlook.earliest, now)
    in_first = show_duration(_rounded(outlook.earliest - now))
    if outlook.latest is None:
        return f"likely start: {first} at the earliest (in {in_first}){cause}"
    if _show_clock(outlook.latest, now) == first:
        return f"likely start: {first} (in {in_first}){cause}"
    in_last = show_duration(_rounded(outlook.latest - now))
    return f"likely start: {first} to {_show_clock(outlook.latest, now)} (in {in_first} to {in_last}){cause}"


def _excuse(live: int) -> str:
    """Why nothing is foretold."""
    if live > JOBS_MAX:
        return f"no forecast: {live:,} jobs are here, and with more than {JOBS_MAX:,} it would keep readers waiting"
    return "no forecast: too much happens before it starts to be run ahead"


def _show_clock(at: int, now: int) -> str:
    """The time of the day, and the day if it is another; UTC."""
    text = show_instant(at)
    return f"{text[11:16]}Z" if text[:10] == show_instant(now)[:10] else f"{text[:16]}Z"


def _rounded(span_ms: int) -> int:
    return span_ms // SECOND_MS * SECOND_MS
