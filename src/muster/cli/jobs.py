"""`muster ls`, `show`, `wait`, `cancel`, `hold`, `release`, `requeue`, `migrate`, `scale`: jobs by their numbers. What
is shown is what the server said."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial

import click

from muster.cli.failing import JOB_FAILED
from muster.cli.moments import AT, read_past
from muster.cli.naming import JOB, take_one
from muster.cli.printing import (
    DRY_RUN,
    Listing,
    detail_options,
    listing_options,
    print_detail,
    print_fields,
    show_ago,
    show_ask,
    show_end,
    show_extra,
    show_failed,
    show_likely_end,
    show_listing,
    show_mark,
    show_origin,
    show_progress,
    show_tasks,
)
from muster.model.after import After
from muster.model.again import Again
from muster.model.reason import Code
from muster.model.spec import Spec
from muster.sdk.client import Client
from muster.sdk.errors import AnsweredError, UnfitError
from muster.units import parse_width, show_bytes, show_duration, show_instant, show_money, show_resources
from muster.wire.forecast_views import TrialView
from muster.wire.views import JobPage, JobView, Place

PHASES = ("queued", "starting", "running", "stopping", "succeeded", "failed", "cancelled")
OVER = PHASES[4:]
PAGE_MAX = 1000
LATELY = "; --since 1h shows what ended lately"


@click.command()
@click.option("-a", "--all", "show_all", is_flag=True, help="Also jobs that are over.")
@click.option("--tenant", multiple=True, callback=take_one, help="Only this tenant's.")
@click.option("--phase", type=click.Choice(PHASES), multiple=True, callback=take_one, help="Only jobs in this phase.")
@click.option("--since", callback=read_past, metavar="TIME", help="Also jobs that ended since then: 2h, 03:10, a date.")
@click.option("--oldest", is_flag=True, help="The oldest first.")
@click.option("--after", default=0, help="Begin after this job; continues a long listing.")
@click.option("--limit", default=100, show_default=True, help="At most this many.")
@AT
@listing_options
def ls(
    show_all: bool,
    tenant: str,
    phase: str,
    since: int | None,
    oldest: bool,
    after: int,
    limit: int,
    at: int | None,
    output: str,
    watch: bool,
) -> None:
    """List jobs, the newest first."""
    if at is not None and since is not None:
        raise click.UsageError("--since counts back from now; with --at, --all shows what was over by then")
    state = "all" if show_all or phase in OVER or since is not None else "live"
    with Client() as client:

        def look() -> Listing:
            order = "oldest" if oldest else "newest"
            read = partial(client.list, state=state, tenant=tenant, phase=phase, order=order)
            return _list(_read_pages(partial(read, since_ms=since or 0, at_ms=at), after, limit), state, at)

        show_listing(look, output, watch)


def _read_pages(read: Callable[..., JobPage], after: int, limit: int) -> JobPage:
    """As many jobs as are wanted, page by page: a server gives no more than so many at once."""
    page = read(after=after, limit=min(limit, PAGE_MAX))
    jobs = list(page.jobs)
    while page.next_after is not None and len(jobs) < limit:
        page = read(after=page.next_after, limit=min(limit - len(jobs), PAGE_MAX))
        jobs += page.jobs
    return JobPage(jobs, page.next_after, page.seq)


def _list(page: JobPage, state: str, at: int | None) -> Listing:
    lately = LATELY if state == "all" else ""
    return Listing(
        heads=("JOB", "NAME", "TENANT", "PHASE", "TASKS", "EACH", "SINCE", "ACCEPTED", "TRY", "FAILURES", "DETAIL"),
        rows=[_row(job, at) for job in page.jobs],
        value=page,
        names=[str(job.id) for job in page.jobs],
        wide=frozenset({"ACCEPTED", "TRY", "FAILURES"}),
        empty="no jobs match" if state == "all" else "no live jobs match; `muster ls --all` shows those that are over",
        note="" if page.next_after is None else f"more: add --after {page.next_after}{lately}",
    )


def _row(job: JobView, at: int | None) -> tuple[str, ...]:
    if job.counts is not None:
        detail = show_progress(job)
    elif job.phase == "failed":
        detail = show_end(job).removeprefix("failed: ")
    else:
        nodes = list(dict.fromkeys(place.node for place in job.places))  # groups may have several places on a node
        has_more = len(nodes) > 3 or job.places_total > len(job.places) > 3
        detail = ",".join(nodes[:3]) + (",…" if has_more else "")
        detail += show_extra(job)
    if job.held:
        detail = f"held, {detail}" if detail else "held"
    if job.waits:
        detail = f"after {','.join(map(str, job.waits[:3]))}" + (",…" if len(job.waits) > 3 else "")
    if not detail and job.phase == "queued":
        detail = f"muster why {job.id}"
    return (
        *(str(job.id), job.name or "-", job.tenant, job.phase, str(job.tasks), show_ask(job.ask)),
        *(
            show_ago(job.since_ms, at),
            show_instant(job.accepted_at_ms),
            str(job.epoch),
            str(job.failures),
            detail or "-",
        ),
    )


@click.command()
@click.argument("name", metavar="JOB|NODE")
@AT
@detail_options
def show(name: str, output: str, at: int | None) -> None:
    """Show one job, or one node: a number is a job."""
    with Client() as client:
        if not (name.isascii() and name.isdigit()):
            if at is not None:
                raise click.UsageError("one node is shown as it is; `muster nodes --at` shows them as they were")
            _show_node(client, name, output)
            return
        view = client.show(JOB.convert(name, None, click.get_current_context()), at_ms=at)
    if not print_detail(output, view):
        print_fields(_fields(view, at))


def _show_node(client: Client, name: str, output: str) -> None:
    """The node of that name; whoever means a job by its name is told how to call it."""
    from muster.cli.fleet import print_node  # a listing of jobs need not load it

    try:
        print_node(client, name, output)
    except AnsweredError as error:
        if error.problem.code != Code.UNKNOWN_NODE:
            raise
        raise click.UsageError(
            f"{name[:80]!r} is no node (`muster nodes`), and a job is called by its number (`muster ls -a`)"
        ) from error


def _fields(view: JobView, at: int | None) -> list[tuple[str, str]]:
    spec = view.spec
    fields = [
        ("job", str(view.id)),
        ("name", view.name),
        ("tenant", view.tenant),
        ("phase", show_end(view) if view.is_over else f"{view.phase}, for {show_ago(view.since_ms, at)}"),
        ("held", f"until `muster release {view.id}`" if view.held else ""),
        ("progress", show_progress(view) or show_mark(view)),
        *(("failed", show_failed(group)) for group in view.failed),
        *_ask_fields(view),
        ("places", "; ".join([*map(_show_place, view.places), *_show_more(view.places_total - len(view.places))])),
        ("spares", _show_spares(view)),
        ("accepted", show_instant(view.accepted_at_ms)),
        ("ended", show_instant(view.since_ms) if view.is_over else ""),
        ("likely over", show_likely_end(view)),
        ("try", str(view.epoch) if view.epoch else ""),
        ("failures", str(view.failures) if view.failures else ""),
        ("used", show_used(view)),
        ("user", "" if view.account is None else view.account.user),
        ("GPU time", show_time(view)),
        ("cost", show_money(view.account.cost_micros) if view.account and view.account.cost_micros else ""),
    ]
    if spec is not None:
        fields += [
            ("command", _show_command(spec)),
            *[("command", f"{name}: {shlex.join(words)}") for name, words in sorted(spec.commands.items())],
            ("directory", spec.workdir),
            ("variables", ", ".join(sorted(spec.env))),
            ("from", "" if spec.origin is None else spec.origin.directory),
            ("snapshot", "" if spec.origin is None else show_origin(spec.origin)),
            ("limit", "" if spec.limit_ms is None else show_duration(spec.limit_ms)),
            ("due", view.late or ("" if spec.due_at is None else f"at {show_instant(spec.due_at)}")),
            ("retries", str(spec.retries) if spec.retries else ""),
            ("after", _show_after(spec.after, view.waits)),
            ("again", "" if spec.again is None else _show_again(spec.again)),
            ("flags", _show_flags(spec)),
        ]
    return fields


def _show_flags(spec: Spec) -> str:
    """What else it was submitted with, as flags of `run`."""
    from muster.cli.respelling import spell_rest  # a listing need not load it

    return shlex.join(spell_rest(spec))


def _show_command(spec: Spec) -> str:
    """As it was submitted: what a batch script runs in is of use to nobody, and `-o json` has it."""
    from muster.sdk.slurm.script import find_script  # a listing need not load it

    script = find_script(spec.command, spec.env)
    return f"sbatch {shlex.quote(script)}" if script else shlex.join(spec.command)


def _ask_fields(view: JobView) -> list[tuple[str, str]]:
    """What each task asks for; of a gang of several groups, group by group."""
    groups = () if view.spec is None else view.spec.needs.groups
    if not groups:
        partition = "" if view.spec is None else view.spec.needs.partition
        return [("asks", f"{_show_width(view)} x {show_resources(view.ask)}"), ("partition", partition)]
    return [("asks", f"{group.name}: {group.tasks} x {show_resources(group.ask)}") for group in groups]


def _show_width(view: JobView) -> str:
    """How many tasks: of an elastic gang, its bounds; of an array, also how many at once, if that is bounded."""
    spec = view.spec
    if spec is not None and spec.is_elastic:
        return f"{spec.gang} to {spec.gang_most}"
    return str(view.tasks) if spec is None or not spec.at_most else f"{view.tasks}, at most {spec.at_most} at once,"


def show_used(view: JobView) -> str:
    """What its tasks used, as far as that is known: those that ended."""
    if not view.cpu_ms and not view.rss_bytes:
        return ""
    return f"{show_duration(view.cpu_ms)} of CPU, at most {show_bytes(view.rss_bytes)} of memory"


def show_time(view: JobView) -> str:
    """What its devices were held for, and how much of that was of use: `12h 3m: useful 98.7%, lost 3m`."""
    times = {} if view.account is None else view.account.time
    held = sum(times.values())
    if not held:
        return ""
    whole, tenth = divmod(1000 * times.get("useful", 0) // held, 10)
    others = [f", {name} {show_duration(spent // 1000)}" for name, spent in times.items() if name != "useful"]
    return f"{show_duration(held // 1000)}: useful {whole}.{tenth}%{''.join(others)}"


def _show_after(after: Sequence[After], waits: Sequence[int]) -> str:
    """Its conditions, and of which jobs they are not met yet."""
    named = ", ".join(map(str, after))
    return f"{named}; waits for {', '.join(map(str, waits))}" if waits else named


def _show_again(again: Again) -> str:
    """Which tasks of which array it runs again: `tasks 3, 7-9 of job 12`."""
    ranges = [(first, first + count - 1) for first, count in again.spans]
    return f"{show_tasks(ranges, sum(again.tasks[1::2]))} of job {again.of}"


def _show_spares(view: JobView) -> str:
    """Where they are; and that some are missing, if so."""
    if view.is_over or view.spec is None or not view.spec.spares:
        return ""
    held = sum(place.tasks for place in view.spares)
    more = _show_more(view.spares_total - len(view.spares))
    named = [place.node if place.tasks == 1 else f"{place.tasks} on {place.node}" for place in view.spares]
    places = ", ".join([*named, *more])
    if more:
        return places
    return places if held == view.spec.spares else f"{held} of {view.spec.spares}{f': {places}' if places else ''}"


def _show_more(count: int) -> list[str]:
    """That the server told the first alone."""
    return [f"… and {count} more"] if count > 0 else []


def _show_place(place: Place) -> str:
    shown = f"{place.tasks} task{'s' if place.tasks != 1 else ''} on {place.node}"
    named = f"{shown}, devices {','.join(map(str, place.devices))}" if place.devices else shown
    return f"{named}, partition {place.partition}" if place.partition else named


@click.command()
@click.argument("jobs", type=JOB, nargs=-1, required=True)
def wait(jobs: tuple[int, ...]) -> int:
    """Wait until jobs are over; the exit code of the first that failed becomes yours."""
    from muster.cli.following import await_end  # a listing need not load it

    codes = []
    with Client() as client:
        for job in jobs[1:]:  # a wrong number is told at once, not when those before it are over
            client.show(job)
        for job in jobs:
            view = await_end(client, job)
            click.echo(f"job {job} {show_end(view)}", err=True)
            codes.append(exit_code_of(view))
    return next((code for code in codes if code), 0)


def exit_code_of(view: JobView) -> int:
    """0 for success, else the job's own code; 1 if it has none (cancelled, or lost)."""
    if view.phase == "succeeded":
        return 0
    return view.exit_code or JOB_FAILED


