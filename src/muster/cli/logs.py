"""`muster logs`: the output of a job, as it is or as it comes."""

from __future__ import annotations

import sys

import click

from muster.cli.following import follow_output
from muster.sdk.client import Client


@click.command()
@click.argument("job", type=int)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job is over.")
@click.option("--task", type=click.IntRange(min=0), help="The task or rank (default: 0; with -f, all ranks).")
@click.option("--epoch", type=click.IntRange(min=1), help="The try (default: the latest).")
def logs(job: int, follow: bool, task: int | None, epoch: int | None) -> None:
    """Print a job's output."""
    with Client() as client:
        if follow and task is None and epoch is None:
            view = client.show(job)
            if view.counts is None:
                follow_output(client, job, max(1, view.epoch))
                return
        for part in client.logs(job, task or 0, epoch=epoch or 0, follow=follow):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()


COMMANDS = {"logs": logs}
