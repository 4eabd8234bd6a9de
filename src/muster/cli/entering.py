"""`muster exec` and `muster shell`: a command beside a running task, with its environment, in its directory.

It is your process and not the job's: it counts for nobody, and goes on when the job ends.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from muster.cli.failing import NOT_FOUND, NOT_RUNNABLE
from muster.cli.naming import JOB
from muster.cli.printing import show_plain
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.sdk.client import Client
from muster.sdk.home import Home
from muster.sdk.tasks import TaskProcess, get_task_process
from muster.sdk.whereabouts import default_root


@click.command(name="exec")
@click.argument("job", type=JOB)
@click.option("--task", type=click.IntRange(min=0), default=0, show_default=True, help="The task or rank.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(job: int, task: int, command: tuple[str, ...]) -> int:
    """Run a command beside a running job, on its machine: muster exec 12 -- nvidia-smi"""
    return _become(command, _enter(job, task))


@click.command()
@click.argument("job", type=JOB)
@click.option("--task", type=click.IntRange(min=0), default=0, show_default=True, help="The task or rank.")
def shell(job: int, task: int) -> int:
    """Open a shell beside a running job, on its machine."""
    process = _enter(job, task)
    return _become((process.env.get("SHELL", "/bin/sh"),), process)


def _enter(job: int, task: int) -> TaskProcess:
    with Client() as client:
        view = client.show(job)  # refused with the server's own words if there is no such job
    if view.is_over:
        raise RejectedError(Reason(Code.ALREADY_OVER, "job", needed=job))
    if view.phase == "queued":
        raise click.UsageError(f"job {job} waits, so nothing of it runs yet; `muster why {job}` says for what")
    return get_task_process(Home(Path(default_root())), job, task)


def _become(command: tuple[str, ...], process: TaskProcess) -> int:
    """Leave this program for the command; what is not there or cannot be run is said as shells say it."""
    terminal = {"TERM": os.environ["TERM"]} if "TERM" in os.environ else {}
    try:
        os.chdir(process.directory)
    except OSError as error:
        detail = f"{process.directory}: {error.strerror}"
        raise RejectedError(Reason(Code.BAD_SPEC, "directory", detail=detail)) from error
    try:
        os.execvpe(command[0], command, {**process.env, **terminal})  # noqa: S606 - no shell is the point
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        said = "command not found" if is_missing else f"cannot be run ({error.strerror})"
        click.echo(f"error: {said}: {show_plain(command[0])}", err=True)
        click.echo(f"help: it is looked for where the job looks, in PATH={process.env.get('PATH', '')}", err=True)
        return NOT_FOUND if is_missing else NOT_RUNNABLE


COMMANDS = {"exec": exec_, "shell": shell}