@click.command()
@click.argument("jobs", type=JOB, nargs=-1, required=True)
@DRY_RUN
def cancel(jobs: tuple[int, ...], dry_run: bool) -> None:
    """End jobs."""
    if dry_run:
        _try_on_each(jobs, "cancel", "would be cancelled")
    else:
        _do_to_each(jobs, Client.cancel, "is being cancelled")


@click.command()
@click.argument("jobs", type=JOB, nargs=-1, required=True)
@DRY_RUN
def hold(jobs: tuple[int, ...], dry_run: bool) -> None:
    """Keep jobs from starting, until they are released. What runs of them goes on."""
    if dry_run:
        _try_on_each(jobs, "hold", "would be held")
    else:
        _do_to_each(jobs, Client.hold, "is held")


@click.command()
@click.argument("jobs", type=JOB, nargs=-1, required=True)
@DRY_RUN
def release(jobs: tuple[int, ...], dry_run: bool) -> None:
    """Let held jobs start again."""
    if dry_run:
        _try_on_each(jobs, "release", "would be released")
    else:
        _do_to_each(jobs, Client.release, "is released")


@click.command()
@click.argument("jobs", type=JOB, nargs=-1, required=True)
@click.option("--failed", is_flag=True, help="Of arrays: run the tasks that failed again, as a job of their own.")
@DRY_RUN
def requeue(jobs: tuple[int, ...], failed: bool, dry_run: bool) -> None:
    """Stop what runs of jobs, and let them wait again in their old place. Or run what failed of arrays again: muster
    requeue 12 --failed

    What is over stays over: they are the tasks of a new job, with the numbers that they had.
    """
    if failed and dry_run:
        raise click.UsageError("--dry-run says what the stop would do; of --failed, `muster logs` tells which failed")
    if dry_run:
        _try_on_each(jobs, "requeue", "would go back to the queue")
    elif failed:
        _do_to_each(jobs, _bring_back, "")
    else:
        _do_to_each(jobs, Client.requeue, "goes back to the queue")


