"""The book: advice on packing as compiled code reads it. Which classes of asks come, and what they are worth.

Made once per lay-out of the fleet and version of the advice. Without advice there are no classes, and a device is worth
what is left of it: whoever reads the book finds nothing to lose. Advice that makes no sense is none.

    columns   cpu_milli, memory_bytes, gpus, gpu_milli    what one of a class asks for, one class after the other
              share     how often each comes, of a million
              places    what a place for one of each is worth, in thousandths of a thousandth of a device
              value     what so many thousandths of a device are worth, from none to all of them, in thousandths
              on:F      how much each class counts on flavor F, of a million; below zero if it may not run there
              price:F   how much more than elsewhere devices of flavor F are wanted, in thousandths
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from muster.model.advice import Advice
from muster.world.arena import DEVICE
from muster.world.compiled import Words, compiled, words_of
from muster.world.fleet import Fleet

CLASSES, SIZES, AT_CLASSES, AT_SIZES, AT_FLAVORS, AT_VALUES, MOST_CPU, MOST_GPUS = range(8)
HEADER: Final = 8
CLASS_CPU, CLASS_MEMORY, CLASS_GPUS, CLASS_SIZE, CLASS_VALUE, CLASS_PLACES, CLASS_SHARE = range(7)
CLASS_ROW: Final = 7
"""Of a class: its ask, where its size stands among the sizes (or NO_SIZE), what one is worth, how often it comes."""
NO_SIZE: Final = -1
SIZE_LEAST, SIZE_FIRST = range(2)
SIZE_ROW: Final = 2
"""Of a size: how much it is, and the number of its first class. Classes stand in the order of their sizes, those first
that take no device, and a row behind the last size ends its classes."""
FLAVOR_PRICE, FLAVOR_WEIGHTS = range(2)
"""A row per pool: the price of its flavor, what each class counts there, and for each size what all classes of it and
of the larger ones count together."""
CLASSES_MAX: Final = 1024
ONE: Final = 1_000_000
"""Shares and weights are parts of this."""
PLACES_MAX: Final = 1_000_000_000
PRICE_MAX: Final = 100_000
"""The most that a place is worth and that a price can be: sums of products of them stay inside a word."""

_BOOK: Final = "book"
Columns: TypeAlias = Mapping[str, tuple[int, ...]]
ASKS: Final = ("cpu_milli", "memory_bytes", "gpus", "gpu_milli")


def book_of(fleet: Fleet) -> Words:
    """The book of the advice that a fleet goes by."""
    known: tuple[Advice | None, Words] | None = fleet.recall(_BOOK)
    if known is None or known[0] is not fleet.advice:
        known = fleet.asked[_BOOK] = fleet.advice, words_of(_write_book(fleet))
    return known[1]


def _write_book(fleet: Fleet) -> array[int]:
    columns: Columns = {} if fleet.advice is None or not is_sound(fleet.advice) else fleet.advice.columns
    asks = list(zip(*(columns.get(name, ()) for name in ASKS), strict=True))
    order = sorted(range(len(asks)), key=lambda number: _size_of(*asks[number][2:]))
    values = columns.get("value") or tuple(range(DEVICE + 1))
    sizes = sorted({_size_of(gpus, milli) for _, _, gpus, milli in asks} - {0})
    words = array("q", bytes(8 * HEADER))
    words[CLASSES], words[SIZES] = len(asks), len(sizes)
    words[MOST_CPU] = max((pool.capacity[1] for pool in fleet.pools), default=0) or 1
    words[MOST_GPUS] = max((pool.capacity[0] for pool in fleet.pools), default=0) or 1
    words[AT_CLASSES] = len(words)
    for number in order:
        own = _write_class(asks[number], sizes, values)
        words.extend((*own, columns["places"][number], columns["share"][number]))
    words[AT_SIZES] = len(words)
    firsts = [bisect_left(order, size, key=lambda number: _size_of(*asks[number][2:])) for size in sizes]
    words.extend(word for row in zip((*sizes, 0), (*firsts, len(asks)), strict=True) for word in row)
    words[AT_FLAVORS] = len(words)
    for pool in fleet.pools:
        weights = [columns.get(f"on:{pool.flavor}", (0,) * len(asks))[number] for number in order]
        words.extend((*columns.get(f"price:{pool.flavor}", (0,)), *weights))
        words.extend(sum(max(0, weight) for weight in weights[first:]) for first in firsts)
    words[AT_VALUES] = len(words)
    words.extend(values)
    return words


def _write_class(ask: tuple[int, ...], sizes: Sequence[int], values: Sequence[int]) -> tuple[int, ...]:
    cpu, memory, gpus, milli = ask
    size = _size_of(gpus, milli)
    return cpu, memory, gpus or 1, sizes.index(size) if size else NO_SIZE, values[size] * (gpus or 1)


def _size_of(gpus: int, milli: int) -> int:
    """What is asked of each device."""
    return DEVICE if gpus else milli


@compiled
def flavor_at(book: Words, pool: int) -> int:
    """Where the row of a pool begins."""
    return int(book[AT_FLAVORS] + pool * (FLAVOR_WEIGHTS + book[CLASSES] + book[SIZES]))


def is_sound(advice: Advice) -> bool:
    """Whether columns are as long as they should be, and no number is larger than sums can bear."""
    columns, asks = advice.columns, [advice.columns.get(name, ()) for name in ASKS]
    count = len(asks[0])
    alike = (*asks, columns.get("share", ()), columns.get("places", ()))
    on = [column for name, column in columns.items() if name.startswith("on:")]
    prices = [column for name, column in columns.items() if name.startswith("price:")]
    values = columns.get("value", ())
    return (
        count <= CLASSES_MAX
        and all(len(column) == count for column in (*alike, *on))
        and all(len(column) == 1 for column in prices)
        and len(values) in (0, DEVICE + 1)
        and all(0 <= value <= DEVICE for value in (*values, *asks[3]))
        and all(0 <= value <= 64 for value in asks[2])
        and all(value >= 0 for column in alike for value in column)
        and all(-1 <= value <= ONE for column in (*on, alike[4]) for value in column)
        and all(value <= PLACES_MAX for value in alike[5])
        and all(0 <= value <= PRICE_MAX for column in prices for value in column)
    )
