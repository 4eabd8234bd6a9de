"""What many jobs ask for is in memory once."""

from __future__ import annotations

from muster.kernel.kernel import Kernel
from muster.model.event import Submit
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.equals import KINDS_MAX, Equals
from muster.world.snapshot import restore, snapshot
from muster.world.world import World


def said(cpu: int, near: str = "") -> Spec:
    """A spec as it was decoded: nothing of it is anybody else's."""
    return Spec(("true",), tenant="".join(("vis", "ion")), ask=Resources(1, cpu), needs=Needs(near=near))


def are_one(world: World) -> bool:
    """Whether jobs that ask for the same share it."""
    one, other = (world.jobs[number].spec for number in (1, 2))
    return one.ask is other.ask and one.needs is other.needs and one.tenant is other.tenant


def test_jobs_that_ask_for_the_same_share_it_also_in_a_restored_world() -> None:
    kernel = Kernel(Rig(nodes=1).world)
    kernel.handle([Submit(said(1000, "rack")), Submit(said(1000, "rack"))], 1)
    assert are_one(kernel.world)
    assert are_one(restore(snapshot(kernel.world)))


def test_who_needs_nothing_needs_what_everybody_needs() -> None:
    assert Equals().share(said(1000)).needs is ANYWHERE


def test_a_spec_says_the_same_whether_others_are_known_or_too_many() -> None:
    equals = Equals()
    for cpu in range(KINDS_MAX + 2):
        assert equals.share(said(cpu)) == said(cpu)
    assert equals.share(said(0)) == said(0)
