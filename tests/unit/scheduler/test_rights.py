"""Who borrows is a question of now: what a look once found out is not kept beyond it."""

from __future__ import annotations

import pytest

from muster.model.fact import StopAsked
from muster.model.tenant import GPU, Line, gpu_amount
from muster.scheduler.taking import preemption
from muster.scheduler.taking.victims import Want
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


def test_nobody_is_looked_at_one_by_one_for_whom_the_quota_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own array may not be taken, so its guarantee stays used up, whoever else went."""
    looked: list[Want] = []
    monkeypatch.setattr(preemption, "choose", lambda _stage, _fleet, want, *_: looked.append(want))
    rig = Rig(nodes=2, gpus=8)
    rig.tenant("vision", Line(GPU, guaranteed=gpu_amount(8)))
    rig.submit(1, array=8, tenant="vision")
    rig.submit(8, tenant="speech", tier="opportunistic")
    rig.submit(8, tenant="vision", evictable=False)  # it may not borrow
    assert not looked
    rig.submit(8, tenant="vision", evictable=False, tier="critical")  # this one may take its own
    assert looked
