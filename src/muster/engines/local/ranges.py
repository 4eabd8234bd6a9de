"""Neighbouring tasks become one range, so that ten thousand ends are one event. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from muster.engines.local.frames import TaskEvent
from muster.engines.local.layout import Key
from muster.model.event import Exited, Held, Started

CAUSE: Final = "local engine"


class End(NamedTuple):
    """How a run ended: its code, and the engine's own word when the code alone would mislead."""

    code: int
    note: str = ""


def merge_held(keys: Iterable[Key]) -> list[Held]:
    """All of `keys`, as ranges."""
    return [Held(key.job, key.epoch, key.task, count) for key, count, _ in _merge((key, None) for key in keys)]


def merge_events(started: Iterable[Key], ended: Iterable[tuple[Key, End]]) -> list[TaskEvent]:
    """The same as events, starts first: a task that did both is told in order."""
    events: list[TaskEvent] = [
        Started(key.job, key.epoch, key.task, count, cause=CAUSE)
        for key, count, _ in _merge((key, None) for key in started)
    ]
    for key, count, end in _merge(ended):
        if end is not None:
            events.append(Exited(key.job, key.epoch, end.code, key.task, count, end.note, CAUSE))
    return events


def _merge(items: Iterable[tuple[Key, End | None]]) -> Iterator[tuple[Key, int, End | None]]:
    first: Key | None = None
    count, shared = 0, None
    for key, end in sorted(items, key=lambda item: item[0]):
        if first is not None:
            if (key.job, key.epoch, key.task, end) == (first.job, first.epoch, first.task + count, shared):
                count += 1
                continue
            yield first, count, shared
        first, count, shared = key, 1, end
    if first is not None:
        yield first, count, shared
