"""`muster`: the program. It loads the commands, runs one, and leaves with its exit code.

Most commands are over as soon as they have begun, so loading and leaving are what they cost. Neither makes garbage, yet
the collector would look through all that is loaded time and again to find that out: an eighth of a short command. So it
begins only where much more was made than a start makes, which still serves a command that follows a job for days, and
what is left at the end it is not shown again.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import Final

COLLECT_FROM: Final = 100_000
"""Objects; a cold listing makes about 20,000, and they stay."""


def main() -> None:
    """The program, as it is installed."""
    open_streams()
    gc.set_threshold(COLLECT_FROM)
    code = run_command()
    gc.freeze()
    sys.exit(code)


def open_streams() -> None:
    """Whoever closed one of the three gets what is nowhere in its place, so that no file of ours is opened as one. What
    people read is printed by terminals that know few signs, too: with a question mark for those that they lack."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123 - for as long as the program runs
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command line in this process; its exit code."""
    from muster.cli.commands import run  # here, so that `main` comes before all that is loaded

    return run(arguments)
