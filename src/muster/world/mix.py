"""The mix: how many devices the tasks of all live jobs ask for, waiting or not. A count by size, exact and derived.

Scores may ask what the devices that a placement leaves are good for; the mix says for whom. It is kept only while the
profile in use weighs that, and read in powers of two: a score should change when the mix does, not with every job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from muster.model.job import Job
from muster.model.phase import TERMINAL
from muster.model.spec import Spec

Steps: TypeAlias = tuple[tuple[int, int], ...]
"""Sizes with a power of two each, the smallest size first."""


class Mix:
    """`counts` are tasks by how many whole devices each asks for; those that ask for fewer than two find a use for
    whatever is left, and are not counted."""

    __slots__ = ("counts",)

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self.counts: dict[int, int] = {}
        for job in jobs:
            if not isinstance(job.phase, TERMINAL):
                self.add(job.spec, 1)

    def add(self, spec: Spec, sign: int) -> None:
        """A job is there (1), or over (-1)."""
        groups = [(group.ask.gpus, group.tasks) for group in spec.needs.groups]
        for gpus, tasks in groups or [(spec.ask.gpus, spec.tasks)]:
            count = self.counts.pop(gpus, 0) + sign * tasks
            if gpus > 1 and count:
                self.counts[gpus] = count

    def steps(self) -> Steps:
        """The mix as scores see it: each count as the largest power of two that it reaches."""
        return tuple((gpus, 1 << (count.bit_length() - 1)) for gpus, count in sorted(self.counts.items()))

    def fork(self) -> Mix:
        """An independent copy."""
        twin = Mix()
        twin.counts = self.counts.copy()
        return twin
