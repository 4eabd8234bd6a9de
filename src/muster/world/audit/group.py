"""The auditor's own way to groups: every rank has a spec of its own, as if its group were a job.

It shares the words of groups with the world, and not how the world cuts leases: it goes rank by rank, and finds a lease
that has tasks of two groups, or a group that has not all of its tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import astuple, replace

from muster.model.job import Job
from muster.model.phase import Lease
from muster.model.spec import ANYWHERE, Spec
from muster.units import Resources
from muster.world.laws.law import require

Seat: TypeAlias = tuple[int, int, int]
"""Slot, tasks, devices."""

_ALONE = "a lease is of one group"


def cut(number: int, spec: Spec, seats: Sequence[tuple[int, ...]]) -> list[tuple[Spec, list[Seat]]]:
    """The leases of a gang, in the order of ranks, by group: each with the spec that the group would have alone."""
    if not spec.needs.groups:
        return [(spec, [(slot, tasks, devices) for slot, tasks, devices in seats])]
    of_rank = [place for place, group in enumerate(spec.needs.groups) for _ in range(group.tasks)]
    found: list[list[Seat]] = [[] for _ in spec.needs.groups]
    rank = 0
    for slot, tasks, devices in seats:
        groups = set(of_rank[rank : rank + tasks])
        require(len(groups) == 1, _ALONE, f"job {number}: ranks {rank} to {rank + tasks - 1} on slot {slot}")
        found[of_rank[rank]].append((slot, tasks, devices))
        rank += tasks
    return [(_alone(spec, place), found[place]) for place in range(len(found))]


def held_by(job: Job, leases: Sequence[Lease]) -> Iterator[tuple[Job, int, int, int]]:
    """Every (job, slot, tasks, devices) of a gang: of several groups, a job with the spec that the group would have."""
    for spec, seats in cut(job.id, job.spec, [astuple(lease) for lease in leases]):
        alone = job if spec is job.spec else replace(job, spec=spec)
        for slot, tasks, devices in seats:
            yield alone, slot, tasks, devices


def _alone(spec: Spec, place: int) -> Spec:
    group = spec.needs.groups[place]
    needs = replace(spec.needs, groups=ANYWHERE.groups)
    return replace(spec, ask=group.ask, gang=group.tasks, needs=needs, commands={})


def asks_of(spec: Spec) -> list[tuple[Resources, int]]:
    """What its tasks ask for, and how many ask for that."""
    return [(group.ask, group.tasks) for group in spec.needs.groups] or [(spec.ask, spec.tasks)]


def shape_of(spec: Spec) -> tuple[Resources, int]:
    """What decides with whom a job waits: of groups, their sum."""
    if not spec.needs.groups:
        return spec.ask, spec.gang + spec.spares
    fields = Resources.__struct_fields__
    sums = {name: sum(getattr(ask, name) * tasks for ask, tasks in asks_of(spec)) for name in fields}
    return Resources(**sums), 1
