"""A small simplex with columns made on demand: linear programs with few rows and more columns than can be written down.

    minimise  cost · x    where  columns · x = wanted,  x ≥ 0

It begins with a basis that is feasible and asks, with the present duals, for a column that would improve things, until
there is none. Floats live here; whoever uses a result in a decision makes integers of it first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float64]

EPSILON: Final = 1e-9
ROUNDS_MAX: Final = 20_000
REFRESH_EVERY: Final = 200
"""Rounds after which the inverse is made anew: each round adds a little error to it."""


class Column(NamedTuple):
    """One way to use the rows, and what one of it costs. `name` is the caller's, to tell what was chosen."""

    cost: float
    entries: Vector
    name: object = None


class Solution(NamedTuple):
    """The columns of the basis with how much of each, and the worth of one more of each row."""

    columns: list[Column]
    amounts: Vector
    duals: Vector
    is_optimal: bool

    @property
    def cost(self) -> float:
        """What it costs in all."""
        return float(sum(column.cost * amount for column, amount in zip(self.columns, self.amounts, strict=True)))


def solve(
    basis: Sequence[Column], wanted: Sequence[float], price: Callable[[Vector], Column | None], most: int = ROUNDS_MAX
) -> Solution:
    """Improve a feasible basis by the columns that `price` finds for given duals, until it finds none."""
    columns, goal = list(basis), np.array(wanted, dtype=np.float64)
    inverse, costs = _invert(columns), np.array([column.cost for column in columns])
    amounts = inverse @ goal
    for number in range(1, most + 1):
        duals = costs @ inverse
        entering = price(duals)
        if entering is None:
            return Solution(columns, amounts, duals, is_optimal=True)
        direction = inverse @ entering.entries
        row = _leaving(amounts, direction)
        if row is None:
            break
        columns[row], costs[row] = entering, entering.cost
        inverse = _invert(columns) if number % REFRESH_EVERY == 0 else _pivot(inverse, direction, row)
        amounts = np.maximum(inverse @ goal, 0)
    return Solution(columns, amounts, costs @ inverse, is_optimal=False)


def _invert(columns: Sequence[Column]) -> Vector:
    matrix = np.column_stack([column.entries for column in columns])
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _leaving(amounts: Vector, direction: Vector) -> int | None:
    """The row that is used up first; of several, the one with the largest step, which keeps the numbers sound."""
    rows = np.flatnonzero(direction > EPSILON)
    if not len(rows):
        return None
    ratios = amounts[rows] / direction[rows]
    tied = rows[ratios <= ratios.min() + EPSILON]
    return int(tied[np.argmax(direction[tied])])


def _pivot(inverse: Vector, direction: Vector, row: int) -> Vector:
    pivoted = inverse[row] / direction[row]
    after = inverse - np.outer(direction, pivoted)
    after[row] = pivoted
    return np.asarray(after, dtype=np.float64)
