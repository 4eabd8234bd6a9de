"""Joining: what is said alike of tasks of one array at one instant becomes one event, as an engine of many nodes would
say it. What happened between two such words keeps its place. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from itertools import chain, groupby
from typing import TypeAlias

from muster.model.event import Event, Exited, Started

Gist: TypeAlias = tuple[int, int, int, str]
"""The job, the epoch, the code and the note."""


def join_alike(events: Iterable[Event], arrays: Container[int]) -> list[Event]:
    """Events in their order, but of neighbours that say the same of tasks of one of these arrays, one."""
    found: list[Event] = []
    for kind, group in groupby(events, key=type):
        if kind not in (Started, Exited):
            found += group
            continue
        alike: dict[Gist, list[Started | Exited]] = {}
        for event in group:
            if not isinstance(event, Started | Exited) or event.job not in arrays:
                found.append(event)
            elif isinstance(event, Started):
                alike.setdefault((event.job, event.epoch, 0, ""), []).append(event)
            else:
                alike.setdefault((event.job, event.epoch, event.code, event.note), []).append(event)
        found += [_join(gist, same) for gist, same in alike.items()]
    return found


def _join(gist: Gist, same: Sequence[Started | Exited]) -> Event:
    if len(same) == 1:
        return same[0]
    job, epoch, code, note = gist
    first, count, *more = chain(*(span for event in same for span in event.spans))
    cause = f"{same[0].cause} and {len(same) - 1} more"
    ends = [event for event in same if isinstance(event, Exited)]
    if not ends:
        return Started(job, epoch, first, count, cause, more)
    used = sum(event.cpu_ms for event in ends), max(event.rss_bytes for event in ends)
    return Exited(job, epoch, code, first, count, note, cause, *used, more)
