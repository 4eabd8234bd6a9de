"""`muster advice`: what was learned or measured outside. Lists it, and hands in a table of two names and a number."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from muster.cli.listing import listing_group
from muster.cli.printing import Listing
from muster.model.advice import DISTANCE, THROUGHPUT, column_of
from muster.sdk.client import Client
from muster.units import parse_count, parse_duration, show_instant
from muster.wire.views import AdviceView

FIELDS = 3


@listing_group
def advice(client: Client) -> Listing:
    """List what was learned or measured outside, or hand in a table of it."""
    return _list(client.advice())


def _list(views: Sequence[AdviceView]) -> Listing:
    rows = [
        [each.name, str(each.version), show_instant(each.expires_at_ms), str(each.columns), str(each.numbers)]
        for each in views
    ]
    return Listing(
        ("ADVICE", "VERSION", "UNTIL", "COLUMNS", "NUMBERS"),
        rows,
        views,
        [each.name for each in views],
        empty="nothing was learned or handed in yet; `muster advice set` hands in a table",
    )


@advice.command(name="set")
@click.argument("kind", type=click.Choice([THROUGHPUT, DISTANCE]))
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--for", "span", default="30d", show_default=True, metavar="TIME", help="How long it holds.")
def set_table(kind: str, file: Path, span: str) -> None:
    """Hand in a table from a CSV file. Its lines are `work,flavor,speed` for throughput, and
    `dataset,region/cluster,distance` for distance: a whole number in any unit, the same for all."""
    columns = {column_of(row, column): (number,) for row, column, number in _read(file)}
    with Client() as client:
        client.advise(kind, columns, int(time.time() * 1000) + parse_duration(span))
    click.echo(f"{kind}: {len(columns)} line{'s' if len(columns) != 1 else ''}, for {span}")


def _read(file: Path) -> Iterator[tuple[str, str, int]]:
    """The lines of a table; what cannot be read is said with its place."""
    with file.open(newline="", encoding="utf-8") as text:
        for number, line in enumerate(csv.reader(text), start=1):
            if not line or line[0].startswith("#"):
                continue
            if len(line) != FIELDS or not line[2].strip().isdecimal():
                raise click.ClickException(f"{file.name}, line {number}: two names and a whole number, with commas")
            yield line[0].strip(), line[1].strip(), parse_count(line[2].strip())


COMMANDS = {"advice": advice}
