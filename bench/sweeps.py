"""The array-heavy mix of `bench replay`: sweeps, and what their engine reports of them.

A sweep is an array of 1,000 to 10,000 tasks, one GPU and eight cores each, which do equal work: 20 to 100 seconds of
it, the same for all tasks of one sweep. Nodes differ in speed by up to 2 per cent either way, so what began together
ends nearly together, and one task in a thousand fails. The engine of the cluster reports every ten seconds what started
and what ended since; of one start, neighbouring tasks that ended alike are one range, as `merge_exited` says it. So
where the nodes of one start end on two sides of a report, a range is that of a node or two.

The other extreme is scattered, for comparison: each task has a length of its own, from half to twice the sweep's, and
hardly two neighbours end in one report.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from muster.model.event import Event, Exited, Started, Submit
from muster.model.instruction import Start
from muster.model.spec import Spec
from muster.units import SECOND_MS, Resources

REPORT_MS: Final = 10 * SECOND_MS
SIZES: Final = (1_000, 2_000, 5_000, 10_000)
LEAST_MS, MOST_MS = 20 * SECOND_MS, 100 * SECOND_MS
SPREAD_PERMILLE: Final = 20
"""By how much a node is faster or slower than others, at most."""
FAILS_PERMILLE: Final = 1


def make_sweeps(dice: random.Random, tasks: int, slots: int, tenants: int) -> Iterator[tuple[int, Event]]:
    """Sweeps of so many tasks together, as fast as so many places can serve them."""
    at, made = 0.0, 0
    while made < tasks:
        size = min(tasks - made, dice.choice(SIZES))
        spec = Spec(
            ("sweep",), tenant=f"tenant-{dice.randrange(tenants)}", array=size, ask=Resources(1, 8_000, 1 << 36)
        )
        yield int(at), Submit(spec, cause="bench")
        made += size
        at += size * (LEAST_MS + MOST_MS) / 2 / slots


class Reports:
    """What the engine will report, and when: at full intervals."""

    def __init__(self, dice: random.Random, is_scattered: bool = False) -> None:
        self._dice = dice
        self._is_scattered = is_scattered
        self._lengths: dict[int, int] = {}
        self.ends = 0

    def of_start(self, item: Start, now: int) -> Iterator[tuple[int, Event]]:
        """The reports that a start leads to."""
        length = self._lengths.get(item.job) or self._dice.randrange(LEAST_MS, MOST_MS)
        self._lengths[item.job] = length
        yield _next_report(now), Started(item.job, item.epoch, item.first, sum(item.counts), cause="bench")
        first = item.first
        for (at, code), tasks in groupby(self._ends(item, now + SECOND_MS, length)):
            count = len(list(tasks))
            yield at, Exited(item.job, item.epoch, code, first, count, cause="bench")
            first += count
            self.ends += 1

    def _ends(self, item: Start, now: int, length: int) -> Iterator[tuple[int, int]]:
        """Of one task after the other, when its end is reported, and its code."""
        dice = self._dice
        for node, count in zip(item.nodes, item.counts, strict=True):
            at = _next_report(now + length * (1000 + _slower_permille(node)) // 1000)
            for _ in range(count):
                if self._is_scattered:
                    at = _next_report(now + dice.randrange(length // 2, 2 * length))
                yield at, int(dice.random() * 1000 < FAILS_PERMILLE)


def _slower_permille(node: str) -> int:
    return int(node[-5:]) * 7919 % (2 * SPREAD_PERMILLE + 1) - SPREAD_PERMILLE


def _next_report(at: int) -> int:
    return (at // REPORT_MS + 1) * REPORT_MS
