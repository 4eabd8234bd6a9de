"""The auditor's own look at company: whoever starts is apart from those it names, and beside those it names.

It goes by the auditor's books alone, and shares nothing with the index that placement uses but the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from muster.model.node import LEVELS, Level, Place
from muster.model.spec import Spec
from muster.world.laws.law import require
from muster.world.tasks import NOWHERE


class Book(Protocol):
    """What is read of a job's book: the slots of an array's tasks, and the leases of a gang."""

    @property
    def spec(self) -> Spec: ...
    @property
    def slots(self) -> Iterable[int]: ...
    @property
    def leases(self) -> Iterable[tuple[int, int, int]]: ...


def check_company(number: int, slots: Iterable[int], books: Mapping[int, Book], places: Sequence[Place]) -> None:
    """A job that starts on these slots is in the company it wants; other jobs of a name count, not it itself."""
    needs = books[number].spec.needs
    for names, word, wanted in ((needs.apart, needs.apart_level, False), (needs.beside, needs.beside_level, True)):
        for name in names:
            taken = [_domain(places, seat, LEVELS[word]) for seat in _seats(number, name, books)]
            for slot in slots:
                right = (_domain(places, slot, LEVELS[word]) in taken) == wanted
                require(right, "everybody is in the company they want", f"job {number} on slot {slot}: {name}")


def _seats(number: int, name: str, books: Mapping[int, Book]) -> Iterator[int]:
    for other, book in books.items():
        if other != number and name == f"{book.spec.tenant}/{book.spec.name}":
            yield from (slot for slot in book.slots if slot != NOWHERE)
            yield from (slot for slot, _, _ in book.leases)


def _domain(places: Sequence[Place], slot: int, level: Level) -> object:
    return slot if level == Level.NODE else places[slot].path(level)
