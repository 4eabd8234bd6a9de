"""The bound beside packing: no policy, even one that knows all and may turn pods away, allocates more of the devices.

A linear program over patterns, for all models of devices together: each device of a model holds one pattern of what may
run there, whole devices and shares; no class is used more often than it comes, if what came were as much as there are
devices, or more. CPU, memory and nodes are left out, and parts of a pattern may be used, so it can only be too low.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from muster.learning.cutting import DEVICE, fill, pattern_of
from muster.learning.simplex import Column, solve
from muster.simulator.traces.openb import NodeRow
from muster.simulator.traces.record import Record

if TYPE_CHECKING:
    from muster.learning.simplex import Vector

GAIN_MIN = 1e-7


def find_bound(nodes: Sequence[NodeRow], pods: Sequence[Record]) -> float:
    """The part of the devices that stays unallocated at best."""
    cards = Counter[str]()
    for node in nodes:
        cards[node.model] += node.capacity.gpus
    demand = _demand(pods, sorted(cards))
    total = sum(cards.values())
    scale = max(1.0, total * DEVICE / sum(size * count for (size, _), count in demand.items()))
    classes, models = sorted(demand), sorted(cards)
    rows = len(classes) + len(models)

    def slack(row: int) -> Column:
        entries = np.zeros(rows)
        entries[row] = 1.0
        return Column(0.0, entries)

    def price(duals: Vector) -> Column | None:
        found = [_best_pattern(number, model, classes, duals) for number, model in enumerate(models)]
        gain, column = max(found, key=lambda pair: pair[0])
        if duals.max() > GAIN_MIN and duals.max() > gain:
            return slack(int(np.argmax(duals)))
        return column if gain > GAIN_MIN else None

    wanted = [scale * demand[each] for each in classes] + [float(cards[model]) for model in models]
    solution = solve([slack(row) for row in range(rows)], wanted, price)
    if not solution.is_optimal:
        raise ArithmeticError("the bound did not come to an end")
    return 1 + solution.cost / total


def _demand(pods: Sequence[Record], models: Sequence[str]) -> Counter[tuple[int, tuple[str, ...]]]:
    """How many devices, or shares of one, are asked for by size and by the models that they may be of."""
    found = Counter[tuple[int, tuple[str, ...]]]()
    for pod in pods:
        usable = tuple(model for model in models if not pod.models or model in pod.models)
        if pod.gpus or pod.gpu_milli:
            found[pod.gpu_milli or DEVICE, usable] += max(1, pod.gpus)
    return found


def _best_pattern(
    number: int, model: str, classes: Sequence[tuple[int, tuple[str, ...]]], duals: Vector
) -> tuple[float, Column]:
    """The pattern on a device of a model that would gain most: what it allocates, less what that is worth elsewhere."""
    usable = [row for row, (_, models) in enumerate(classes) if model in models]
    sizes = [classes[row][0] for row in usable]
    worth = [size / DEVICE + float(duals[row]) for row, size in zip(usable, sizes, strict=True)]
    best, choices = fill(sizes, worth, DEVICE) if sizes else (np.zeros(DEVICE + 1), [-1] * (DEVICE + 1))
    entries, pattern = np.zeros(len(duals)), pattern_of(choices, sizes, DEVICE)
    for place, row in enumerate(usable):
        entries[row] = pattern[place]
    entries[len(classes) + number] = 1.0
    allocated = float(sum(count * size for count, size in zip(pattern, sizes, strict=True))) / DEVICE
    return float(best[DEVICE]) + float(duals[len(classes) + number]), Column(-allocated, entries)
