"""entries: the files that a league is played on, and how much was left out of each.

A row that cannot be used and a job for which the fleet is too small are counted, and the count stands beside the
results: nothing is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from bench.leagues.trial import nodes_of
from bench.report import Metric
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.simulator.traces.formats import find_traces, read_trace
from muster.simulator.traces.record import Reading, Record


def read_entries(folder: Path, *formats: str) -> Iterator[tuple[str, Reading]]:
    """The jobs of every file of these formats, by stem."""
    for stem, path in find_traces(folder, *formats):
        yield stem, read_trace(path)


def keep_fitting(stem: str, reading: Reading, nodes: int) -> Reading:
    """The jobs that an empty fleet of so many nodes could hold; the others are among what was left out."""
    kept = [record for record in reading.records if nodes_of(record.gpus) <= nodes]
    if not kept:
        raise RejectedError(Reason(Code.BAD_TRACE, stem, detail=f"holds no job that {nodes} nodes have room for"))
    return _leave_out(reading, kept, f"larger than {nodes} nodes")


def keep_first(reading: Reading, most: int) -> Reading:
    """So many of the first jobs."""
    return _leave_out(reading, reading.records[:most], f"beyond the first {most}")


def _leave_out(reading: Reading, kept: list[Record], why: str) -> Reading:
    """A reading of which only some are left."""
    gone = len(reading.records) - len(kept)
    return replace(reading, records=kept, dropped=reading.dropped | {why: gone}) if gone else reading


def count_dropped(stem: str, *dropped: Mapping[str, int]) -> dict[str, Metric]:
    """How many rows were left out, for whatever reason."""
    return {f"{stem}.all.dropped_rows": Metric(sum(sum(each.values()) for each in dropped), "rows")}
