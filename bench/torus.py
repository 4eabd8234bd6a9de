"""`bench torus`: one box of a torus of 16 x 16 x 16 nodes that is four fifths full, shapes from 1x1x2 to 8x8x4.

The torus is filled with boxes of the same mix, some of which leave again, so that what is free is broken as in life.
Timed is one search: which spots are free, the best box in any rotation and across the seam, and its leases. Each answer
is compared with a search that tries every origin and rotation on plain sets. The reference is that search.
"""

from __future__ import annotations

import itertools
import random
from functools import partial
from math import prod
from typing import Final

from bench.report import Metric, Result, cpu_seconds, median
from muster.model.node import Place, Sides, Spot, Traits
from muster.model.phase import Lease
from muster.model.spec import Needs
from muster.scheduler.placing.fit import find_gang
from muster.units import Resources
from muster.world.fleet import Fleet

SIZE: Final[Sides] = (16, 16, 16)
NODE: Final = Resources(4, 96_000, 1 << 38)
SHAPES: Final[tuple[Sides, ...]] = (
    (1, 1, 2),
    (2, 2, 1),
    (2, 2, 2),
    (4, 2, 2),
    (4, 4, 2),
    (4, 4, 4),
    (8, 4, 4),
    (8, 8, 4),
)
WEIGHTS: Final = (8, 8, 8, 4, 4, 2, 1, 1)
FULL_PERCENT: Final = 80
SEARCHES: Final = 400


def run(seed: int) -> Result:
    """Search a torus that changes a little between searches."""
    dice = random.Random(seed)
    yard = _Yard()
    while yard.percent() < FULL_PERCENT:
        yard.put(dice.choices(SHAPES, WEIGHTS)[0]) or yard.put(SHAPES[0])
        if dice.random() < 0.3:
            yard.clear(dice)
    times, plain, wrong, placed = [], [], 0, 0
    for _ in range(SEARCHES):
        shape = dice.choices(SHAPES, WEIGHTS)[0]
        times.append(1000 * cpu_seconds(partial(yard.find, shape)))
        plain.append(1000 * cpu_seconds(partial(yard.has_box, shape)))
        wrong += (yard.found is not None) != yard.there
        placed += yard.put(shape)
        while yard.percent() > FULL_PERCENT:
            yard.clear(dice)
    metrics = {
        "torus_ms": Metric(median(times), "ms", 1, at_least=False),
        "wrong_answers": Metric(wrong, "", 0, at_least=False),
    }
    reference = {"torus_max_ms": max(times), "every_box_ms": median(plain), "searches": SEARCHES, "placed": placed}
    return Result("torus", metrics, reference)


class _Yard:
    """A torus, and the boxes that stand on it; `found` and `there` are the last answers."""

    def __init__(self) -> None:
        self.found: list[Lease] | None = None
        self.there = False
        self._fleet = Fleet()
        self._spots = list(itertools.product(range(SIZE[0]), range(SIZE[1]), range(SIZE[2])))
        self._boxes: list[list[Lease]] = []
        self._taken: set[int] = set()
        for slot, at in enumerate(self._spots):
            traits = Traits("tpu", Place("eu", "pod"), spot=Spot("torus", SIZE, at))
            self._fleet.join(slot, f"node-{slot:04d}", NODE, traits)
        assert len(self._fleet.words)

    def percent(self) -> float:
        """How full it is."""
        return 100 * len(self._taken) / len(self._spots)

    def find(self, shape: Sides) -> None:
        """Search as a cycle does."""
        self.found = find_gang(self._fleet, NODE, prod(shape), Needs(shape=shape))

    def put(self, shape: Sides) -> bool:
        """Place a box, if there is one."""
        self.find(shape)
        for lease in self.found or ():
            self._fleet.occupy(lease.slot, 1, NODE, 1, lease.devices)
            self._taken.add(lease.slot)
        if self.found:
            self._boxes.append(self.found)
        return self.found is not None

    def clear(self, dice: random.Random) -> None:
        """Some box leaves."""
        for lease in self._boxes.pop(dice.randrange(len(self._boxes))):
            self._fleet.vacate(lease.slot, 1, NODE, 1, lease.devices)
            self._taken.discard(lease.slot)

    def has_box(self, shape: Sides) -> None:
        """Try every origin and rotation."""
        free = {spot for slot, spot in enumerate(self._spots) if slot not in self._taken}
        self.there = any(
            all(spot in free for spot in _box(origin, sides))
            for sides in sorted(set(itertools.permutations(shape)))
            for origin in self._spots
            if origin in free
        )


def _box(origin: Sides, sides: tuple[int, ...]) -> itertools.product[tuple[int, ...]]:
    spans = [[(at + step) % size for step in range(side)] for at, side, size in zip(origin, sides, SIZE, strict=True)]
    return itertools.product(*spans)
