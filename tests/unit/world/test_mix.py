"""The mix: tasks of live jobs by size, kept while it is weighed, the same however the world came to be."""

from __future__ import annotations

from muster.model import event
from muster.model.profile import Profile
from muster.scheduler.placing.fit import find_gang
from muster.testing.rig import Rig, spec
from muster.units import Resources
from muster.world.fleet import Fleet
from muster.world.mix import Mix
from muster.world.snapshot import restore, snapshot


def counts(rig: Rig) -> list[dict[int, int] | None]:
    """Of the living world, of a restored one and of a fork."""
    worlds = (rig.world, restore(snapshot(rig.world)), rig.world.fork())
    return [None if world.mix is None else world.mix.counts for world in worlds]


def test_it_is_kept_only_while_the_profile_in_use_weighs_it() -> None:
    rig = Rig(nodes=2)
    rig.feed(event.Submit(spec(ask=Resources(4), gang=2)), event.Submit(spec(ask=Resources(1))))
    assert counts(rig) == [None] * 3
    rig.feed(event.SetProfile("fit", Profile(fitting=1)), event.UseProfile("fit"))
    assert counts(rig) == [{4: 2}] * 3
    rig.feed(event.Submit(spec(ask=Resources(4), array=5)), event.Submit(spec(ask=Resources(8), gang=2)))
    assert counts(rig) == [{4: 7, 8: 2}] * 3
    rig.feed(event.Cancel(4))
    assert counts(rig) == [{4: 7}] * 3
    rig.feed(event.SetProfile("fit", Profile()))
    assert counts(rig) == [None] * 3


def test_scores_see_it_in_powers_of_two() -> None:
    mix = Mix()
    for size, tasks in ((8, 1000), (2, 1), (4, 7)):
        mix.add(spec(ask=Resources(size), gang=tasks), 1)
    assert mix.steps() == ((2, 1), (4, 4), (8, 512))
    mix.add(spec(ask=Resources(2)), -1)
    assert mix.steps() == ((4, 4), (8, 512))


def test_a_task_goes_where_it_strands_the_least_for_the_others() -> None:
    """One has 2 devices free and one has 5. Best fit would break the pair; if pairs are asked for, the odd one goes."""
    fleet = Fleet()
    for slot in range(2):
        fleet.join(slot, f"n{slot}", Resources(8, 64_000, 2**36))
    fleet.occupy(0, 1, Resources(6), 1, 0b111111)
    fleet.occupy(1, 1, Resources(3), 1, 0b111)
    chosen = []
    fleet.weigh(Profile(packing=100, fitting=1000))
    for mix in ((), ((2, 1),), ()):
        fleet.mix = mix
        found = find_gang(fleet, Resources(1, 1000, 1), 1)
        chosen.append(found and found[0].slot)
    assert chosen == [0, 1, 0]
