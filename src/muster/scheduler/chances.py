"""chances: when time alone may let somebody take a place that it could not take before.

A protection ends; a claimant that backed off may take again, or one that has just come by its priority; somebody takes
too long to stop. Nothing else about taking depends on the hour. The first of these instants wakes the kernel; what
comes of it is decided there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final, cast

from muster.model.phase import ACTIVE, Queued, Spread, Stopping, TaskPhase
from muster.policy.protection import has_waited, protected_until, takes_again_at, waited_at
from muster.scheduler.taking.herds import MARGIN_MS
from muster.units import INSTANT_MAX
from muster.world.runs import Kind, Runs, class_of
from muster.world.tasks import spans_of
from muster.world.world import World

_STOPPING: Final = int(TaskPhase.STOPPING)
_WAITING: Final = (Queued, Spread)  # types: most comers are neither, which is found out sooner of a type


def find_next_chance(world: World, now: int) -> int:
    """The first instant after now; INSTANT_MAX if there is none."""
    return min((at for at in _instants(world, now) if at > now), default=INSTANT_MAX)


def find_next_overdue(world: World, now: int) -> int:
    """When next somebody who was told to stop or to leave has taken too long; INSTANT_MAX if nobody was."""
    return min((at for at in _overdue_at(world) if at > now), default=INSTANT_MAX)


def _instants(world: World, now: int) -> Iterator[int]:
    runs, jobs = world.know_runs(), world.jobs
    if _is_patience_of_use(world, runs, now):
        yield waited_at(now)
    yield from _overdue_at(world)
    for number in runs.flapping:
        yield takes_again_at(jobs[number].took, now)
    guarded = [name for name, tier in world.tiers.items() if tier.min_run_ms or tier.evictions_max is not None]
    for number in runs.gangs_of(guarded) if guarded else ():
        phase, tier = jobs[number].phase, world.tiers[jobs[number].spec.tier]
        if isinstance(phase, ACTIVE):
            yield protected_until(tier, phase.run.since, jobs[number].evicted, now)
    for number in runs.arrays if guarded else ():
        if (name := jobs[number].spec.tier) in guarded:
            yield from (since + world.tiers[name].min_run_ms for since in world.arrays[number].since if since)


def _overdue_at(world: World) -> Iterator[int]:
    """When those who were told to stop or to leave have taken too long."""
    runs, jobs = world.know_runs(), world.jobs
    for number in runs.leaving:
        job = jobs[number]
        if isinstance(job.phase, Stopping):
            yield job.phase.since + job.spec.grace_ms + MARGIN_MS
    for number in runs.arrays:
        tasks, late_ms = world.arrays[number], jobs[number].spec.grace_ms + MARGIN_MS
        spans = spans_of(tasks.phase, (TaskPhase.STOPPING,), 0, len(tasks)) if tasks.counts[_STOPPING] else ()
        for first, count in spans:
            yield from (since + late_ms for since in dict.fromkeys(tasks.since[first : first + count]))
    resizes = world.widths.resizes.items()
    yield from (resize.at + jobs[number].spec.grace_ms + MARGIN_MS for number, resize in resizes if resize.to)


def _is_patience_of_use(world: World, runs: Runs, now: int) -> bool:
    """Whether one who waits and has just come may take by its priority in a while: from a run of its tenant and tier
    that has a lower one."""
    jobs = world.jobs
    comers = takewhile(lambda job: not has_waited(job.accepted_at, now), map(jobs.__getitem__, reversed(jobs)))
    wanted = {class_of(job): None for job in comers if type(job.phase) in _WAITING}  # ids rise with time
    kinds = cast("list[Kind]", runs.kinds.names)
    lower = ((tenant, *kind) for tenant, tier, most in wanted for kind in kinds if kind[0] == tier and kind[1] < most)
    return any(map(runs.has_class, lower))
