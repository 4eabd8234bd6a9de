"""Where a job stands: the order that a cycle would take if everybody fitted, told without running it."""

from __future__ import annotations

import random

import pytest

from muster.kernel.kernel import Kernel
from muster.model import event, fact
from muster.scheduler.position import AHEAD_SHOWN, find_position
from muster.testing.rig import Rig
from muster.units import DAY_MS, HOUR_MS, Resources

TIERS = ("standard", "standard", "standard", "critical", "opportunistic")


def crowd(seed: int) -> Rig:
    """A full node, jobs that ran on it for some hours, and a crowd that waits; some of it is due."""
    dice = random.Random(seed)
    rig = Rig(nodes=1, gpus=8)
    for name in "abc":
        job = rig.submit(dice.randrange(1, 9), tenant=name)
        rig.feed(after_ms=dice.randrange(5 * HOUR_MS))
        rig.exit(job)
    rig.submit(8, tenant="blocker")
    for _ in range(40):
        rig.submit(
            dice.randrange(1, 5),
            tenant=dice.choice("abcd"),
            gang=1,
            tier=dice.choice(TIERS),
            priority=dice.choice((0, 0, 5, -5)),
            limit_ms=dice.choice((None, None, 9 * HOUR_MS)) if seed % 2 else None,
        )
        rig.feed(after_ms=dice.choice((0, 0, HOUR_MS, DAY_MS // 4)))
    return rig


@pytest.mark.parametrize("seed", range(12))
def test_positions_are_the_order_in_which_everybody_would_start(seed: int) -> None:
    rig = crowd(seed)
    waiting = rig.world.queue.waiting()
    places = {number: find_position(rig.world, rig.job(number)) for number in waiting}
    kernel = Kernel(rig.world.fork())
    room = [event.NodeSeen(f"more-{number}", Resources(8, 64_000, 2**38)) for number in range(40)]
    (placed,) = [item for item in kernel.handle(room, rig.world.now).facts if isinstance(item, fact.Placed)]
    assert sorted(placed.jobs) == waiting
    for index, number in enumerate(placed.jobs):
        found = places[number]
        assert found is not None
        assert (found.place, found.ahead) == (index + 1, placed.jobs[:index][:AHEAD_SHOWN])
        assert found.ahead_total.gpus == sum(rig.job(other).spec.ask.gpus for other in placed.jobs[:index])


def test_who_does_not_wait_stands_nowhere() -> None:
    rig = Rig(nodes=1)
    assert find_position(rig.world, rig.job(rig.submit())) is None


def test_asking_changes_nothing() -> None:
    rig = crowd(3)
    before = [find_position(rig.world, rig.job(number)) for number in rig.world.queue.waiting()]
    assert [find_position(rig.world, rig.job(number)) for number in rig.world.queue.waiting()] == before
