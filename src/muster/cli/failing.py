"""How the command line says that something went wrong, and the exit codes, which are a contract.

Documented in docs/guides/exit-codes.md. `run` and `wait` leave with the job's own code instead.
"""

from __future__ import annotations

from typing import Final

import click

OK: Final = 0
JOB_FAILED: Final = 1
USAGE: Final = 2
NO_SERVER: Final = 3
SERVER_ERROR: Final = 4
INTERRUPTED: Final = 130


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
