"""Claims: what was freed for somebody is theirs, and nobody else's."""

from __future__ import annotations

from muster.kernel.kernel import Kernel
from muster.model import event, fact
from muster.model.phase import Queued, Starting
from muster.testing.rig import spec
from muster.units import HOUR_MS, Resources
from muster.world.apply import apply
from muster.world.world import World


def test_a_share_is_not_served_of_a_device_that_another_claims_whole() -> None:
    """As a gang that broke does, after others had counted on what it was about to give back."""
    kernel = Kernel(World())
    kernel.handle([event.NodeSeen("node-0", Resources(8, 64_000, 2**38)), event.Submit(spec(8))], 0)
    share = spec(ask=Resources(cpu_milli=1000, gpu_milli=500))
    kernel.handle([event.Submit(share), event.Submit(spec(4, gang=2))], 1)
    apply(kernel.world, fact.Claimed(2, [0], [1], [8], HOUR_MS, "what is being given back"), 2)
    apply(kernel.world, fact.Claimed(3, [0], [2], [255], HOUR_MS, "what is left of it"), 2)
    kernel.handle([event.Exited(1, 1, 0)], 3)
    assert isinstance(kernel.world.jobs[2].phase, Queued)
    assert isinstance(kernel.world.jobs[3].phase, Starting)
