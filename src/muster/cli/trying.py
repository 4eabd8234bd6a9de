"""`--dry-run`: what a change would do at once, and likely in a day, as the server's own scheduler found it. Laid out
here, decided there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click
from msgspec.structs import replace

from muster.cli.printing import show_ago, show_mark, show_plain
from muster.units import show_duration, show_instant, show_money
from muster.wire.forecast_views import DayView, TrialJob, TrialView
from muster.wire.views import JobView, Place, WindowView

NOTHING_CHANGED: Final = "nothing was changed; the same without --dry-run does it"
NOTHING_DONE: Final = "nothing was submitted"
NOBODY: Final = "no job would start, stop or wait for another reason at once"
PLACES_SHOWN: Final = 8
WINDOWS_SHOWN: Final = 8


def print_job_trial(view: TrialView) -> None:
    """How a job would stand."""
    job, why = view.job, view.why
    if job is None:
        return
    begun = 0 if job.counts is None else job.tasks - job.counts.queued - job.counts.blocked
    places = ", ".join(place.node for place in job.places)
    where = f"{f' on {places}' if places else ''}{_show_price(view)}"
    if why is None:
        click.echo(f"would be accepted, and start now{where}")
    elif begun:
        click.echo(f"would be accepted, and {begun} of {job.tasks} tasks start{'s' if begun == 1 else ''} now{where}")
        click.echo(f"  the others would be {why.words} [{why.code}]")
    else:
        from muster.cli.explain import print_waiting  # here: most trials start

        click.echo(f"would be accepted, and wait: {why.words} [{why.code}]")
        print_waiting(why)
    _print_effects(view)


def _show_price(view: TrialView) -> str:
    return f", for {show_money(view.price_micros)} an hour" if view.price_micros else ""


def print_change_trial(view: TrialView) -> None:
    """What a change of the rules would do to jobs."""
    _print_effects(view)
    if not (view.started or view.stopped or view.waiting):
        click.echo(NOBODY)
    if view.day is not None:
        _print_day(view.day)
    else:
        click.echo("the next 24 h were not simulated: there is too much to run ahead (5,000 jobs are the most)")
    click.echo(NOTHING_CHANGED, err=True)


def _print_day(day: DayView) -> None:
    """The next day without the change and with it, for those whose day it is."""
    comers = "the one job of the last day comes" if day.comers == 1 else f"the {day.comers} jobs of the last day come"
    again = f", and {comers} again" if day.comers else ""
    click.echo(f"simulated, the next 24 h (those who are here{again}):")
    changed = [row for row in day.tenants if row.started[0] != row.started[1] or row.wait_ms[0] != row.wait_ms[1]]
    for row in changed:
        waits = _show_pair(*(show_duration(wait_ms) for wait_ms in row.wait_ms))
        starts = f"{row.started[1]} of {_count(row.jobs, 'job')} start{'s' if row.jobs == 1 else ''}"
        instead = f" instead of {row.started[0]}" if row.started[0] != row.started[1] else ""
        more = "less" if row.wait_ms[1] < row.wait_ms[0] else "more" if row.wait_ms[1] > row.wait_ms[0] else "as long"
        click.echo(f"  {row.tenant} waits {more}: {waits} on the average; {starts}{instead}")
    if not changed:
        click.echo("  nobody waits longer or shorter")
    stops, held = (_show_pair(*map(str, pair)) for pair in (day.stops, _percents(day.held_milli)))
    click.echo(f"  stopped for others: {stops}; GPU time held: {held}")


def _show_pair(before: str, after: str) -> str:
    """Without the change and with it."""
    return f"{after} as before" if before == after else f"{after} instead of {before}"


def _percents(pair: tuple[int, int]) -> tuple[str, str]:
    before, after = (f"{milli / 10:g} %" for milli in pair)
    return before, after


def print_node_trial(view: TrialView) -> None:
    """What something done to a node, or a booking, would do to jobs."""
    _print_effects(view)
    if not (view.started or view.stopped or view.waiting):
        click.echo(NOBODY)
    click.echo(NOTHING_CHANGED, err=True)


def print_booking_trial(view: TrialView) -> None:
    """Which nodes a booking would get, window by window, and what that would do to jobs."""
    if view.booking is not None:
        windows, wanted = view.booking.windows, view.booking.nodes
        for window in windows[:WINDOWS_SHOWN]:
            click.echo(f"  {_show_window(window, wanted - window.short)}")
        if len(windows) > WINDOWS_SHOWN:
            click.echo(f"  … and {_count(len(windows) - WINDOWS_SHOWN, 'window')} more")
    print_node_trial(view)


def _show_window(window: WindowView, held: int) -> str:
    nodes, more = ", ".join(window.nodes[:PLACES_SHOWN]), max(0, held - PLACES_SHOWN)
    span = f"{show_instant(window.opens_at_ms)[:16]} to {show_instant(window.closes_at_ms)[:16]}"
    short = f", short by {window.short}" if window.short else ""
    return f"{span}: {nodes or 'no node yet'}{f' and {more} more' if more else ''}{short}"


def spell_job_change(job: JobView, view: TrialView, said: str) -> str:
    """What something done to a job would do to it, and to others."""
    name = f" ({show_plain(job.name)})" if job.name else ""
    where = f" on {', '.join(place.node for place in job.places)}" if job.places else ""
    lines = [f"job {job.id}{name} of {job.tenant}, {job.phase}{where}, {said}"]
    if any(each.job == job.id for each in view.stops):
        others = [each for each in view.stops if each.job != job.id]
        view = replace(view, stops=others, stopped=view.stopped - 1)
        lines.append(f"  it would be told to stop{_show_loss(job)}")
    held = sum(place.tasks for place in job.places)
    if view.tasks and view.tasks != held:
        lines.append(f"  it would have {_count(view.tasks, 'task')} instead of {held}")
    if view.places:
        lines.append(f"  it would go on on {', '.join(map(_show_place, view.places[:PLACES_SHOWN]))}{_show_more(view)}")
    return "\n".join([*lines, *_spell_effects(view)])


def _show_place(place: Place) -> str:
    return place.node if place.tasks == 1 else f"{place.node} ({place.tasks} tasks)"


def _show_more(view: TrialView) -> str:
    more = view.places_total - len(view.places[:PLACES_SHOWN])
    return f" and {more} more" if more > 0 else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _show_loss(job: JobView) -> str:
    """For how long it has run, which a checkpoint may have saved."""
    if job.phase != "running" or job.counts is not None:
        return ""
    mark = show_mark(job)
    return f", after {show_ago(job.since_ms)}{f', {mark}' if mark else ''}"


def _print_effects(view: TrialView) -> None:
    for line in _spell_effects(view):
        click.echo(line)


def _spell_effects(view: TrialView) -> Iterator[str]:
    for words, jobs, count in (
        ("would start", view.starts, view.started),
        ("would be told to stop", view.stops, view.stopped),
        ("would wait for another reason", view.waits, view.waiting),
    ):
        if count:
            yield f"{count} job{'s' if count != 1 else ''} {words}:"
            yield from (f"  {_show(each)}" for each in jobs)
            if count > len(jobs):
                yield f"  … and {count - len(jobs)} more"


def _show(each: TrialJob) -> str:
    name = f" {show_plain(each.name)}" if each.name else ""
    what = f": {each.what}" if each.what.startswith("waiting") else ""
    return f"job {each.job}{name} of {each.tenant}{what}"
