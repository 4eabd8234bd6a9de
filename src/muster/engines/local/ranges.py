"""Neighbouring tasks become one range, so that ten thousand ends are one event. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from muster.engines.local.layout import Key
from muster.model.event import Exited, Held, Started

CAUSE: Final = "local engine"


class End(NamedTuple):
    """How a run ended: its code, the engine's own word when the code alone would mislead, and what it used."""

    code: int
    note: str = ""
    cpu_ms: int = 0
    rss_bytes: int = 0


class _Range(NamedTuple):
    first: Key
    tasks: int
    code: int
    note: str
    cpu_ms: int
    rss_bytes: int


def merge_held(keys: Iterable[Key]) -> list[Held]:
    """All of `keys`, as ranges."""
    return [Held(part.first.job, part.first.epoch, part.first.task, part.tasks) for part in _merge(_plain(keys))]


def merge_started(keys: Iterable[Key]) -> list[Started]:
    """All of `keys`, as events."""
    parts = _merge(_plain(keys))
    return [Started(part.first.job, part.first.epoch, part.first.task, part.tasks, cause=CAUSE) for part in parts]


def merge_exited(ended: Iterable[tuple[Key, End]]) -> list[Exited]:
    """Those that ended alike, as events: what they used is added up, and the largest is told."""
    return [
        Exited(key.job, key.epoch, part.code, key.task, part.tasks, part.note, CAUSE, part.cpu_ms, part.rss_bytes)
        for part in _merge(ended)
        for key in (part.first,)
    ]


def _plain(keys: Iterable[Key]) -> Iterator[tuple[Key, End]]:
    nothing = End(0)
    return ((key, nothing) for key in keys)


def _merge(items: Iterable[tuple[Key, End]]) -> Iterator[_Range]:
    part: _Range | None = None
    for key, end in sorted(items):
        if part is not None:
            first = part.first
            follows = (first.job, first.epoch, first.task + part.tasks, part.code, part.note)
            if (key.job, key.epoch, key.task, end.code, end.note) == follows:
                cpu_ms, rss_bytes = part.cpu_ms + end.cpu_ms, max(part.rss_bytes, end.rss_bytes)
                part = _Range(first, part.tasks + 1, part.code, part.note, cpu_ms, rss_bytes)
                continue
            yield part
        part = _Range(key, 1, *end)
    if part is not None:
        yield part
