"""Plain tables and a little colour. No library: a table is columns padded to their widest cell.

Colour only for a terminal, never under NO_COLOR, and never as the only bearer of a meaning.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Final, Protocol

import click
import msgspec

from muster.units import Resources, show_bytes, show_cpus, show_duration
from muster.wire.views import JobView

COLOURS: Final = {
    "running": "green",
    "up": "green",
    "queued": "yellow",
    "starting": "yellow",
    "stopping": "yellow",
    "unknown": "yellow",
    "failed": "red",
    "gone": "red",
    "cancelled": "bright_black",
}
GAP: Final = "  "


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns under their heads; numbers stay as they are, everything is left-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo(GAP.join(_paint(cell) for cell in padded).rstrip(), color=True)


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """`name: value` lines, the values aligned; what is empty is left out."""
    shown = [(name, value) for name, value in fields if value]
    width = max((len(name) for name, _ in shown), default=0) + 1
    for name, value in shown:
        click.echo(f"{name + ':':<{width}} {show_plain(value)}")


def print_json(value: object) -> None:
    """The API's JSON, on one line."""
    click.echo(msgspec.json.encode(value))


class Named(Protocol):
    """What has a name to be called by."""

    @property
    def name(self) -> str: ...


def print_for_programs(output: str, views: Sequence[Named]) -> bool:
    """A listing as JSON or as bare names, if that is the format; False if a person reads it."""
    if output == "json":
        print_json(views)
    elif output == "name":
        click.echo("".join(f"{view.name}\n" for view in views), nl=False)
    else:
        return False
    return True


def show_ago(at_ms: int) -> str:
    """How long ago, to the second."""
    span_s = (int(time.time() * 1000) - at_ms) // 1000
    return show_duration(span_s * 1000) if span_s > 0 else "0s"


def show_ask(ask: Resources) -> str:
    """What one task asks for, in few letters: `8g 4c 16Gi`."""
    parts = []
    if ask.gpus:
        parts.append(f"{ask.gpus}g")
    if ask.cpu_milli:
        parts.append(f"{show_cpus(ask.cpu_milli)}c")
    if ask.memory_bytes:
        parts.append(show_bytes(ask.memory_bytes))
    return " ".join(parts)


def show_progress(view: JobView) -> str:
    """How far an array is: `12/200 done, 8 running, 1 failed`."""
    counts = view.counts
    if counts is None:
        return ""
    done = counts.succeeded + counts.failed + counts.cancelled
    parts = [f"{done}/{view.tasks} done"]
    busy = counts.starting + counts.running + counts.stopping
    parts += [f"{number} {word}" for number, word in ((busy, "running"), (counts.failed, "failed")) if number]
    return ", ".join(parts)


def show_end(view: JobView) -> str:
    """How a job ended, in words: `failed: exit code 3`."""
    if view.why == "dependency":
        return "cancelled: what it was to run after cannot come about"
    if view.phase != "failed":
        return view.phase
    if view.counts is not None:
        return f"failed: {view.counts.failed} of {view.tasks} tasks"
    words = {"limit": "ran past its limit", "lost": "its node was lost"}
    return f"failed: {words.get(view.why, f'exit code {view.exit_code}')}"


def show_plain(text: str) -> str:
    """What somebody else chose must not steer this terminal: control characters are shown as escapes."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _paint(cell: str) -> str:
    colour = COLOURS.get(cell.strip())
    if colour is None or os.environ.get("NO_COLOR") or not is_terminal():
        return cell
    return click.style(cell, fg=colour)


def is_terminal() -> bool:
    """Whether somebody may be looking at standard output."""
    return sys.stdout.isatty()
