"""Ranges: how a record names many tasks of one job, in a row or scattered.

`first` and `count` are one range, and `more` has the others, each as its first task and how many: so whatever was said
of one range can be said of a thousand, and a record from before there were more of them reads as it did. An engine may
name a task twice, or in any order; a fact names each task once, upwards.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Protocol, TypeAlias

from muster.model.record import Record

Span: TypeAlias = tuple[int, int]
"""The first task of a range, and how many they are."""
Ranges: TypeAlias = "array[int]"
"""Many of them, one behind the other, as words."""


class _Named(Protocol):
    @property
    def first(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def more(self) -> list[int]: ...


class Ranged(Record, frozen=True):
    """A record about ranges of tasks."""

    @property
    def spans(self: _Named) -> list[Span]:
        """All its ranges."""
        more, own = self.more, (self.first, self.count)
        return [own, *zip(more[::2], more[1::2], strict=False)] if more else [own]

    @property
    def ranges(self: _Named) -> Ranges:
        """The same, as words."""
        return as_ranges(self.first, self.count, *self.more)

    @property
    def total(self: _Named) -> int:
        """How many tasks its ranges have together."""
        return self.count + sum(self.more[1::2])


def as_ranges(*words: int) -> Ranges:
    """Ranges, each by its first task and how many they are."""
    return array("q", words)


def tasks_in(ranges: Ranges) -> Iterator[int]:
    """Every task of ranges, one after the other."""
    return chain(*(range(first, first + count) for first, count in zip(ranges[::2], ranges[1::2], strict=True)))


def ranges_of(tasks: Iterable[int]) -> Ranges:
    """Tasks that go upwards as ranges, as few as there can be."""
    found, end = as_ranges(), -1
    for task in tasks:
        if task == end:
            found[-1] += 1
        else:
            found.extend((task, 1))
        end = task + 1
    return found
