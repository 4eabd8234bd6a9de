"""Laws of rest: while nobody comes, ends or fails, every plan raises the potential, so that places come to rest.

Crowds of owners, borrowers, tiers, priorities and emergencies, of gangs, elastic or not, and arrays, with exits at
different times; and nobody backs off in them, so that nothing comes to rest only because it tries more and more rarely.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from unittest import mock

import pytest

from muster.model.event import SetTenant, SetTier
from muster.model.tenant import CPU, GPU, Line, Tenant, gpu_amount
from muster.model.tier import Tier
from muster.scheduler.taking import preemption
from muster.testing.potential import Watch
from muster.testing.scene import Scene
from muster.units import HOUR_MS
from muster.world.audit.claim import ClaimBooks

TIERS = ("standard", "standard", "critical", "opportunistic")
FOR_EVER = 100_000
SETTLED_H, QUIET_H = 24, 24
"""After so long nobody is stopped for others any more; looked at for so long."""


@pytest.fixture(autouse=True)
def _nobody_backs_off() -> Iterator[None]:
    with (
        mock.patch.object(preemption, "may_take", return_value=True),
        mock.patch.object(ClaimBooks, "check_backing_off", return_value=None),
    ):
        yield


def crowd(seed: int, inspect_every: int) -> Scene:
    """A full fleet, and more work than room; a few of its jobs end sooner or later."""
    dice = random.Random(f"{seed}/crowd")
    scene = Scene(seed, inspect_every=inspect_every).cluster(nodes=dice.randrange(1, 4), gpus=8)
    if dice.random() < 0.2:
        scene.cluster(nodes=1, gpus=8, name="east")
    total = 8 * len(scene.body.world.fleet)
    first = dice.randrange(total + 1)
    scene.share("org", first, lend=dice.choice((None, None, None, first // 2)))
    scene.share("a", dice.randrange(first + 1), parent="org")
    lines = [Line(GPU, limit=gpu_amount(dice.randrange(4, total + 8)), guaranteed=gpu_amount(min(4, total - first)))]
    if dice.random() < 0.2:
        lines.append(Line(CPU, guaranteed=dice.randrange(1, 8) * 1000))
    scene.send(SetTenant("b", Tenant(lines=tuple(lines))))
    scene.send(SetTier("alarm", Tier(50, HOUR_MS, emergency=True)))
    for number in range(dice.randrange(6, 18)):
        submit(scene, dice, f"j{number}")
        if dice.random() < 0.3:
            scene.advance(seconds=dice.randrange(60))
    return scene


def submit(scene: Scene, dice: random.Random, name: str) -> None:
    kind = dice.choices(("gang", "array", "elastic"), (4, 3, 3))[0]
    gang = 1 if kind == "array" else dice.choice((1, 1, 2))
    scene.job(
        name,
        gpus=dice.choice((1, 2, 4, 8) if kind == "gang" else (1, 2)),
        array=dice.randrange(1, 9) if kind == "array" else 0,
        gang=gang,
        gang_most=gang + dice.randrange(1, 8) if kind == "elastic" else 0,
        in_place=kind == "elastic" and dice.random() < 0.5,
        tenant=dice.choice(("org", "a", "b", "guest")),
        tier="alarm" if dice.random() < 0.06 else dice.choice(TIERS),
        priority=dice.choice((0, 0, 0, 5)),
        evictable=dice.random() < 0.85,
        grace_ms=1000 * dice.randrange(1, 90),
        minutes=dice.randrange(1, 30) if dice.random() < 0.15 else FOR_EVER,
    )


def check_rest(seed: int, inspect_every: int = 1) -> None:
    """Places come to rest, and on the way the potential only grows."""
    scene = crowd(seed, inspect_every)
    watch = Watch(scene.body)
    scene.advance(hours=SETTLED_H)
    watch.taken.clear()
    scene.advance(hours=QUIET_H)
    assert not watch.taken, f"seed {seed}\n{scene.story()[-4000:]}"


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (8, 16))])
def test_places_come_to_rest_and_the_potential_only_grows(first: int) -> None:
    for seed in range(first, first + 8):
        check_rest(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 100))
def test_none_of_a_thousand_crowds_goes_round_in_a_circle(first: int) -> None:
    for seed in range(first, first + 100):
        check_rest(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(10_000, 20_000, 500))
def test_none_of_ten_thousand_crowds_does(first: int) -> None:
    for seed in range(first, first + 500):
        check_rest(seed, inspect_every=100)
