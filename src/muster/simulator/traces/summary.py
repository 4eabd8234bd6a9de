"""What a trace is like in few figures: how many jobs, how wide, how long, whose; and how it looks as rows of blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from muster.simulator.report import percentiles, plot
from muster.simulator.traces.record import Record
from muster.units import HOUR_MS, MINUTE_MS, SECOND_MS, show_duration

TENANTS_SHOWN: Final = 5
SIZES: Final = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
SPANS: Final = tuple(
    unit * count
    for unit, counts in ((SECOND_MS, (0, 10)), (MINUTE_MS, (1, 10)), (HOUR_MS, (1, 6, 24, 24 * 7)))
    for count in counts
)


class Summary(msgspec.Struct, frozen=True):
    """A trace in figures. Means are of jobs with a device; tenants are those with the most jobs."""

    jobs: int
    gpu_jobs: int
    span_ms: int
    mean_gpus: float
    median_gpus: float
    most_gpus: float
    mean_run_ms: int
    median_run_ms: int
    longest_run_ms: int
    gpu_hours: float
    runs_ms: dict[str, int]
    tenants: dict[str, int]
    statuses: dict[str, int]
    with_limit: int
    with_deadline: int


def summarise(records: Sequence[Record]) -> Summary:
    """The figures of some records, in order of submit."""
    wide = [record for record in records if record.gpus or record.gpu_milli]
    sizes = sorted(1000 * record.gpus + record.gpu_milli for record in wide)
    runs = sorted(record.duration_ms for record in wide)
    work = sum((1000 * record.gpus + record.gpu_milli) * record.duration_ms for record in wide)
    return Summary(
        jobs=len(records),
        gpu_jobs=len(wide),
        span_ms=records[-1].submit_ms - records[0].submit_ms if records else 0,
        mean_gpus=round(sum(sizes) / 1000 / max(1, len(wide)), 3),
        median_gpus=sizes[len(sizes) // 2] / 1000 if sizes else 0,
        most_gpus=sizes[-1] / 1000 if sizes else 0,
        mean_run_ms=sum(runs) // max(1, len(runs)),
        median_run_ms=runs[len(runs) // 2] if runs else 0,
        longest_run_ms=runs[-1] if runs else 0,
        gpu_hours=round(work / 1000 / HOUR_MS, 1),
        runs_ms=percentiles(runs),
        tenants=dict(Counter(record.tenant or record.user for record in records).most_common(TENANTS_SHOWN)),
        statuses=dict(Counter(record.status for record in records if record.status).most_common()),
        with_limit=sum(record.limit_ms is not None for record in records),
        with_deadline=sum(record.deadline_ms is not None for record in records),
    )


def draw(records: Sequence[Record], width: int) -> list[str]:
    """Arrivals over time, and how many jobs there are of each size and run time."""
    span = max(1, records[-1].submit_ms - records[0].submit_ms + 1)
    columns = max(10, width - 2)
    arrivals = [0] * columns
    for record in records:
        arrivals[(record.submit_ms - records[0].submit_ms) * columns // span] += 1
    return [
        *plot(f"jobs that came, in {columns} parts of {show_duration(span)}", arrivals, width),
        "GPUs of a job, from",
        *_bars(records, SIZES, lambda record: record.gpus, str, width),
        "run time of a job, from",
        *_bars(records, SPANS, lambda record: record.duration_ms, show_duration, width),
    ]


def _bars(
    records: Sequence[Record], edges: Sequence[int], of: Callable[[Record], int], show: Callable[[int], str], width: int
) -> list[str]:
    """A row for each part between edges, as long as it has jobs; at both ends, parts that have none are left out."""
    counts = [0] * len(edges)
    for record in records:
        value = of(record)
        counts[max(at for at, edge in enumerate(edges) if edge <= value)] += 1
    used = [at for at, count in enumerate(counts) if count]
    most, room = max(counts), max(10, width - 20)
    return [
        f" {show(edges[at]):>6} │{'█' * -(-counts[at] * room // most)} {counts[at]:,}"
        for at in range(used[0], used[-1] + 1)
    ]
