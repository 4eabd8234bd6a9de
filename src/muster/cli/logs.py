"""`muster logs`: the output of a job, as it is or as it comes."""

from __future__ import annotations

import sys

import click

from muster.cli.following import follow_output, follow_tasks
from muster.cli.naming import JOB
from muster.sdk.client import Client
from muster.units import parse_count
from muster.wire.views import JobView

TASKS_MAX = 64


@click.command()
@click.argument("job", type=JOB)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job is over.")
@click.option(
    "--task",
    "--rank",
    "tasks",
    metavar="N[-M][,...]",
    help="These tasks or ranks (default: the first; with -f, all ranks).",
)
@click.option("--epoch", type=click.IntRange(min=1), help="The try (default: the latest).")
def logs(job: int, follow: bool, tasks: str | None, epoch: int | None) -> None:
    """Print a job's output: muster logs 7 -f --task 0-3,7"""
    wanted = [] if tasks is None else parse_tasks(tasks)
    with Client() as client:
        if len(wanted) > 1:
            follow_tasks(client, job, wanted, epoch or 0, follow=follow)
            return
        if tasks is None:
            view = client.show(job)
            if follow and epoch is None and view.counts is None:
                follow_output(client, job, max(1, view.epoch))
                return
            if view.tasks > 1:
                click.echo(f"the first of {view.tasks} tasks; others: muster logs {job} --task N", err=True)
        size = 0
        for part in client.logs(job, wanted[0] if wanted else None, epoch=epoch or 0, follow=follow):
            size += sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        if not size:
            _explain_silence(client.show(job), epoch or 0)


def _explain_silence(view: JobView, epoch: int) -> None:
    """Nothing was printed: say so if that is not because it has nothing to say."""
    if view.counts is None and epoch > view.epoch > 0:
        click.echo(f"job {view.id} has no try {epoch} yet: this is try {view.epoch}", err=True)
    elif view.phase == "queued":
        click.echo(f"job {view.id} does not run; `muster why {view.id}` says what it waits for", err=True)


def parse_tasks(text: str) -> list[int]:
    """`0-3,7` -> [0, 1, 2, 3, 7]."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start = parse_count(first, "task")
        end = parse_count(last, "task") if dash else start
        if end < start:
            raise click.UsageError(f"--task {text}: {part} ends before it begins")
        if end - start >= TASKS_MAX or len(found) >= TASKS_MAX:
            raise click.UsageError(f"--task {text}: at most {TASKS_MAX} at once")
        found += range(start, end + 1)
    return list(dict.fromkeys(found))


COMMANDS = {"logs": logs}
