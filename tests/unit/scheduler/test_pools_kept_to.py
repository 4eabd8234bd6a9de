"""A search that the quota keeps to some pools finds what is there, whichever flavors come first by name."""

from __future__ import annotations

from muster.model.event import NodeSeen
from muster.model.node import Traits
from muster.model.spec import ANYWHERE
from muster.model.tenant import Line
from muster.scheduler.placing.fit import find_gang, widest_room
from muster.testing.rig import Rig
from muster.units import Resources

NODE = Resources(4, 64_000, 2**38)
ASK = Resources(2, 1000, 2**30)


def two_flavors() -> Rig:
    rig = Rig()
    rig.feed(NodeSeen("first", NODE, traits=Traits("a100")), NodeSeen("second", NODE, traits=Traits("h100")))
    return rig


def test_a_gang_is_found_on_the_later_of_two_flavors() -> None:
    fleet = two_flavors().world.fleet
    leases = find_gang(fleet, ASK, 2, ANYWHERE, (1,))
    assert leases is not None
    assert [lease.slot for lease in leases] == [1]
    assert widest_room(fleet, ASK, 2, ANYWHERE, (1,)) == 2


def test_a_tenant_without_quota_on_one_flavor_starts_its_gang_on_the_other() -> None:
    rig = two_flavors()
    rig.tenant("lab", Line("a100", limit=0))
    gang = rig.submit(2, gang=2, tenant="lab")
    assert [lease.slot for lease in rig.run(gang).leases] == [1]
