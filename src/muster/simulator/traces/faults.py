"""InfiniteHBD's fault trace: when which server was out of service. JSON; event_time in days since the trace began.

Every `fault_start` has a `fault_end` of the same server. A second start while a server is out makes it no more out than
it is: the two intervals are one, and the overlap is counted. A fault that never ends, and an end without a start, are
left out and counted.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from muster.simulator.traces.record import trace_error
from muster.simulator.traces.table import DropRowError, peek_lines, read_lines, to_ms
from muster.units import DAY_MS

_KEYS: Final = ("node_id", "event_time", "event_type")


class Outage(msgspec.Struct, frozen=True, order=True):
    """One server is out of service from `start_ms` until `end_ms`."""

    start_ms: int
    node: str
    end_ms: int


class Outages(msgspec.Struct, frozen=True):
    """What a file gave, by start and then by server, and what was left out for which reason."""

    all: list[Outage]
    dropped: dict[str, int]


def read_faults(path: Path) -> Outages:
    """All outages of a file."""
    dropped: Counter[str] = Counter()
    open_since: dict[str, tuple[int, int]] = {}
    found: list[Outage] = []
    for at, kind, node in sorted(_events(path, dropped)):
        start, depth = open_since.get(node, (at, 0))
        depth += 1 if kind == _START else -1
        if depth < 0:
            dropped["ends without a start"] += 1
        elif depth == 0:
            found.append(Outage(start, node, at))
            del open_since[node]
        else:
            dropped["overlaps another"] += depth > 1
            open_since[node] = (start, depth)
    dropped["never ends"] += len(open_since)
    told = {reason: count for reason, count in dropped.items() if count}
    if not found:
        raise trace_error(path, 1, f"no outage that can be used; left out: {told}")
    return Outages(sorted(found), told)


def is_faults(path: Path, lacking: int = 0) -> bool:
    """Whether a file begins as a fault trace does, or would if it did not lack so many keys."""
    head = "".join(islice(peek_lines(path), 12))
    return head.lstrip().startswith("[") and sum(f'"{key}"' in head for key in _KEYS) + lacking >= len(_KEYS)


_START: Final = 0
_END: Final = 1
_KINDS: Final = {"fault_start": _START, "fault_end": _END}


def _events(path: Path, dropped: Counter[str]) -> list[tuple[int, int, str]]:
    """Instant, whether it starts (0) or ends (1), server. At one instant the starts come first."""
    text = "".join(line for _, line in read_lines(path))
    try:
        items = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise trace_error(path, getattr(error, "lineno", 1), f"is no JSON: {error}") from error
    found = []
    for item in items if isinstance(items, list) else [items]:
        try:
            found.append(_event(item))
        except DropRowError as error:
            dropped[str(error)] += 1
    return found


def _event(item: Any) -> tuple[int, int, str]:
    if not isinstance(item, dict) or any(key not in item for key in _KEYS):
        raise DropRowError("is no event")
    kind, at, node = _KINDS.get(str(item["event_type"])), item["event_time"], item["node_id"]
    if kind is None:
        raise DropRowError("event_type is neither start nor end")
    if not isinstance(at, (int, float)) or at != at or isinstance(at, bool):
        raise DropRowError("event_time is not a number")
    if not isinstance(node, (int, str)) or isinstance(node, bool) or node == "":
        raise DropRowError("node_id names no server")
    return to_ms(at, DAY_MS, "event_time"), kind, str(node)
