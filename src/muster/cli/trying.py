"""`--dry-run`: what a change would do at once, as the server's own scheduler found it. Laid out here, decided there."""

from __future__ import annotations

from typing import Final

import click

from muster.cli.printing import show_plain
from muster.units import show_money
from muster.wire.views import TrialJob, TrialView

DRY_RUN: Final = click.option("--dry-run", is_flag=True, help="Say what it would do, and do nothing.")


def print_job_trial(view: TrialView) -> None:
    """How a job would stand."""
    if view.job is None:
        return
    if view.why is not None:
        from muster.cli.explain import print_waiting  # here: most trials start

        click.echo(f"would be accepted, and wait: {view.why.words} [{view.why.code}]")
        print_waiting(view.why)
    else:
        places = ", ".join(place.node for place in view.job.places)
        cost = f", for {show_money(view.price_micros)} an hour" if view.price_micros else ""
        click.echo(f"would be accepted, and start now{f' on {places}' if places else ''}{cost}")
    _print_effects(view)
    click.echo("nothing was submitted", err=True)


def print_change_trial(view: TrialView) -> None:
    """What a change of the rules would do to jobs."""
    _print_effects(view)
    if not (view.started or view.stopped or view.waiting):
        click.echo("no job would start, stop or wait for another reason at once")
    click.echo("nothing was changed; what comes of it later depends on what comes", err=True)


def _print_effects(view: TrialView) -> None:
    for words, jobs, count in (
        ("would start", view.starts, view.started),
        ("would be told to stop", view.stops, view.stopped),
        ("would wait for another reason", view.waits, view.waiting),
    ):
        if count:
            click.echo(f"{count} job{'s' if count != 1 else ''} {words}:")
            for each in jobs:
                click.echo(f"  {_show(each)}")
            if count > len(jobs):
                click.echo(f"  … and {count - len(jobs)} more")


def _show(each: TrialJob) -> str:
    name = f" {show_plain(each.name)}" if each.name else ""
    what = f": {each.what}" if each.what.startswith("waiting") else ""
    return f"job {each.job}{name} of {each.tenant}{what}"