def _bring_back(client: Client, job: int) -> str:
    new = client.show(client.requeue_failed(job).job)
    return f"{new.tasks} failed task{'s' if new.tasks != 1 else ''} of job {job} run again as job {new.id}"


@click.command()
@click.argument("job", type=JOB)
@click.argument("width")
@DRY_RUN
def scale(job: int, width: str, dry_run: bool) -> None:
    """Let a gang have at most so many tasks, or other bounds; an array, so many at once: muster scale 12 4, 12 2-16

    What runs of an array goes on, also if there is more of it than that.
    """
    first, second = parse_width(width, "width")
    least, most = (first, second) if "-" in width else (0, first)
    said = f"have {f'{least} to' if least else 'at most'} {most} task{'s' if most != 1 else ''}"
    if dry_run:
        _try_once(job, lambda client: client.try_scale(job, most, least), f"would {said}")
        return
    with Client() as client:
        client.scale(job, most, least)
        click.echo(f"job {job} is to {said}")
        client.settle()


@click.command()
@click.argument("job", type=JOB)
@click.option("--to", multiple=True, metavar="NODE", help="Only on these nodes.")
@click.option("--off", multiple=True, metavar="NODE", help="On none of these; by itself, none of those that it has.")
@DRY_RUN
def migrate(job: int, to: tuple[str, ...], off: tuple[str, ...], dry_run: bool) -> None:
    """Let a gang, or tasks of an array, go on elsewhere, from the checkpoint: muster migrate 12 --off node-3

    It is told to stop only if there is a place for it, which is kept until it is gone from the old one. Of an array,
    only those tasks are that have to go.
    """
    if dry_run:
        _try_once(job, lambda client: client.try_migrate(job, to, off), "would go on elsewhere")
        return
    with Client() as client:
        client.migrate(job, to, off)
        click.echo(f"job {job} is to go on elsewhere")
        client.settle()


