"""The array-heavy mix of `bench replay`: sweeps, and what their engine reports of them.

A sweep is an array of 1,000 to 10,000 tasks, one GPU and eight cores each, which do equal work: 20 to 100 seconds of
it, the same for all tasks of one sweep. Nodes differ in speed by up to 2 per cent either way, so what began together
ends nearly together, and one task in a thousand fails. The engine of the cluster reports every ten seconds what started
and what ended since: of one sweep, all tasks that ended alike are one event, in a row or not, as `merge_exited` says
it. Where the nodes of one start end on two sides of a report, a range is that of a node or two.

The other extreme is scattered: each task has a length of its own, from half to twice the sweep's, so that they end in
random order and hardly two neighbours end in one report. Then nearly every range is of one task, and nearly every place
is given back, found and given to somebody else by itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from muster.model.event import Event, Exited, Started, Submit
from muster.model.instruction import Start
from muster.model.ranges import ranges_of
from muster.model.spec import Spec
from muster.units import SECOND_MS, Resources

REPORT_MS: Final = 10 * SECOND_MS
SIZES: Final = (1_000, 2_000, 5_000, 10_000)
LEAST_MS, MOST_MS = 20 * SECOND_MS, 100 * SECOND_MS
SPREAD_PERMILLE: Final = 20
"""By how much a node is faster or slower than others, at most."""
FAILS_PERMILLE: Final = 1
UP: Final = -1
"""What stands for a code where a task has only begun."""


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
    """What the engine will report, and when: at full intervals. `ends` are its events about ends so far, and `ranges`
    those that they have together."""

    def __init__(self, dice: random.Random, is_scattered: bool = False) -> None:
        self._dice = dice
        self._is_scattered = is_scattered
        self._lengths: dict[int, int] = {}
        self._due: dict[int, dict[tuple[int, int, int], list[int]]] = {}
        self.ends = self.ranges = 0

    def note_start(self, item: Start, now: int) -> list[int]:
        """Note what a start leads to; the instants at which nothing was to be reported before."""
        known = len(self._due)
        length = self._lengths.get(item.job) or self._dice.randrange(LEAST_MS, MOST_MS)
        self._lengths[item.job] = length
        up_at = _next_report(now)
        for task, (at, code) in enumerate(self._ends(item, now + SECOND_MS, length), item.first):
            self._note(up_at, (item.job, item.epoch, UP), task)
            self._note(at, (item.job, item.epoch, code), task)
        return list(self._due)[known:]

    def take(self, at: int) -> Iterator[Event]:
        """What is reported at an instant: of each sweep one event for what started, and one for each way to end."""
        for (job, epoch, code), tasks in self._due.pop(at).items():
            first, count, *more = ranges_of(sorted(tasks))
            if code == UP:
                yield Started(job, epoch, first, count, "bench", more)
                continue
            yield Exited(job, epoch, code, first, count, cause="bench", more=more)
            self.ends += 1
            self.ranges += 1 + len(more) // 2

    def _note(self, at: int, what: tuple[int, int, int], task: int) -> None:
        self._due.setdefault(at, {}).setdefault(what, []).append(task)

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
