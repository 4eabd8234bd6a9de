"""How the command line says that something went wrong, and the exit codes, which are a contract.

Documented in docs/guides/exit-codes.md. `run` and `wait` leave with the job's own code instead.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import click

from muster.model.errors import MusterError
from muster.sdk.errors import NoServerError, UnfitError, code_of, words_of

OK: Final = 0
JOB_FAILED: Final = 1
USAGE: Final = 2
NO_SERVER: Final = 3
SERVER_ERROR: Final = 4
MACHINE_ERROR: Final = 5
NOT_RUNNABLE: Final = 126
NOT_FOUND: Final = 127
INTERRUPTED: Final = 130
UNREAD: Final = 141
"""As a shell says it of a program that was ended by SIGPIPE."""


class ServerFailedError(Exception):
    """The server could not be started or stopped as a whole; its own words have been shown."""

    def __init__(self, what: str, exit_code: int) -> None:
        super().__init__(what)
        self.exit_code = exit_code


def show_failure(code: str, what: str, fix: str, where: str = "") -> None:
    """`error[M110]: never fits: …`, `  --> job.yaml:7` if it is in a file, `help: …`, and where the code has its page,
    on standard error."""
    click.echo(f"error[{code}]: {what}" if code else f"error: {what}", err=True)
    if where:
        click.echo(f"  --> {where}", err=True)
    if fix:
        click.echo(f"help: {fix}", err=True)
    if code:
        click.echo(f"more: muster explain {code}", err=True)


def show_error(error: MusterError) -> int:
    """What went wrong in its own words and, if it is in a file, where; the exit code that it means."""
    words = words_of(error)
    show_failure(code_of(error), words.what, words.fix, getattr(error, "where", ""))
    if isinstance(error, NoServerError):
        return NO_SERVER
    return SERVER_ERROR if isinstance(error, UnfitError) else USAGE


def show_delay(words: str) -> None:
    """That something takes long, and why: nobody is to look at a terminal that says nothing."""
    click.echo(words, err=True)


def show_machine_failure(error: OSError) -> None:
    """What this machine would not let us do: `error: token: Permission denied`. Output that cannot be written has
    no name, and is no longer tried."""
    what = f"{error.filename}: " if error.filename else "what this prints cannot be written: "
    if not error.filename:
        stop_printing()
    show_failure("", f"{what}{error.strerror or error}", "")


def stop_printing() -> None:
    """Nobody reads any more, or nothing can be written: what is left to print goes nowhere, and says nothing of it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
