"""Reasons for waiting, with numbers. Computed on read from the world as it is, by the same arithmetic as the cycle.

Nothing is stored: a follower answers `why` from its own world, and the answer cannot be stale by more than its lag.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Final

import msgspec

from muster.model.job import Job, Quota
from muster.model.phase import Queued, TaskPhase
from muster.model.reason import Code, Reason
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.scheduler.fit import widest_capacity, widest_room
from muster.scheduler.masks import keys_of
from muster.units import ZERO, Limit, Resources
from muster.world.fleet import Fleet
from muster.world.world import World, fits_quota

AHEAD_SHOWN: Final = 5
LABEL_VALUES_MAX: Final = 64
"""How many values a label may have on the fleet's nodes for an ask to mention it."""


class Waiting(msgspec.Struct, frozen=True):
    """Why a job waits: the dominant reason, its place in the line, and the first few who are ahead."""

    reason: Reason
    position: int
    ahead: list[int]
    ahead_total: Resources


def explain(world: World, job: Job) -> Waiting | None:
    """Why a job, or part of an array, waits; None if nothing of it does."""
    if not is_waiting(world, job):
        return None
    ahead = list(takewhile(lambda number: number < job.id, world.queue.waiting()))
    return Waiting(_dominant_reason(world, job), len(ahead) + 1, ahead[:AHEAD_SHOWN], _sum_waiting(world, ahead))


def is_waiting(world: World, job: Job) -> bool:
    """Whether a job, or part of an array, waits."""
    if job.spec.array:
        return bool(world.arrays[job.id].counts[TaskPhase.QUEUED])
    return isinstance(job.phase, Queued)


def quota_room(world: World, job: Job) -> int:
    """How many more tasks of a job its tenant's quota lets start now, at most as many as the job has."""
    return tasks_within_quota(world, job.spec.tenant, job.spec.ask, job.spec.tasks)


def tasks_within_quota(world: World, tenant: str, ask: Resources, most: int) -> int:
    """How many of `most` more tasks of this ask a tenant's quota lets start now."""
    quota, used = world.quota_of(tenant), world.ledger.used(tenant)
    rooms = [most]
    for limit, held, each in _lines(quota, used, ask):
        if limit is not None and each:
            rooms.append(max(0, limit - held) // each)
    return min(rooms)


def never_fits(world: World, spec: Spec) -> Reason | None:
    """Why no moment can ever come at which such a gang starts: the fleet is too small, or the quota is."""
    room = widest_capacity(world.fleet, spec.ask, spec.gang, spec.needs)
    if room < spec.gang:
        return Reason(Code.NEVER_FITS, "tasks", spec.gang, room, detail=_ruling_out(world.fleet, spec))
    if not fits_quota(world.quota_of(spec.tenant), ZERO, spec.ask, spec.gang):
        return _quota_reason(Code.NEVER_WITHIN_QUOTA, world, spec.tenant, spec.ask.times(spec.gang), ZERO)
    return None


def find_fine_label(world: World, needs: Needs) -> Reason | None:
    """A label that is different on nearly every node must not make every node a pool."""
    for key in sorted(keys_of(needs) - world.fleet.mentioned):
        values = {dict(traits.labels).get(key) for traits in world.fleet.traits}
        if len(values) > LABEL_VALUES_MAX:
            return Reason(Code.LABEL_TOO_FINE, f"label {key}", needed=len(values), available=LABEL_VALUES_MAX)
    return None


def _ruling_out(fleet: Fleet, spec: Spec) -> str:
    """The first need without which the gang would fit: that is what rules it out."""
    for field in Needs.__struct_fields__:
        without = msgspec.structs.replace(spec.needs, **{field: getattr(ANYWHERE, field)})
        if without != spec.needs and widest_capacity(fleet, spec.ask, spec.gang, without) >= spec.gang:
            return f"ruled out by {field} = {_shown(getattr(spec.needs, field))}"
    return ""


def _shown(value: object) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _sum_waiting(world: World, jobs: list[int]) -> Resources:
    """What all that waits of some jobs asks for. Not checked: nobody holds it, so it may be more than any amount."""
    gpus = cpu = memory = 0
    for number in jobs:
        spec = world.jobs[number].spec
        tasks = world.arrays[number].counts[TaskPhase.QUEUED] if spec.array else spec.gang
        gpus += spec.ask.gpus * tasks
        cpu += spec.ask.cpu_milli * tasks
        memory += spec.ask.memory_bytes * tasks
    return Resources(gpus, cpu, memory)


def _dominant_reason(world: World, job: Job) -> Reason:
    """Quota before room: what the tenant itself could change comes first."""
    spec = job.spec
    used = world.ledger.used(spec.tenant)
    if not fits_quota(world.quota_of(spec.tenant), used, spec.ask, spec.gang):
        return _quota_reason(Code.OVER_QUOTA, world, spec.tenant, spec.ask.times(spec.gang), used)
    fleet = world.fleet
    closed = sum(not fleet.is_open(slot) for slot in range(len(fleet)))
    detail = f"{closed} of {len(fleet)} nodes closed" if closed else ""
    room = widest_room(fleet, spec.ask, spec.gang, spec.needs)
    return Reason(Code.NO_ROOM, "tasks", needed=spec.gang, available=room, detail=detail)


def _quota_reason(code: Code, world: World, tenant: str, more: Resources, used: Resources) -> Reason:
    quota = world.quota_of(tenant)
    names = ("gpus", "cpu_milli", "memory_bytes")
    for name, (limit, held, each) in zip(names, _lines(quota, used, more), strict=True):
        if limit is not None and each and held + each > limit:
            return Reason(code, name, needed=each, available=max(0, limit - held), detail=tenant)
    raise AssertionError("asked for the reason of a quota that fits")


def _lines(quota: Quota, used: Resources, ask: Resources) -> tuple[tuple[Limit, int, int], ...]:
    return (
        (quota.gpus, used.gpus, ask.gpus),
        (quota.cpu_milli, used.cpu_milli, ask.cpu_milli),
        (quota.memory_bytes, used.memory_bytes, ask.memory_bytes),
    )
