"""A stage is put away as it was found, whoever was gone on it and whoever was seated."""

from __future__ import annotations

from muster.model import event
from muster.model.job import BarKind
from muster.model.tenant import gpu_amount
from muster.scheduler.stage import Stage
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest


def crowded() -> Rig:
    """Four nodes of opportunistic work of which some was told to stop for others; one node lacks devices, and one is
    cordoned."""
    rig = Rig(nodes=4, gpus=8)
    for _ in range(8):
        rig.submit(4, tier="opportunistic")
    rig.submit(8, tier="critical")
    rig.submit(2, tier="critical", gang=2)
    rig.feed(event.NodeSeen("node-1", Resources(6, 60_000, 2**38)))
    rig.submit(4, tier="critical")
    rig.feed(event.BarNode("node-2", BarKind.CORDON, "ops"))
    assert len(rig.world.claims) > 1
    assert rig.world.know_runs().leaving
    return rig


def test_a_stage_leaves_the_world_as_it_was() -> None:
    rig = crowded()
    fleet = rig.world.fleet
    rig.exit(
        next(number for number in rig.world.know_runs().leaving if rig.run(number).leases[0].slot not in fleet.lacks)
    )
    assert fleet.lacks
    before, held = digest(rig.world), rig.world.ledger.holdings()
    words, kept = list(fleet.words), (fleet.claimed.copy(), fleet.withheld.copy())
    assert any(withheld.devices for slot, withheld in fleet.withheld.items() if slot not in fleet.lacks)
    with Stage(rig.world, rig.now) as stage:
        assert stage.has_leavers()
        assert not fleet.claimed
        rig.world.fleet.find_index_fault()
        inside = rig.world.ledger.holdings()
    assert inside != held
    assert (digest(rig.world), rig.world.ledger.holdings()) == (before, held)
    assert (list(fleet.words), (fleet.claimed, fleet.withheld)) == (words, kept)
    assert rig.world.fleet.find_index_fault() is None
    check_world(rig.world)


def test_what_is_claimed_is_charged_once_while_it_is_seated() -> None:
    rig = crowded()
    claims = rig.world.claims
    with Stage(rig.world, rig.now) as stage:
        gone = sum(rig.job(number).spec.gang * 4 for number in rig.world.know_runs().leaving if stage.is_gone(number))
        inside = rig.world.ledger.held("default", "gpu")
    outside = rig.world.ledger.held("default", "gpu")
    assert claims
    assert outside - inside == gpu_amount(gone)
