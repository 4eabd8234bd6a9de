"""Cutting stock: what is left of a device is worth what can still be cut from it.

Shares of devices come in some sizes, each so often. The fewest devices that hold them all are a linear program over
patterns; its duals say what a share of each size is worth in devices, and a knapsack of those what any rest is worth. A
rest into which nothing fits that comes is dead, however large it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, inf
from typing import TYPE_CHECKING, Final

import numpy as np

from muster.learning.simplex import EPSILON, Column, solve

if TYPE_CHECKING:
    from muster.learning.simplex import Vector

DEVICE: Final = 1000
ROUNDS: Final = 2000


def values_of(counts: Mapping[int, int]) -> list[float]:
    """What 0, 1, ... 1000 thousandths of a device are worth, in devices, if shares come in these sizes so often."""
    sizes = sorted(counts)
    duals = _duals_of(sizes, [counts[size] for size in sizes]) if sizes else []
    best, _ = fill(sizes, duals, DEVICE)
    values = [min(1.0, float(value)) for value in best]
    values[DEVICE] = 1.0
    return values


def _duals_of(sizes: Sequence[int], counts: Sequence[int]) -> list[float]:
    """What a share of each size is worth: as much as the part of a device that the best patterns need for it."""
    rows = len(sizes)

    def single(row: int) -> Column:
        entries = np.zeros(rows)
        entries[row] = DEVICE // sizes[row]
        return Column(1.0, entries)

    def price(duals: Vector) -> Column | None:
        if duals.min() < -EPSILON:
            entries = np.zeros(rows)
            entries[int(np.argmin(duals))] = -1.0
            return Column(0.0, entries)
        best, choices = fill(sizes, [float(dual) for dual in duals], DEVICE)
        return Column(1.0, pattern_of(choices, sizes, DEVICE)) if best[DEVICE] > 1 + EPSILON else None

    solution = solve([single(row) for row in range(rows)], list(map(float, counts)), price, ROUNDS)
    return [max(0.0, float(dual)) for dual in solution.duals]


def fill(sizes: Sequence[int], worth: Sequence[float], capacity: int) -> tuple[Vector, list[int]]:
    """The most that 0, 1, ... `capacity` can hold of sizes, as often as they fit, and which size was put in last (or -1
    if one less holds as much)."""
    unit = gcd(capacity, *sizes)
    rooms = capacity // unit + 1
    offers = [(size // unit, value, place) for place, (size, value) in enumerate(zip(sizes, worth, strict=True))]
    best, choices = [0.0] * rooms, [-1] * rooms
    for room in range(1, rooms):
        most, last = -inf, -1
        for step, value, place in offers:
            if step <= room and best[room - step] + value > most:
                most, last = best[room - step] + value, place
        best[room] = best[room - 1]
        if most > best[room] + EPSILON:
            best[room], choices[room] = most, last
    found = np.array(best)
    return np.repeat(found, unit)[: capacity + 1] if unit > 1 else found, choices


def pattern_of(choices: Sequence[int], sizes: Sequence[int], capacity: int) -> Vector:
    """How often each size is in the best filling of the whole capacity."""
    unit = capacity // (len(choices) - 1)
    entries, room = np.zeros(len(sizes)), capacity // unit
    while room > 0:
        if choices[room] < 0:
            room -= 1
        else:
            entries[choices[room]] += 1
            room -= sizes[choices[room]] // unit
    return entries
