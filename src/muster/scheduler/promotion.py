"""promotion: in which higher tier a job that waits would start now, or be given the places of others.

A tier changes who is before whom and whose places may be taken, so it is tried on a fork of the whole world, with the
jobs in it: the job is accepted there once more, in the other tier, and what a cycle and a look for places do then is
what they would do here. The nearest tier above comes first. Nothing is decided here that the cycle does not decide.
"""

from __future__ import annotations

from typing import Final

import msgspec

from muster.model.fact import Accepted
from muster.model.phase import Queued
from muster.model.spec import Spec
from muster.scheduler.cycle import run_cycle
from muster.scheduler.options import Option
from muster.scheduler.taking.preemption import can_anybody_take, plan_taking
from muster.world.apply import apply
from muster.world.world import World

TIERS_TRIED: Final = 4
"""How many tiers are tried, the nearest first: each costs a copy of the world."""


def find_promotion(world: World, spec: Spec, now: int) -> Option | None:
    """The nearest tier above a spec's own in which it would start now, or get places as soon as others have left."""
    for name in higher_tiers(world, spec)[:TIERS_TRIED]:
        stops = _count_stops(world.fork(), msgspec.structs.replace(spec, tier=name), now)
        if stops is not None:
            return Option("tier", spec.tier, name, stops)
    return None


def higher_tiers(world: World, spec: Spec) -> list[str]:
    """The tiers that go before a spec's own, the nearest first."""
    own = world.tiers[spec.tier].rank
    above = [(-tier.rank, name) for name, tier in world.tiers.items() if tier.rank < own]
    return [name for _, name in sorted(above)]


def _count_stops(twin: World, spec: Spec, now: int) -> int | None:
    """How many are told to stop so that it starts; 0 if it starts at once, None if it waits like everybody."""
    number = twin.next_job
    apply(twin, Accepted(number, spec), now)
    run_cycle(twin, now, "")
    job = twin.jobs[number]
    holds = bool(twin.arrays[number].holding) if spec.array else not isinstance(job.phase, Queued)
    if holds:
        return 0
    plan = plan_taking(twin, now, job) if can_anybody_take(twin) else None
    return None if plan is None else len(plan.victims)
