"""`--at TIME`: reading the past. An instant, a clock time of the last day, or a length of time ago."""

from __future__ import annotations

import time
from typing import Final

import click

from muster.units import parse_past


def read_past(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    """The value of an option that names an instant of the past."""
    return None if text is None else parse_past(text, int(time.time() * 1000))


AT: Final = click.option(
    "--at", callback=read_past, metavar="TIME", help="As it was then: 10m (ago), 03:10, or 2026-11-15 14:05 (UTC)."
)
