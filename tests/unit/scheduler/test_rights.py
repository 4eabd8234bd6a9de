"""Who borrows is a question of now: what a look once found out is not kept beyond it."""

from __future__ import annotations

from muster.model.fact import StopAsked
from muster.model.tenant import GPU, Line, gpu_amount
from muster.testing.rig import Rig
from muster.world.snapshot import restore, snapshot


def test_nobody_borrows_any_more_once_the_last_guarantee_is_gone() -> None:
    rig = Rig(nodes=1, gpus=8)
    rig.tenant("vision", Line(GPU, guaranteed=gpu_amount(8)))
    borrower = rig.submit(8, tenant="speech", tier="opportunistic")
    rig.submit(8, tenant="robots", tier="opportunistic")  # it looks, and sees that speech borrows
    rig.tenant("vision")
    rig.submit(8, tenant="maps", tier="critical")
    assert not [item for outcome in rig.outcomes for item in outcome.facts if isinstance(item, StopAsked)]
    assert rig.phase(borrower) != "Stopping"


def test_who_has_more_than_it_needs_is_known_after_a_restore() -> None:
    rig = Rig(nodes=1, gpus=8)
    wide = rig.submit(2, gang=1, gang_most=3)
    rig.submit(2)
    assert list(rig.world.widths.wide) == [wide]
    assert list(restore(snapshot(rig.world)).widths.wide) == [wide]
