"""Time alone is waited for only where it may let somebody take a place."""

from __future__ import annotations

from muster.policy.protection import waited_at
from muster.scheduler.chances import find_next_chance
from muster.testing.rig import Rig
from muster.units import INSTANT_MAX


def test_who_has_just_come_is_waited_for_if_its_priority_may_take_something() -> None:
    rig = Rig(nodes=1, gpus=8)
    rig.submit(8, tenant="vision")
    rig.submit(8, tenant="vision", priority=5)
    assert find_next_chance(rig.world, rig.now) == waited_at(rig.now)


def test_who_has_just_come_is_not_waited_for_if_all_have_its_priority() -> None:
    rig = Rig(nodes=1, gpus=8)
    rig.submit(8, tenant="vision")
    rig.submit(8, tenant="vision")
    rig.submit(8, tenant="speech", priority=5)  # priority compares no tenants
    assert find_next_chance(rig.world, rig.now) == INSTANT_MAX