def _try_once(job: int, ask: Callable[[Client], TrialView], said: str) -> None:
    """What would become of one job, and of others."""
    from muster.cli.trying import NOTHING_CHANGED, spell_job_change  # here: most changes are made

    with Client() as client:
        click.echo(spell_job_change(client.show(job), ask(client), said))
    click.echo(NOTHING_CHANGED, err=True)


def _try_on_each(jobs: tuple[int, ...], verb: str, said: str) -> None:
    """What would become of each, and of others: one at a time, and each as if the others were left alone."""
    from muster.cli.trying import NOTHING_CHANGED, spell_job_change  # here: most changes are made

    _do_to_each(jobs, lambda client, job: spell_job_change(client.show(job), client.try_on(job, verb), said), "")
    click.echo(NOTHING_CHANGED, err=True)


def _do_to_each(jobs: tuple[int, ...], act: Callable[[Client, int], object], said: str) -> None:
    """All that can be done is done; the first refusal is told at the end. Where nobody decides, none is asked for the
    others."""
    refused: list[AnsweredError] = []
    with Client() as client:
        for job in jobs:
            try:
                done = act(client, job)
            except UnfitError as error:
                refused.insert(0, error)
                break
            except AnsweredError as error:
                refused.append(error)
            else:
                click.echo(f"job {job} {said}" if said else done)
        else:
            client.settle()
    for other in refused[1:]:
        click.echo(f"error[{other.problem.code}]: {other.problem.detail}", err=True)
    if refused:
        raise refused[0]


COMMANDS = {
    "ls": ls,
    "show": show,
    "wait": wait,
    "cancel": cancel,
    "hold": hold,
    "release": release,
    "requeue": requeue,
    "migrate": migrate,
    "scale": scale,
}
