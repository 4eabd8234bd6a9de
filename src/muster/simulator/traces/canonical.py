"""The canonical form as a file: a table with a column for every field of a record, in the record's own words.

Whatever adapter a record came from, it is written and read here without loss: instants and spans in milliseconds, an
empty cell for what is not known, models parted by `|`. It is a format like the others, found by its columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Final, TextIO

from muster.simulator.traces.jobs import Format
from muster.simulator.traces.record import Record
from muster.simulator.traces.table import Row, Seen

CANONICAL: Final = "muster"
COLUMNS: Final = Record.__struct_fields__


def write_canonical(records: Iterable[Record], file: TextIO) -> None:
    """The records, in the order in which they come."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        writer.writerow([_cell(getattr(record, name)) for name in COLUMNS])


def _cell(value: object) -> object:
    if isinstance(value, str):
        return " ".join(value.split())  # a name of several lines would be several rows
    return "|".join(value) if isinstance(value, tuple) else "" if value is None else value


def _convert(row: Row, seen: Seen) -> Record:
    return Record(
        id=seen.check_id(row.text("id")),
        submit_ms=row.span_ms("submit_ms", 1),
        duration_ms=row.span_ms("duration_ms", 1),
        gpus=row.count("gpus"),
        gpu_milli=row.count("gpu_milli"),
        cpu_milli=row.count("cpu_milli"),
        memory_bytes=row.count("memory_bytes"),
        tenant=row.word("tenant"),
        user=row.word("user"),
        name=row.word("name"),
        priority=int(row.number("priority")),
        tier=row.word("tier"),
        deadline_ms=_find_span(row, "deadline_ms"),
        limit_ms=_find_span(row, "limit_ms"),
        models=tuple(filter(None, row.text("models").split("|"))),
        status=row.word("status"),
        wait_ms=_find_span(row, "wait_ms"),
    )


def _find_span(row: Row, column: str) -> int | None:
    return row.span_ms(column, 1) if row.has(column) else None


FORMAT: Final = Format(CANONICAL, COLUMNS, _convert)
