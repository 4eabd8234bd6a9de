"""`--at TIME`: reading the past. An instant, a clock time of the last day, or a length of time ago."""

from __future__ import annotations

import time
from typing import Final

import click

from muster.cli.printing import WATCH_OR_AT
from muster.units import parse_past


def read_past(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """The value of an option that names an instant of the past."""
    if text is None:
        return None
    now = int(time.time() * 1000)
    at = parse_past(text, now)
    if at > now:
        raise click.BadParameter(f"{text} is still to come")
    if option.name == "at" and context.params.get("watch"):
        raise click.UsageError(WATCH_OR_AT)
    return at


AT: Final = click.option(
    "--at", callback=read_past, metavar="TIME", help="As it was then: 10m (ago), 03:10, or 2026-11-15 14:05 (UTC)."
)
