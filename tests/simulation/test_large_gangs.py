"""A large gang under a load of small jobs that never ends: with a shadow it starts in time, and little is left idle."""

from __future__ import annotations

import random
from typing import NamedTuple

from muster.kernel.kernel import Kernel
from muster.model import event, fact
from muster.model.phase import ACTIVE
from muster.model.tier import Tier
from muster.testing.rig import spec
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.world import World

NODES = 32
GANG = 24
SPAN_MS = 2 * DAY_MS
WAIT_MS = 2 * HOUR_MS
LIMIT_MS = 2 * HOUR_MS
"""The longest limit of a small job: so long it may take until enough of them have ended."""
GANGS_EVERY_MS = 12 * HOUR_MS


class Figures(NamedTuple):
    """Per cent of the GPU time that was held, and how long each gang waited; those that never started are left out."""

    busy_pct: float
    waits_ms: list[int]


def run(shadows: int, seed: int = 1) -> Figures:
    """Two nodes' worth of small jobs wait at every moment, and a gang of three quarters of the fleet comes now and
    then. Jobs run for half to all of their limit."""
    dice = random.Random(seed)
    kernel = Kernel(World())
    kernel.handle([event.NodeSeen(f"node-{number:02}", Resources(8, 64_000, 2**38)) for number in range(NODES)], 0)
    kernel.handle([event.SetTier("standard", Tier(200, WAIT_MS, shadows))], 0)
    agenda: list[tuple[int, int]] = []  # when a job ends, or 0 for a gang that comes
    agenda += [(at, 0) for at in range(HOUR_MS, SPAN_MS, GANGS_EVERY_MS)]
    held = now = 0
    waits: list[int] = []
    while now < SPAN_MS:
        world = kernel.world
        small = sum(job.spec.gang == 1 for job in map(world.jobs.__getitem__, world.queue.waiting()))
        batch: list[event.Event] = [small_job(dice) for _ in range(24 - small)]
        agenda.sort()
        since, (now, job) = now, agenda.pop(0)
        held += sum(size(world, job) for job in world.jobs) * (now - since)
        batch.append(event.Exited(job, 1, 0, 0, world.jobs[job].spec.gang) if job else gang())
        for item in kernel.handle(batch, now).facts:
            for started in item.jobs if isinstance(item, fact.Placed) else ():
                asked = world.jobs[started].spec
                agenda.append((now + int((asked.limit_ms or 0) * dice.uniform(0.5, 1)), started))
                if asked.gang > 1:
                    waits.append(now - world.jobs[started].accepted_at)
    return Figures(100 * held / (NODES * 8 * now), waits)


def size(world: World, job: int) -> int:
    asked = world.jobs[job].spec
    return asked.gang * asked.ask.gpus if isinstance(world.jobs[job].phase, ACTIVE) else 0


def small_job(dice: random.Random) -> event.Submit:
    limit = dice.choice((10, 20, 30, 60, 120)) * MINUTE_MS
    return event.Submit(spec(dice.choice((1, 2, 4, 8)), limit_ms=limit))


def gang() -> event.Submit:
    return event.Submit(spec(8, gang=GANG, limit_ms=2 * HOUR_MS))


def test_a_large_gang_starts_within_its_bound_and_little_is_left_idle() -> None:
    """It starts as soon as it is due and all that ran when it became so has ended: limits are kept here."""
    without, with_one = run(0), run(1)
    assert without.waits_ms == []
    assert len(with_one.waits_ms) == 4
    assert max(with_one.waits_ms) <= WAIT_MS + LIMIT_MS
    assert with_one.busy_pct >= without.busy_pct - 3
