"""The Standard Workload Format: 18 fields a line, `;` before remarks, -1 for what is not known; times in seconds.

    1 id   2 submit   4 run time   5 processors   8 processors asked for   9 limit   11 status   12 user   13 group
    14 program   15 queue   16 partition

Some archives add fields behind the 18, which are not read. A job whose run time is not known is left out, and so is one
without processors; where those that it got are not known, those that it asked for count. Processors are counted as
`gpus`: what the format calls a processor is what is given to one job as a whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from muster.simulator.traces.jobs import from_zero
from muster.simulator.traces.record import Reading, Record, in_order, trace_error
from muster.simulator.traces.table import DropRowError, Row, Seen, read_lines
from muster.units import SECOND_MS

FIELDS: Final = (
    "id", "submit", "wait", "run time", "processors", "cpu time", "memory", "processors asked for", "limit",
    "memory asked for", "status", "user", "group", "program", "queue", "partition", "preceding", "think time",
)  # fmt: skip
_UNKNOWN: Final = "-1"


def read_swf(path: Path) -> Reading:
    """All jobs of a file."""
    seen, records = Seen(), list[Record]()
    for number, line in read_lines(path):
        cells = line.split(";")[0].split()
        if not cells:
            continue
        if len(cells) < len(FIELDS):
            raise trace_error(path, number, f"{len(cells)} fields, and the format has {len(FIELDS)}")
        try:
            records.append(_convert(Row(path, number, dict(zip(FIELDS, cells, strict=False))), seen))
        except DropRowError as error:
            seen.drop(error)
    if not records:
        raise trace_error(path, 1, f"no job that can be used; left out: {dict(seen.dropped)}")
    return in_order(from_zero(records), dict(seen.dropped))


def is_swf(path: Path) -> bool:
    """Whether a file's first line that is no remark has 18 numbers or more."""
    try:
        for _, line in read_lines(path):
            cells = line.split(";")[0].split()
            if cells:
                return len(cells) >= len(FIELDS) and all(_is_number(cell) for cell in cells[: len(FIELDS)])
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is no trace of ours
        return False
    return False


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _convert(row: Row, seen: Seen) -> Record:
    if row.text("run time") == _UNKNOWN:
        raise DropRowError("run time is not known")
    processors = "processors" if row.text("processors") != _UNKNOWN else "processors asked for"
    gpus = row.count(processors) if row.text(processors) != _UNKNOWN else 0
    if not gpus:
        raise DropRowError("asks for no processor")
    limit_ms = None if row.text("limit") == _UNKNOWN else row.span_ms("limit", SECOND_MS) or None
    return Record(
        seen.check_id(f"{row.text('id'):0>8}"), row.span_ms("submit", SECOND_MS), row.span_ms("run time", SECOND_MS),
        gpus, tenant=_known(row, "partition"), user=_known(row, "user"), name=_known(row, "program"),
        limit_ms=limit_ms, status=row.text("status"),
    )  # fmt: skip


def _known(row: Row, field: str) -> str:
    return "" if row.text(field) == _UNKNOWN else row.text(field)
