"""Loads: how demand that may go to some flavors each would spread over what is free, if it spread as evenly as it can.

Water that is poured into several basins: each demand fills those that it may use to one level, in turns, until the
levels stand still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

ROUNDS: Final = 40

Loads: TypeAlias = dict[str, float]
Parts: TypeAlias = dict[tuple[str, ...], dict[str, float]]


def split(demand: Mapping[tuple[str, ...], float], free: Mapping[str, float]) -> tuple[Loads, Parts]:
    """The load on each flavor, in all as much as is free, and which part of each demand goes where."""
    scale = sum(free.values()) / (sum(demand.values()) or 1.0)
    parts: dict[tuple[str, ...], dict[str, float]] = {flavors: {} for flavors in demand}
    loads = dict.fromkeys(free, 0.0)
    for _ in range(ROUNDS):
        for flavors in sorted(demand):
            for name, amount in parts[flavors].items():
                loads[name] -= amount
            usable = [name for name in flavors if free.get(name, 0.0) > 0]
            parts[flavors] = _pour(scale * demand[flavors], usable, loads, free)
            for name, amount in parts[flavors].items():
                loads[name] += amount
    return loads, {flavors: _shares(part) for flavors, part in parts.items()}


def _pour(amount: float, names: Sequence[str], loads: Mapping[str, float], free: Mapping[str, float]) -> Loads:
    """Fill up the emptiest first, all that are reached to one level."""
    order = sorted(names, key=lambda name: (loads[name] / free[name], name))
    level, width, water = 0.0, 0.0, 0.0
    for place, name in enumerate(order):
        width += free[name]
        water += loads[name]
        level = (amount + water) / width
        if place + 1 == len(order) or level <= loads[order[place + 1]] / free[order[place + 1]]:
            break
    return {name: max(0.0, level * free[name] - loads[name]) for name in order}


def _shares(part: Mapping[str, float]) -> dict[str, float]:
    total = sum(part.values())
    return {name: amount / total for name, amount in part.items()} if total > 0 else {}
