"""Who is whose kin is counted once for a tree as it is: another tree, or somebody new in it, is counted anew."""

from __future__ import annotations

from muster.model.tenant import Tenant
from muster.policy.taking import Kin
from muster.scheduler.taking.kinship import ANYBODY, Kinship, kinship_of
from muster.testing.rig import Rig


def _look(rig: Rig) -> Kinship:
    """As a look does it: first it is written who runs."""
    rig.world.know_runs().rows()
    return kinship_of(rig.world)


def test_it_is_counted_once_for_a_tree_as_it_is() -> None:
    rig = Rig(nodes=1, gpus=8)
    rig.submit(1, tenant="vision")
    assert _look(rig) is _look(rig)


def test_whoever_moves_below_somebody_is_its_kin_from_then_on() -> None:
    rig = Rig(nodes=1, gpus=8)
    rig.submit(1, tenant="vision")
    assert _look(rig).find("lab", is_any=False).tolist() == [Kin.OTHER]
    rig.world.set_tenant("lab", Tenant())
    rig.world.set_tenant("vision", Tenant(parent="lab"))
    assert _look(rig).find("lab", is_any=False).tolist() == [Kin.BELOW]
    assert _look(rig).find("lab", is_any=True).tolist() == [Kin.SAME]


def test_whoever_comes_is_counted_too() -> None:
    rig = Rig(nodes=1, gpus=8)
    rig.submit(1, tenant="vision")
    _look(rig)
    rig.submit(1, tenant="speech")
    assert _look(rig).find("speech", is_any=False).tolist() == [Kin.OTHER, Kin.SAME]
    assert _look(rig).find(ANYBODY, is_any=True).tolist() == [Kin.SAME, Kin.SAME]
