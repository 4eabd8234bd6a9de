"""`muster sim`, `backup`, `restore`, `bundle`, `replay`, `league` and `trace`: handed over to a process that may import
the kernel.

The command line itself stays light, so it becomes that other program instead of importing it.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from muster.sdk.home import Home

_PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


OF_A_HOME = ("backup", "restore", "bundle")


def become(word: str, arguments: tuple[str, ...]) -> NoReturn:
    """Leave this program for the server's own."""
    sys.stdout.flush()
    reads_home = (
        word in OF_A_HOME
        or (word == "replay" and "--from" in arguments)
        or (word, *arguments[:1]) == ("trace", "export")
    )
    home = ("--home", str(Home().root)) if reads_home and "--home" not in arguments else ()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "muster.app", word, *arguments, *home])  # noqa: S606 - no shell


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def sim(arguments: tuple[str, ...]) -> None:
    """Simulate a fleet under load and faults."""
    become("sim", arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bundle(arguments: tuple[str, ...]) -> None:
    """Record the live server's decisions to a file."""
    become("bundle", arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def replay(arguments: tuple[str, ...]) -> None:
    """Decide a recorded bundle, or a span of time (--from 02:50 --to 03:10), again and compare."""
    become("replay", arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trace(arguments: tuple[str, ...]) -> None:
    """Look at a trace of jobs, convert one, or export this server's history as one."""
    become("trace", arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def league(arguments: tuple[str, ...]) -> None:
    """Play a league of published policies on published traces."""
    become("league", arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def backup(arguments: tuple[str, ...]) -> None:
    """Copy the server's journal to a new file, while the server runs."""
    become("backup", arguments)


@click.command(context_settings=_PASS_ON)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def restore(arguments: tuple[str, ...]) -> None:
    """Put a backup in the journal's place, while no server runs."""
    become("restore", arguments)


COMMANDS = {
    "sim": sim,
    "backup": backup,
    "restore": restore,
    "bundle": bundle,
    "replay": replay,
    "league": league,
    "trace": trace,
}
