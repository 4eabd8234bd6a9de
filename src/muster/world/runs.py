"""Runs: who holds places, by tenant, tier and priority: an index for whoever asks whose place could be taken.

It is made when somebody first asks and kept from then on, so a world in which nobody could take anything from anybody
never has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from muster.model.job import Job

RunClass: TypeAlias = tuple[str, str, int]
"""Tenant, tier, priority."""


class Runs:
    """Jobs that hold something, gangs and arrays alike."""

    __slots__ = ("by_class",)

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self.by_class: dict[RunClass, dict[int, None]] = {}
        for job in jobs:
            self.add(job)

    def add(self, job: Job) -> None:
        """A job holds something."""
        self.by_class.setdefault(class_of(job), {})[job.id] = None

    def remove(self, job: Job) -> None:
        """It holds nothing any more."""
        key = class_of(job)
        jobs = self.by_class[key]
        del jobs[job.id]
        if not jobs:
            del self.by_class[key]

    def classes(self) -> list[RunClass]:
        """Every class that somebody runs in, in order."""
        return sorted(self.by_class)

    def all(self) -> list[int]:
        """Every job that holds something, by number."""
        return sorted(number for jobs in self.by_class.values() for number in jobs)


def class_of(job: Job) -> RunClass:
    """What decides whose place a job may take and who may take its."""
    spec = job.spec
    return spec.tenant, spec.tier, spec.priority
