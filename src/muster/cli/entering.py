"""`muster exec` and `muster shell`: a command beside a running task, with its environment, in its directory, and in its
container if it has one.

It is your process and not the job's: it counts for nobody, and goes on when the job ends.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import click

from muster.cli.failing import NOT_FOUND, NOT_RUNNABLE
from muster.cli.naming import JOB
from muster.cli.printing import show_plain
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.sdk.client import Client
from muster.sdk.home import Home
from muster.sdk.tasks import TaskProcess, find_container, get_task_process
from muster.sdk.whereabouts import default_root

SHELL: Final = "/bin/sh"


@click.command(name="exec")
@click.argument("job", type=JOB)
@click.option("--task", type=click.IntRange(min=0), default=0, show_default=True, help="The task or rank.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(job: int, task: int, command: tuple[str, ...]) -> int:
    """Run a command beside a running job, on its machine: muster exec 12 -- nvidia-smi"""
    return _become(*_enter(job, task, command))


@click.command()
@click.argument("job", type=JOB)
@click.option("--task", type=click.IntRange(min=0), default=0, show_default=True, help="The task or rank.")
def shell(job: int, task: int) -> int:
    """Open a shell beside a running job, on its machine."""
    return _become(*_enter(job, task))


def _enter(job: int, task: int, command: tuple[str, ...] = ()) -> tuple[tuple[str, ...], TaskProcess]:
    """What to run beside a task, a shell if nothing is said, and where."""
    with Client() as client:
        view = client.show(job)  # refused with the server's own words if there is no such job
    if view.is_over:
        raise RejectedError(Reason(Code.ALREADY_OVER, "job", needed=job))
    if view.phase == "queued":
        raise click.UsageError(f"job {job} waits, so nothing of it runs yet; `muster why {job}` says for what")
    process = get_task_process(Home(Path(default_root())), job, task)
    container = find_container(process) if view.spec is not None and view.spec.image else None
    if container is None:
        return command or (process.env.get("SHELL", SHELL),), process
    runtime, name = container
    streams = "-it" if sys.stdin.isatty() else "-i"
    words = (runtime, "exec", streams, f"--workdir={process.directory}", name, *(command or (SHELL,)))
    return words, process._replace(env=dict(os.environ))  # whoever enters it is no part of the job


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
