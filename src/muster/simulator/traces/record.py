"""The canonical record that every trace is converted into, and what was left out on the way.

An adapter reads one published format and gives `Reading(records, dropped)`: instants and spans in integer milliseconds
since the trace began, sorted by submit and then by id; every row that is left out is counted under its reason, and a
file that cannot be read at all is refused with its line. What a scheduler may see of a record is a league's to
say, not the adapter's: `duration_ms` is the truth, and hidden unless the league is one of oracles.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason


def trace_error(path: Path, line: int, fault: str) -> RejectedError:
    """What is raised for a trace that cannot be read: which file and line, and what is wrong there."""
    return RejectedError(Reason(Code.BAD_TRACE, f"{path.name}, line {line}", detail=fault))


class Record(msgspec.Struct, frozen=True, gc=False):
    """One job of a trace. A share of one device is `gpu_milli` with no `gpus`; `models` are those it may run on.
    `wait_ms` is how long it waited where it was recorded, if that is known: a fact about that place, not the job."""

    id: str
    submit_ms: int
    duration_ms: int
    gpus: int
    gpu_milli: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    tenant: str = ""
    user: str = ""
    name: str = ""
    priority: int = 0
    tier: str = ""
    deadline_ms: int | None = None
    limit_ms: int | None = None
    models: tuple[str, ...] = ()
    status: str = ""
    wait_ms: int | None = None


class Reading(msgspec.Struct, frozen=True):
    """What a file gave: its records in order, how many rows were left out for which reason, and the first of their
    lines."""

    records: list[Record]
    dropped: dict[str, int]
    lines: dict[str, list[int]] = {}


def in_order(records: Iterable[Record], dropped: dict[str, int], lines: dict[str, list[int]]) -> Reading:
    """A reading in the one order of traces: by submit, then by id."""
    return Reading(sorted(records, key=lambda record: (record.submit_ms, record.id)), dropped, lines)
