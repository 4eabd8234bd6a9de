"""`muster why` and `muster story`: what a job waits for, and how it came to where it is.

The sentences come from the server; here they are only laid out.
"""

from __future__ import annotations

import click

from muster.cli.here import get_here
from muster.cli.moments import AT
from muster.cli.naming import JOB
from muster.cli.printing import (
    Listing,
    detail_options,
    listing_options,
    print_detail,
    show_ago,
    show_ask,
    show_end,
    show_likely_end,
    show_listing,
    show_progress,
)
from muster.model.reason import Code
from muster.sdk.client import Client
from muster.sdk.errors import AnsweredError
from muster.units import show_instant, show_resources
from muster.wire.views import JobView, Story, WhyView


@click.command()
@click.argument("job", type=JOB)
@AT
@detail_options
def why(job: int, output: str, at: int | None) -> None:
    """Say why a job waits, and what would help."""
    with Client() as client:
        view = client.why(job, at_ms=at)
        if print_detail(output, view):
            return
        if view.code == Code.NOT_WAITING:
            _print_other(client.show(job, at_ms=at), at)
        else:
            click.echo(f"job {view.job} {'was' if at else 'is'} {view.words} [{view.code}]")
            if view.phase != "queued":  # some of its tasks run: those that wait are not all of it
                click.echo(f"  {show_progress(client.show(job, at_ms=at))}")
            print_waiting(view, *_advise(client, view) if at is None else ())


def _advise(client: Client, view: WhyView) -> tuple[str, str]:
    """When it will likely start, and what to type to have it start now. Nobody is stopped by what was only pasted, and
    of what has begun nothing is begun anew."""
    forecast = foretell(client, view.job) if view.position else ""
    option = next((each for each in view.options if not each.stops), None)
    spec = client.show(view.job).spec if option is not None and view.phase == "queued" else None
    if option is None or spec is None:
        return forecast, ""
    from muster.cli.respelling import put_to_use  # here: it brings `run` and all its flags along

    return forecast, put_to_use(view.job, spec, option, str(get_here()))


def foretell(client: Client, job: int) -> str:
    """When a job will likely start, in words; nothing if nobody can say, or if the server is older than the route."""
    try:
        return client.forecast(job).words
    except AnsweredError:
        return ""


def print_waiting(view: WhyView, forecast: str = "", line: str = "") -> None:
    """Where a job stands, who is ahead, what would start it and how that is typed, and the one thing to do."""
    if view.position:
        click.echo(f"  place in the line: {view.position}")
    for other in view.ahead:
        tasks = f"{other.tasks} x {show_ask(other.ask)}"
        click.echo(f"  ahead: job {other.job} of {other.tenant}, {tasks}")
    unseen = view.position - 1 - len(view.ahead)
    if unseen > 0:
        click.echo(f"  ahead: {unseen} more")
    if view.position > 1:
        click.echo(f"  all ahead ask for {show_resources(view.ahead_total)}")
    if forecast:
        click.echo(f"  {forecast}")
    if view.offer:
        click.echo(f"  {view.offer}")
    if line:
        click.echo(f"  {line}")
    if view.late:
        click.echo(f"  {view.late}")
    click.echo(f"help: {view.fix}")


def _print_other(view: JobView, at: int | None) -> None:
    """Nothing of it waits, or did then: say what it does instead."""
    did, verb = ("does not wait: it is", "is") if at is None else ("did not wait: it was", "was")
    since = show_ago(view.since_ms, at)
    if view.is_over:
        click.echo(f"job {view.id} {verb} over: {show_end(view)}, {since} {'ago' if at is None else 'before'}")
        return
    places = ", ".join(place.node for place in view.places)
    where = f" on {places}" if places else ""
    click.echo(f"job {view.id} {did} {view.phase}{where}, for {since}")
    if likely := show_likely_end(view):
        click.echo(f"  likely over {likely}")


@click.command()
@click.argument("job", type=JOB)
@listing_options
def story(job: int, output: str, watch: bool) -> None:
    """Tell a job's life, step by step."""
    with Client() as client:
        show_listing(lambda: _list(client.story(job)), output, watch)


def _list(view: Story) -> Listing:
    return Listing(
        heads=("WHEN", "ENTRY", "WHAT", "CAUSE"),
        rows=[(show_instant(line.at_ms), str(line.seq), line.what, line.cause) for line in view.lines],
        value=view,
        names=[str(line.seq) for line in view.lines],
    )


COMMANDS = {"why": why, "story": story}
