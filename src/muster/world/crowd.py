"""The crowd: of which kinds the jobs on each node are, by the devices that a task takes. A count, exact and derived.

A score may want equals together: shares with shares, pairs with pairs. The crowd says who is there; it is kept only
while the profile in use weighs that.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Final

from muster.model.job import Job
from muster.model.phase import ACTIVE
from muster.units import Resources
from muster.world.compiled import Words, words_of

SHARES: Final = 0
"""The kind of tasks that take a share of a device; others take so many whole ones."""


def kind_of(ask: Resources) -> int | None:
    """The kind of a task, as a bit; None if it takes no device."""
    if ask.gpu_milli:
        return SHARES
    return ask.gpus or None


def crowd_of(jobs: Mapping[int, Job], holders: Mapping[int, Mapping[int, int]]) -> Crowd:
    """Everybody who holds something, where they hold it."""
    crowd = Crowd()
    for slot, here in holders.items():
        for job, tasks in here.items():
            for ask, count in asks_on(jobs[job], slot, tasks):
                crowd.seat(slot, ask, count)
    return crowd


def asks_on(job: Job, slot: int, tasks: int) -> list[tuple[Resources, int]]:
    """What the tasks of a job that sit on a node ask for, and how many ask for that."""
    if not job.spec.needs.groups or not isinstance(job.phase, ACTIVE):
        return [(job.spec.ask, tasks)]
    parts = job.spec.parts(job.phase.run.leases)
    return [(ask, lease.tasks) for ask, leases in parts for lease in leases if lease.slot == slot]


class Crowd:
    """`counts` are tasks by slot and kind; `kinds` are the kinds that are there, by slot, as bits."""

    __slots__ = ("_flat", "counts", "kinds")

    def __init__(self) -> None:
        self.counts: dict[tuple[int, int], int] = {}
        self._flat = array("q")
        self.kinds: Words = words_of(self._flat)

    def seat(self, slot: int, ask: Resources, tasks: int) -> None:
        """Tasks came to a node, or left it (below zero)."""
        kind = kind_of(ask)
        if kind is None:
            return
        count = self.counts.get((slot, kind), 0) + tasks
        if count:
            self.counts[slot, kind] = count
        else:
            del self.counts[slot, kind]
        self._widen(slot + 1)
        self.kinds[slot] = (self.kinds[slot] & ~(1 << kind)) | (int(count > 0) << kind)

    def fork(self) -> Crowd:
        """An independent copy."""
        twin = Crowd()
        twin.counts, twin._flat = self.counts.copy(), self._flat[:]
        twin.kinds = words_of(twin._flat)
        return twin

    def kinds_of(self, slots: int) -> Words:
        """The kinds of so many slots."""
        self._widen(slots)
        return self.kinds

    def _widen(self, slots: int) -> None:
        if slots > len(self._flat):
            self._flat = self._flat + array("q", bytes(8 * (slots - len(self._flat))))
            self.kinds = words_of(self._flat)
