"""Tables of jobs: Philly, Muri, Chronus, Acme and gen_parallel, one function of a row each.

    Philly        timestamp is a date, duration in seconds; not sorted; no ids, so equal rows are jobs of their own
    Muri          submit_time and iteration_time in milliseconds; the run time is iterations x iteration_time, and the
                  column `duration` is a rounded copy of it: both are the truth, and hidden
    Chronus       submit_time, duration and expect_time_list in minutes; a deadline counts from the submit; some rows
                  have no GPUs; `job_type` is strict, soft or best effort
    Acme          arrival_time in seconds; every iteration takes iteration_computing_time seconds; gpu_workers nodes of
                  gpu_per_worker GPUs each
    gen_parallel  interval is the time since the row before, in seconds; wall_time is the limit; gpu_num 0 is a job on
                  processors alone

A job with no device is left out where a format is of devices, and counted. Instants begin with the first submit.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from muster.simulator.traces.record import Reading, Record
from muster.simulator.traces.table import DropRowError, Row, Seen, gather, to_ms
from muster.units import MINUTE_MS, SECOND_MS

Convert: TypeAlias = Callable[[Row, Seen], Record]
KINDS: Final = ("strict", "soft", "best")
"""How the kinds of Chronus' jobs begin."""


class Format(NamedTuple):
    """A table of jobs: the columns by which it is known, and what a row of it means. If a submit is told by the time
    since the row before, in seconds, `interval` is the column that says so: a row that is left out counts there too."""

    name: str
    columns: tuple[str, ...]
    convert: Convert
    interval: str = ""


def read_jobs(path: Path, form: Format) -> Reading:
    """All jobs of a file."""
    clock = 0

    def convert(row: Row, seen: Seen) -> Record:
        nonlocal clock
        if not form.interval:
            return form.convert(row, seen)
        clock += row.span_ms(form.interval, SECOND_MS)
        return replace(form.convert(row, seen), submit_ms=clock)

    records, seen = gather(path, form.columns, convert, "job")
    return seen.read(from_zero(records))


def from_zero(records: list[Record]) -> list[Record]:
    """The same jobs, with the first submit at 0."""
    first = min(record.submit_ms for record in records)
    return [_earlier(record, first) for record in records] if first else records


def _earlier(record: Record, by_ms: int) -> Record:
    deadline = None if record.deadline_ms is None else record.deadline_ms - by_ms
    return replace(record, submit_ms=record.submit_ms - by_ms, deadline_ms=deadline)


def _gpus(row: Row, column: str) -> int:
    gpus = row.count(column)
    if not gpus:
        raise DropRowError("asks for no GPU")
    return gpus


def _check_number(row: Row, column: str, seen: Seen) -> str:
    """An id that no row had before; numbers are of one length, so that ids are in their order."""
    return seen.check_id(f"{row.text(column):0>8}")


def _philly(row: Row, seen: Seen) -> Record:
    try:
        instant = datetime.fromisoformat(row.text("timestamp"))
    except ValueError:
        raise DropRowError("timestamp is no date") from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    name = seen.check_id(f"{row.line:08}")
    submit_ms = to_ms(instant.timestamp(), SECOND_MS, "timestamp")
    gpus, duration_ms = _gpus(row, "num_gpus"), row.span_ms("duration", SECOND_MS)
    return Record(name, submit_ms, duration_ms, gpus, tenant=row.word("cluster"))


def _muri(row: Row, seen: Seen) -> Record:
    name = _check_number(row, "job_id", seen)
    duration_ms = to_ms(row.amount("iterations") * row.amount("iteration_time"), 1, "iterations x iteration_time")
    submit_ms, gpus = row.span_ms("submit_time", 1), _gpus(row, "num_gpu")
    return Record(name, submit_ms, duration_ms, gpus, name=row.word("model_name"))


def _chronus(row: Row, seen: Seen) -> Record:
    name = _check_number(row, "job_id", seen)
    submit_ms, duration_ms = row.span_ms("submit_time", MINUTE_MS), row.span_ms("duration", MINUTE_MS)
    gpus, kind = _gpus(row, "num_gpu"), row.word("job_type")
    if not kind.startswith(KINDS):
        raise DropRowError("job_type is neither strict nor soft nor best effort")
    deadline = None if kind.startswith("best") else submit_ms + _last_ms(row)
    user = row.word("user")
    return Record(
        name, submit_ms, duration_ms, gpus, user=user, name=row.word("model_name"), tier=kind,
        deadline_ms=deadline,
    )  # fmt: skip


def _last_ms(row: Row) -> int:
    """The last of a list of times, after which a job is worth nothing. They are parted by the sign of negative ones,
    which nobody can tell from it: where nothing stands before it, it is that."""
    try:
        minutes = [float(part) for part in row.text("expect_time_list").split("-")]
    except ValueError:
        raise DropRowError("expect_time_list is no time") from None
    return to_ms(minutes[-1], MINUTE_MS, "expect_time_list")


def _acme(row: Row, seen: Seen) -> Record:
    name = _check_number(row, "job_id", seen)
    seconds = row.amount("num_iteration") * row.amount("iteration_computing_time")
    gpus = _gpus(row, "gpu_workers") * _gpus(row, "gpu_per_worker")
    return Record(name, row.span_ms("arrival_time", SECOND_MS), to_ms(seconds, SECOND_MS, "run time"), gpus)


def _gen_parallel(row: Row, seen: Seen) -> Record:
    name = _check_number(row, "u_id", seen)
    limit_ms = row.span_ms("wall_time", SECOND_MS)
    return Record(
        name, 0, row.span_ms("run_time", SECOND_MS), row.count("gpu_num"),
        cpu_milli=row.scaled("cpu_num", 1000), user=row.word("user"), limit_ms=limit_ms or None,
        status=row.word("new_status"),
    )  # fmt: skip


PHILLY: Final = Format("philly", ("timestamp", "duration", "num_gpus", "cluster"), _philly)
MURI: Final = Format("muri", ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "iteration_time"), _muri)
CHRONUS: Final = Format(
    "chronus",
    ("job_id", "user", "num_gpu", "submit_time", "model_name", "duration", "expect_time_list", "job_type"),
    _chronus,
)
ACME: Final = Format(
    "acme",
    ("job_id", "arrival_time", "num_iteration", "iteration_computing_time", "gpu_workers", "gpu_per_worker"),
    _acme,
)
GEN_PARALLEL: Final = Format(
    "gen_parallel",
    ("u_id", "user", "gpu_num", "cpu_num", "interval", "run_time", "wall_time", "new_status"),
    _gen_parallel,
    interval="interval",
)
FORMATS: Final = (PHILLY, MURI, CHRONUS, ACME, GEN_PARALLEL)
