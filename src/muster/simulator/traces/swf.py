"""The Standard Workload Format: 18 fields a line, `;` before remarks, -1 for what is not known; times in seconds.

    1 id   2 submit   3 wait   4 run time   5 processors   8 processors asked for   9 limit   11 status   12 user
    13 group   14 program   15 queue   16 partition

Some archives add fields behind the 18, which are not read. A job whose run time is not known is left out, and so is one
without processors; where those that it got are not known, those that it asked for count. Processors are counted as
`gpus`: what the format calls a processor is what is given to one job as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final, TextIO

from muster.simulator.traces.jobs import from_zero
from muster.simulator.traces.record import Reading, Record, trace_error
from muster.simulator.traces.table import DropRowError, Row, Seen, peek_lines, read_lines
from muster.units import SECOND_MS

FIELDS: Final = (
    "id", "submit", "wait", "run time", "processors", "cpu time", "memory", "processors asked for", "limit",
    "memory asked for", "status", "user", "group", "program", "queue", "partition", "preceding", "think time",
)  # fmt: skip
HEAD: Final = 10
"""How many lines tell that a file is of this format."""
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
            seen.drop(error, number)
    if not records:
        raise trace_error(path, 1, f"no job that can be used; left out: {dict(seen.dropped)}")
    return seen.read(from_zero(records))


def write_swf(records: Iterable[Record], file: TextIO, title: str) -> dict[str, int]:
    """The records as lines of the format; how many could not be told in it, for which reason. Times are rounded to
    seconds. The format knows numbers where we know names: whose number is which stands in remarks at the end."""
    left_out: dict[str, int] = {}
    numbers: dict[str, dict[str, int]] = {"user": {}, "program": {}, "partition": {}}
    file.write(f"; Version: 2\n; Computer: {_remark(title)}\n; Note: processors are GPUs; times are in seconds\n")
    for number, record in enumerate(records, start=1):
        if record.gpus:
            file.write(_line(number, record, numbers))
        else:
            reason = "asks for a part of a GPU" if record.gpu_milli else "asks for no GPU"
            left_out[reason] = left_out.get(reason, 0) + 1
    for kind, names in numbers.items():
        file.writelines(f"; {kind.title()}: {number} {_remark(name)}\n" for name, number in names.items())
    return left_out


def _line(number: int, record: Record, numbers: dict[str, dict[str, int]]) -> str:
    names = {"user": record.user, "program": record.name, "partition": record.tenant}
    told = dict.fromkeys(FIELDS, _UNKNOWN) | {
        "id": str(number),
        "submit": _seconds(record.submit_ms),
        "wait": _UNKNOWN if record.wait_ms is None else _seconds(record.wait_ms),
        "run time": _seconds(record.duration_ms),
        "processors": str(record.gpus),
        "processors asked for": str(record.gpus),
        "limit": _UNKNOWN if record.limit_ms is None else _seconds(record.limit_ms),
        "status": _STATUSES.get(record.status.lower(), _UNKNOWN),
    }
    for kind, name in names.items():
        if name:
            told[kind] = str(numbers[kind].setdefault(name, len(numbers[kind]) + 1))
    return " ".join(told.values()) + "\n"


_STATUSES: Final = {str(number): str(number) for number in range(6)} | {
    "succeeded": "1", "pass": "1", "failed": "0", "cancelled": "5", "killed": "5",
}  # fmt: skip


def _seconds(span_ms: int) -> str:
    return str((span_ms + SECOND_MS // 2) // SECOND_MS)


def _remark(text: str) -> str:
    """Somebody's name on one line: no line of it may look like a job's."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def is_swf(path: Path, fields: int = len(FIELDS)) -> bool:
    """Whether one of a file's first lines that are no remarks has so many numbers or more: some of them may be spoilt,
    which is told where they are read."""
    rows = filter(None, (line.split(";")[0].split() for line in peek_lines(path)))
    return any(len(cells) >= fields and all(map(_is_number, cells[:fields])) for cells in islice(rows, HEAD))


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
        limit_ms=limit_ms, status=row.word("status"), wait_ms=_wait_ms(row),
    )  # fmt: skip


def _wait_ms(row: Row) -> int | None:
    """What is negative is not known, whatever else it is meant to say."""
    return None if row.number("wait") < 0 else row.span_ms("wait", SECOND_MS)


def _known(row: Row, field: str) -> str:
    return "" if row.text(field) == _UNKNOWN else row.word(field)
