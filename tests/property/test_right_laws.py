"""Nobody who has a right to places waits for them: told by letting all go whom the table gives it, in a fork.

Crowds of tenants that own something or nothing, of tiers, priorities and an emergency; gangs that may or may not be
evicted. When they have come to rest, for each one who waits everybody is taken out of a fork whom it may take: if it
could start there, as work inside its guarantee or as work that borrows, it should not wait.
"""

from __future__ import annotations

import random
from unittest import mock

import pytest

from muster.kernel import kernel as door
from muster.kernel.kernel import Kernel
from muster.model.event import Cancel, Event, Exited, HoldJob, SetTier
from muster.model.instruction import Stop
from muster.model.job import Job
from muster.model.phase import ACTIVE, Queued
from muster.model.tier import Tier
from muster.policy.taking import find_right
from muster.scheduler import preemption
from muster.scheduler.rights import kin_of, party_of
from muster.scheduler.stage import Stage
from muster.testing.scene import Scene
from muster.units import HOUR_MS
from muster.world.claim_books import ClaimBooks
from muster.world.loans import Loans
from muster.world.quota import Standing
from muster.world.runs import FUNDS, GONE, JOB, ROW, STATE
from muster.world.world import World

TIERS = ("standard", "standard", "critical", "opportunistic")
FOR_EVER, SETTLED_H = 100_000, 30


def crowd(seed: int) -> Scene:
    """Owners, one of them with little of its own, and somebody who owns nothing; more work than room."""
    dice = random.Random(f"{seed}/rights")
    scene = Scene(seed, inspect_every=1000).cluster(nodes=dice.randrange(1, 4), gpus=8)
    total = 8 * len(scene.body.world.fleet)
    first = dice.randrange(total + 1)
    scene.share("a", first).share("b", dice.randrange(total - first + 1))
    scene.send(SetTier("alarm", Tier(50, HOUR_MS, emergency=True)))
    for number in range(dice.randrange(8, 22)):
        scene.job(
            f"j{number}",
            gpus=dice.choice((1, 2, 4, 8)),
            gang=dice.choice((1, 1, 1, 2)),
            tenant=dice.choice(("a", "a", "b", "guest")),
            tier="alarm" if dice.random() < 0.05 else dice.choice(TIERS),
            priority=dice.choice((0, 0, 5)),
            evictable=dice.random() < 0.9,
            grace_ms=1000 * dice.randrange(1, 90),
            minutes=FOR_EVER,
        )
        if dice.random() < 0.5:
            scene.advance(seconds=dice.randrange(60))
    return scene.advance(hours=SETTLED_H)


def find_borrowers(world: World, now: int) -> set[int]:
    with Stage(world, now) as stage:
        runs = world.know_runs()
        Loans(world.quotas, world.ledger, runs, world.sites.all, *stage.spread())
        rows = runs.rows()
        places = range(0, runs.used * ROW, ROW)
        return {int(rows[at + JOB]) for at in places if rows[at + STATE] != GONE and rows[at + FUNDS]}


def find_takable(world: World, job: Job, standing: Standing, borrowers: set[int]) -> list[Job]:
    """All whom the table gives a job that would stand so."""
    claimant = party_of(world, (job.spec.tier, job.spec.priority), standing)
    found = []
    for each in world.jobs.values():
        if isinstance(each.phase, ACTIVE) and each.spec.evictable:
            spec, borrows = each.spec, each.id in borrowers
            victim = party_of(world, (spec.tier, spec.priority), Standing.BORROWING if borrows else Standing.INSIDE)
            kin = kin_of(job.spec.tenant, world.ledger.chain(spec.tenant))
            if find_right(claimant, victim, kin, owed=borrows) is not None:
                found.append(each)
    return found


def could_start(world: World, job: Job, standing: Standing, gone: list[Job], now: int) -> bool:
    """Whether a job would start, and stand so, if some were gone and nobody else waited."""
    fork = world.fork()
    kernel = Kernel(fork)
    waiting = [each.id for each in fork.jobs.values() if isinstance(each.phase, Queued) and each.id != job.id]
    with mock.patch.multiple(door, run_cycle=lambda *_, **__: [], plan_takings=lambda *_: []):
        kernel.handle([HoldJob(number) for number in waiting], now)
        stops = kernel.handle([Cancel(each.id) for each in gone], now).instructions
        exits: list[Event] = [
            Exited(item.job, item.epoch, 143, item.first, item.count) for item in stops if isinstance(item, Stop)
        ]
        kernel.handle(exits, now)
    spec = job.spec
    sites = fork.sites.inhabited(spec.ask)
    if all(fork.quotas.standing(spec.tenant, site, spec.ask, spec.places) > standing for site in sites):
        return False
    fork.queue.wake_all()
    kernel.handle([], now + 1)
    return isinstance(fork.jobs[job.id].phase, ACTIVE)


def check_rights(seed: int) -> int:
    """Nobody waits who could have started by its right; says how many waited."""
    scene = crowd(seed)
    world, now = scene.body.world, scene.body.world.now + SETTLED_H * HOUR_MS
    borrowers = find_borrowers(world, now)
    waiting = [job for job in world.jobs.values() if isinstance(job.phase, Queued) and job.id not in world.claims]
    for job in waiting:
        for standing in (Standing.INSIDE, Standing.BORROWING):
            if standing == Standing.INSIDE or (job.spec.evictable and world.quotas.has_owners()):
                gone = find_takable(world, job, standing, borrowers)
                assert not (gone and could_start(world, job, standing, gone, now)), f"seed {seed}: {job}"
    return len(waiting)


@pytest.fixture(autouse=True)
def _nobody_backs_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption, "may_take", lambda *_: True)
    monkeypatch.setattr(ClaimBooks, "check_backing_off", lambda *_: None)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_nobody_waits_who_has_a_right(first: int) -> None:
    assert sum(check_rights(seed) for seed in range(first, first + 20)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1500, 100))
def test_nobody_of_many_waits_who_has_a_right(first: int) -> None:
    assert sum(check_rights(seed) for seed in range(first, first + 100)) > 100
