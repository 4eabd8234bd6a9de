"""Runs are moved so that somebody fits who lacks nothing but a place: when it is worth it, and never otherwise."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from muster.model.errors import InvariantError
from muster.model.event import Exited, Progressed, SetFlavor, SetTier, Submit
from muster.model.fact import Fact, MovesPlanned
from muster.model.group import Group
from muster.model.job import Job
from muster.model.node import Flavor
from muster.model.partition import Partition, devices_in
from muster.model.phase import Running, TaskPhase
from muster.model.ranges import ranges_of
from muster.model.reason import Code, Refused
from muster.model.sharing import Sharing
from muster.model.spec import Needs, Spec
from muster.model.tier import Tier
from muster.testing.planted import PLANTED
from muster.testing.rig import Rig
from muster.testing.scene import Scene
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.laws.invariants import check_world
from muster.world.widths import leases_of, spares_of

LONG: dict[str, Any] = {"minutes": 600, "limit_ms": 10 * HOUR_MS}
"""Somebody who will not be gone by itself while anybody looks."""


class Watched(Scene):
    """A scene that remembers its plans."""

    def __init__(self, **tier: Any) -> None:
        super().__init__()
        self.plans: list[MovesPlanned] = []
        self.body.observers.append(lambda outcome, _: self._note(outcome.facts))
        self.send(SetTier("standard", Tier(200, DAY_MS, **{"moves_max": 2, **tier})))

    def _note(self, facts: list[Fact]) -> None:
        self.plans += [item for item in facts if isinstance(item, MovesPlanned)]

    def get_job(self, name: str) -> Job:
        job = self.find_job(name)
        assert job is not None
        return job

    def devices_of(self, name: str) -> list[tuple[int, int]]:
        """Where a job is: node and devices."""
        job = self.find_job(name)
        assert job is not None
        assert isinstance(job.phase, Running)
        return [(lease.slot, devices_in(lease.devices)) for lease in job.phase.run.leases]


def scattered(**tier: Any) -> Watched:
    """Two nodes of eight, on each half is taken: 8 are free, and nobody finds them together.

    node-0  a a a a . . . .        node-1  b b b b . . . .
    """
    scene = Watched(**tier)
    scene.cluster(nodes=2, gpus=8).job("a", gpus=4, **LONG).job("brief", gpus=4, minutes=1).job("b", gpus=4, **LONG)
    scene.run().advance(minutes=2)
    return scene


def test_one_is_moved_and_the_other_fits() -> None:
    scene = scattered()
    scene.job("wide", gpus=8, **LONG).expect(stopping="a", reason={"wide": Code.MOVED_FOR})
    scene.advance(minutes=1).expect(running=["a", "b", "wide"], on={"a": "node-1", "wide": "node-0"})
    (plan,) = scene.plans
    assert (plan.job, plan.moved, plan.off, plan.to) == (scene.number("wide"), [scene.number("a")], [0], [1])
    ran_ms = 2 * MINUTE_MS - 2040  # as of the full minute: it was up two seconds after the beginning
    assert plan.cost == 4000 * (ran_ms + 10_000 + MINUTE_MS)
    assert plan.gain == 8000 * (4 * HOUR_MS - 10_000)


def test_who_is_due_and_over_its_quota_keeps_nobody_from_being_helped() -> None:
    """It was found to be so while a whole node was free. Now none is, and a restored world has not tried it."""
    scene = Watched().send(SetTier("hasty", Tier(150, MINUTE_MS))).cluster(nodes=3, gpus=8).tenant("lab", gpus=8)
    for name in ("lab-1", "lab-2"):
        scene.job(name, gpus=8, tenant="lab", tier="hasty", **LONG)
    scene.expect(waiting="lab-2", reason={"lab-2": Code.OVER_QUOTA})
    scene.job("a", gpus=4, **LONG).job("brief", gpus=4, minutes=1).job("b", gpus=4, **LONG).run().advance(minutes=2)
    scene.job("wide", gpus=8, **LONG).expect(stopping="a", reason={"wide": Code.MOVED_FOR})


def test_whoever_moves_takes_its_spares_along() -> None:
    """Two ranks on one node and their spare on another; `b` and `c` are in a tier that allows no moves.

    node-0  a a a a . . . .        node-1  s s b b b b . .        node-2  c c c c . . . .
    """
    scene = Watched()
    scene.cluster(nodes=3, gpus=8).job("a", gpus=2, gang=2, spares=1, **LONG).run()
    scene.job("brief", gpus=4, minutes=1).job("b", gpus=4, tier="critical", **LONG).run()
    scene.job("c", gpus=4, tier="critical", **LONG).run().advance(minutes=2)
    assert [(lease.slot, lease.tasks) for lease in leases_of(scene.get_job("a"))] == [(0, 2)]
    assert [(lease.slot, lease.tasks) for lease in spares_of(scene.get_job("a"))] == [(1, 1)]
    scene.job("wide", gpus=8, **LONG).expect(stopping="a", reason={"wide": Code.MOVED_FOR})
    scene.advance(minutes=1).expect(running=["a", "b", "c", "wide"], on={"wide": "node-0"})
    (plan,) = scene.plans
    assert plan.moved == [scene.number("a")]
    assert [(lease.slot, lease.tasks) for lease in leases_of(scene.get_job("a"))] == [(1, 2)], (
        "where its spare was, too"
    )
    assert [(lease.slot, lease.tasks) for lease in spares_of(scene.get_job("a"))] == [(2, 1)]


def groups(*sizes: tuple[int, int], cpus: int = 4) -> dict[str, Any]:
    """Workers, so many with so many GPUs each, and a driver on some cores."""
    parts = [Group(f"work-{at}", tasks, Resources(gpus, 1000, 2**30)) for at, (tasks, gpus) in enumerate(sizes)]
    named = (Group("driver", 1, Resources(0, 1000 * cpus, 2**30)), *parts)
    gang = sum(group.tasks for group in named)
    return {"ask": Resources(cpu_milli=1000), "gang": gang, "needs": Needs(groups=named)}


def teamed(**tier: Any) -> Watched:
    """A driver and two pairs of workers on one node; `b` is in a tier that allows no moves.

    node-0  t t t t . . . .        node-1  b b b b . . . .
    """
    scene = Watched(**tier)
    scene.cluster(nodes=2, gpus=8).job("team", **groups((1, 2), (2, 1)), **LONG).job("brief", gpus=4, minutes=1)
    scene.job("b", gpus=4, tier="critical", **LONG).run().advance(minutes=2)
    return scene


def test_a_gang_of_several_groups_is_moved_whole() -> None:
    scene = teamed()
    before = scene.get_job("team")
    scene.job("wide", gpus=8, **LONG).expect(stopping="team", reason={"wide": Code.MOVED_FOR})
    scene.advance(minutes=1).expect(running=["team", "b", "wide"], on={"team": "node-1", "wide": "node-0"})
    (plan,) = scene.plans
    assert (plan.moved, plan.off, plan.to) == ([scene.number("team")], [0], [1])
    assert plan.cost == 4000 * (2 * MINUTE_MS - 2040 + 10_000 + MINUTE_MS), (
        "of all groups, and the driver has no device"
    )
    team = scene.get_job("team")
    assert isinstance(before.phase, Running)
    assert isinstance(team.phase, Running)
    assert (team.phase.run.ticket, team.phase.run.epoch) == (before.phase.run.ticket, before.phase.run.epoch + 1)
    assert [lease.tasks for lease in leases_of(team)] == [1, 1, 2], "rank by rank, in the order of the groups"


def test_a_gang_of_several_groups_is_helped_to_all_of_them() -> None:
    """Four nodes of eight, on each half is taken: for eight and for six together, two of them have to be emptied."""
    scene = Watched()
    scene.cluster(nodes=4, gpus=8)
    for name in "abcd":
        scene.job(name, gpus=4, **LONG).job(f"brief-{name}", gpus=4, minutes=2).run()
    scene.advance(minutes=4)
    scene.job("team", **groups((1, 6), (1, 8)), **LONG).expect(reason={"team": Code.MOVED_FOR})
    scene.advance(minutes=1).expect(running=[*"abcd", "team"])
    (plan,) = scene.plans
    assert (plan.job, len(plan.moved), plan.asks_milli) == (scene.number("team"), 2, 14_000)
    assert plan.gain == 14_000 * (4 * HOUR_MS - 10_000)
    driver, six, eight = leases_of(scene.get_job("team"))
    assert (devices_in(six.devices).bit_count(), devices_in(eight.devices).bit_count()) == (6, 8)
    assert not driver.devices


def test_a_group_without_devices_is_helped_to_its_cores() -> None:
    """All devices that the workers want are free, and no node has the cores for the driver: `a` and `b` have half."""
    scene = Watched()
    scene.cluster(nodes=2, gpus=8, cpus=16)
    for name in "ab":
        scene.job(name, ask=Resources(2, 7000, 2**30), **LONG).job(f"brief-{name}", gpus=6, minutes=2).run()
    scene.advance(minutes=4)
    scene.job("team", **groups((1, 2), cpus=12), **LONG).advance(minutes=2).expect(running=["a", "b", "team"])
    (plan,) = scene.plans
    assert len(plan.moved) == 1


def test_a_gang_on_two_sites_stays_on_both() -> None:
    """Both of its tasks would fit on the node of either cluster, and what it has would count elsewhere then."""
    scene = Watched()
    scene.cluster(nodes=1, gpus=8, name="east").cluster(nodes=1, gpus=8)
    scene.job("brief", gpus=5, minutes=1).job("also", gpus=5, minutes=1)
    scene.job("pair", gpus=3, gang=2, needs=Needs(within="fleet"), **LONG).run().advance(minutes=2)
    assert [lease.slot for lease in leases_of(scene.get_job("pair"))] == [1, 0]
    scene.job("wide", gpus=8, **LONG).advance(minutes=3).expect(running="pair", waiting="wide")
    assert not scene.plans


def test_a_driver_is_in_the_way_if_it_has_the_cores() -> None:
    """A worker on one node, its driver on most cores of the next one, where all devices are free. There is room for a
    driver on the last node, where `c` has all devices: so the team goes, and all of it is elsewhere then."""
    scene = Watched()
    worker, driver = Group("work", 1, Resources(8, 16_000, 2**30)), Group("driver", 1, Resources(0, 56_000, 2**30))
    scene.cluster(nodes=3, gpus=8)
    scene.job("team", ask=Resources(cpu_milli=1000), gang=2, needs=Needs(groups=(worker, driver)), **LONG).run()
    scene.job("brief", gpus=8, minutes=1).job("c", gpus=8, tier="critical", **LONG).run().advance(minutes=2)
    assert [lease.slot for lease in leases_of(scene.get_job("team"))] == [0, 1]
    scene.expect(on={"c": "node-2"})
    scene.job("wide", ask=Resources(8, 16_000, 2**30), **LONG).advance(minutes=2)
    scene.expect(running=["team", "c", "wide"], on={"wide": "node-0"})
    assert [lease.slot for lease in leases_of(scene.get_job("team"))] == [1, 2]


def test_who_waits_for_places_with_spares_is_helped_to_all_of_them() -> None:
    """Six nodes of eight, on each half is taken: a gang of two whole nodes and a spare needs three of them empty."""
    scene = Watched()
    scene.cluster(nodes=6, gpus=8)
    for name in "abcdef":
        scene.job(name, gpus=4, **LONG).job(f"brief-{name}", gpus=4, minutes=2).run()
    scene.advance(minutes=4)
    scene.job("wide", gpus=8, gang=2, spares=1, **LONG).advance(minutes=3).expect(running=[*"abcdef", "wide"])
    (plan,) = scene.plans
    assert len(plan.moved) == 3
    assert plan.asks_milli == 16_000, "what it works on"
    wide = scene.get_job("wide")
    where = [lease.slot for lease in (*leases_of(wide), *spares_of(wide))]
    assert len(where) == len(set(where)) == 3


def test_off_unless_the_tier_says_so() -> None:
    scene = scattered(moves_max=0)
    scene.job("wide", gpus=8, **LONG).advance(hours=2).expect(running=["a", "b"], waiting="wide")
    assert not scene.plans


def test_whoever_has_run_for_long_without_a_checkpoint_stays() -> None:
    scene = scattered()
    scene.advance(hours=5)
    scene.job("wide", gpus=8, minutes=60, limit_ms=HOUR_MS).advance(minutes=5).expect(waiting="wide")
    scene.send(Progressed(scene.number("b"), 1, step=7, checkpointed=True)).advance(minutes=2)
    scene.expect(running=["a", "b", "wide"], on={"b": "node-0"})


def test_nobody_is_moved_for_what_opens_soon() -> None:
    scene = scattered()
    scene.job("fill", gpus=4, minutes=6, limit_ms=8 * MINUTE_MS).job("more", gpus=4, **LONG).run()
    scene.cancel("b").run().job("wide", gpus=8, minutes=600).advance(minutes=4).expect(waiting="wide")
    assert not scene.plans


def test_what_may_not_be_evicted_and_who_has_just_begun_stay() -> None:
    firm = Watched()
    firm.cluster(nodes=2, gpus=8).share("default", gpus=16)
    for name in ("a", "brief", "b"):
        firm.job(name, gpus=4, evictable=False, **({"minutes": 1} if name == "brief" else LONG))
    firm.run().advance(minutes=2).job("wide", gpus=8, **LONG).advance(minutes=5).expect(waiting="wide")
    young = scattered(min_run_ms=HOUR_MS)
    young.job("wide", gpus=8, **LONG).advance(minutes=30).expect(waiting="wide")
    young.send(Progressed(young.number("a"), 1, step=1, checkpointed=True)).advance(minutes=35)
    young.expect(running=["a", "b", "wide"])


def test_whoever_was_moved_rests_for_an_hour() -> None:
    scene = scattered()
    scene.share("default", gpus=16).job("wide", gpus=8, minutes=2, limit_ms=HOUR_MS).advance(minutes=5)
    scene.job("firm", gpus=4, evictable=False, **LONG).run().cancel("b").run()
    scene.job("again", gpus=8, **LONG).advance(minutes=50).expect(waiting="again", on={"a": "node-1"})
    scene.send(Progressed(scene.number("a"), 2, step=1, checkpointed=True)).advance(minutes=15)
    scene.expect(running=["a", "again", "firm"], on={"a": "node-0", "again": "node-1"})


def test_a_gang_finds_room_on_several_nodes_by_several_moves() -> None:
    scene = Watched()
    scene.cluster(nodes=4, gpus=4)
    for node in range(4):
        scene.job(f"stays-{node}", gpus=2, **LONG).job(f"goes-{node}", gpus=2, minutes=1)
    scene.run().advance(minutes=2)
    scene.job("gang", gpus=4, gang=2, **LONG).advance(minutes=2)
    scene.expect(running=["gang", *(f"stays-{node}" for node in range(4))])
    assert len(scene.plans[0].moved) == 2


def test_shares_of_devices_are_packed_so_that_whole_ones_come_free() -> None:
    scene = Watched()
    scene.cluster(nodes=1, gpus=3)
    for name in ("x", "y", "z"):
        scene.job(f"{name}-brief", ask=share(700), minutes=1)
    for name in ("x", "y", "z"):
        scene.job(name, ask=share(300), **LONG)
    scene.run().expect(on=dict.fromkeys("xyz", "node-0")).advance(minutes=2)
    scene.job("whole", gpus=2, **LONG).advance(minutes=2).expect(running=["x", "y", "z", "whole"])
    assert scene.devices_of("x") == scene.devices_of("y") == scene.devices_of("z") == [(0, 0b100)]
    assert scene.devices_of("whole") == [(0, 0b011)]


def test_partitions_are_packed_so_that_a_larger_one_fits() -> None:
    cuts = (Partition("1g", 1, (0, 1, 2, 3, 4, 5, 6)), Partition("3g", 4, (0, 4)), Partition("7g", 8, (0,)))
    scene = Watched()
    scene.send(SetFlavor("gpu", Flavor("gpu", slots=8, partitions=cuts))).cluster(nodes=1, gpus=2)
    for name in ("a", "a-brief", "b", "b-brief"):
        scene.job(name, **piece("3g"), **({"minutes": 1} if "brief" in name else LONG))
    scene.run().advance(minutes=2)
    assert [scene.devices_of(name) for name in "ab"] == [[(0, 1)], [(0, 2)]]
    scene.job("large", **piece("7g"), **LONG).advance(minutes=2).expect(running=["a", "b", "large"])
    assert scene.devices_of("a") == scene.devices_of("b")


def test_nobody_is_helped_past_one_who_is_due() -> None:
    scene = scattered()
    scene.send(SetTier("standard", Tier(200, MINUTE_MS, moves_max=2)))
    scene.job("huge", gpus=8, gang=2, **LONG).advance(minutes=3)
    scene.job("wide", gpus=8, **LONG).advance(minutes=1).expect(waiting=["huge", "wide"])
    assert not scene.plans


def test_a_tier_of_turns_moves_nobody() -> None:
    scene = Scene()
    tier = Tier(200, DAY_MS, sharing=Sharing("attained"), moves_max=1)
    (answer,) = scene.body.ask(SetTier("turns", tier)).answers
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.TURNS_NOT_MOVED


def sweeping(**tier: Any) -> Watched:
    """Two nodes of eight, on one of them an array of one device for each task. `b` is in a tier that allows no moves.

    node-0  0 1 2 3 . . . .        node-1  b b b b . . . .
    """
    scene = Watched(**tier)
    scene.cluster(nodes=2, gpus=8).job("sweep", gpus=1, array=4, **LONG).job("brief", gpus=4, minutes=1)
    scene.job("b", gpus=4, tier="critical", **LONG).run().advance(minutes=2)
    return scene


def test_tasks_of_an_array_are_moved_and_stay_who_they_are() -> None:
    scene = sweeping()
    tasks = scene.body.world.arrays[scene.number("sweep")]
    before = tasks.ticket[:]
    scene.job("wide", gpus=8, **LONG).expect(reason={"wide": Code.MOVED_FOR})
    claim = scene.body.world.claims[scene.number("sweep")]
    assert (claim.movers, claim.tickets, [lease.slot for lease in claim.leases]) == (
        (0, 1, 2, 3),
        tuple(before),
        [1] * 4,
    )
    scene.advance(minutes=1).expect(running=["sweep", "b", "wide"], on={"wide": "node-0"})
    assert (tasks.slot.tolist(), tasks.epoch.tolist(), tasks.ticket) == ([1] * 4, [2] * 4, before)
    (plan,) = scene.plans
    assert (plan.moved, plan.tasks) == ([scene.number("sweep")] * 4, [0, 1, 2, 3])
    ran_ms = 2 * MINUTE_MS - 2040
    assert plan.cost == 4 * 1000 * (ran_ms + 10_000 + MINUTE_MS)


def test_only_those_tasks_move_that_have_to() -> None:
    """Two of the five on the first node; who waits wants six.

    node-0  0 1 2 3 4 . . .        node-1  b b b b b b . .
    """
    scene = Watched()
    scene.cluster(nodes=2, gpus=8).job("sweep", gpus=1, array=5, **LONG).job("brief", gpus=3, minutes=1)
    scene.job("b", gpus=6, tier="critical", **LONG).run().advance(minutes=2)
    scene.job("wide", gpus=5, **LONG).advance(minutes=1).expect(running=["sweep", "b", "wide"])
    tasks = scene.body.world.arrays[scene.number("sweep")]
    assert sorted(tasks.slot) == [0, 0, 0, 1, 1]
    assert sorted(tasks.epoch) == [1, 1, 1, 2, 2]


def test_tasks_that_saved_lately_move_rather_than_others() -> None:
    """Who waits wants six of the eight where four run; two of those have a checkpoint of just now."""
    scene = sweeping()
    sweep = scene.advance(hours=5).number("sweep")
    scene.job("wide", gpus=6, minutes=60, limit_ms=HOUR_MS).advance(minutes=3).expect(waiting="wide")
    assert not scene.plans, "five hours of each would be lost"
    scene.send(Progressed(sweep, 1, step=7, checkpointed=True, first=1, count=1, more=[3, 1])).advance(minutes=2)
    scene.expect(running=["sweep", "b", "wide"])
    assert (scene.plans[0].moved, scene.plans[0].tasks) == ([sweep] * 2, [1, 3])
    marks = scene.body.world.arrays[sweep].marks
    assert marks is not None
    assert marks.resume.tolist() == [-1, 7, -1, 7], "and go on from there"


def test_of_an_array_that_may_have_few_at_once_the_same_tasks_go_on() -> None:
    scene = Watched()
    scene.cluster(nodes=2, gpus=8).job("sweep", gpus=1, array=9, at_most=4, **LONG).job("brief", gpus=4, minutes=1)
    scene.job("b", gpus=4, tier="critical", **LONG).run().advance(minutes=2)
    scene.job("wide", gpus=8, **LONG).advance(minutes=2).expect(on={"wide": "node-0"})
    tasks = scene.body.world.arrays[scene.number("sweep")]
    assert tasks.epoch.tolist() == [2] * 4 + [0] * 5
    assert tasks.slot.tolist() == [1] * 4 + [-1] * 5


def test_a_task_that_waits_does_not_get_the_place_of_one_that_moves() -> None:
    """The tenant is at its limit, so that the fifth one waits."""
    scene = Watched()
    scene.cluster(nodes=3, gpus=8).tenant("lab", gpus=4).job("sweep", gpus=1, array=5, tenant="lab", **LONG)
    scene.job("brief", gpus=4, minutes=1).job("b", gpus=4, tier="critical", **LONG)
    scene.job("c", gpus=8, tier="critical", **LONG).run().advance(minutes=2)
    tasks = scene.body.world.arrays[scene.number("sweep")]
    assert tasks.slot.tolist() == [0, 0, 0, 0, -1]
    scene.job("wide", gpus=8, **LONG).advance(minutes=2).expect(on={"wide": "node-0"})
    assert tasks.slot.tolist() == [1, 1, 1, 1, -1]
    assert tasks.epoch.tolist() == [2, 2, 2, 2, 0]


def test_a_task_that_was_moved_rests_and_the_others_do_not() -> None:
    scene = sweeping()
    sweep = scene.share("default", gpus=16).number("sweep")
    scene.job("first", gpus=5, minutes=2, limit_ms=HOUR_MS).advance(minutes=4)
    assert scene.body.world.arrays[sweep].moved.keys() == {0}
    scene.job("second", gpus=6, minutes=2, limit_ms=HOUR_MS).advance(minutes=4)
    assert [plan.tasks for plan in scene.plans] == [[0], [1]]


def test_tasks_are_moved_by_the_same_rules_as_gangs() -> None:
    for tier in ({"moves_max": 0}, {"min_run_ms": HOUR_MS}, {"evictions_max": 0}):
        scene = sweeping(**tier)
        scene.job("wide", gpus=8, **LONG).advance(minutes=5).expect(waiting="wide")
        assert not scene.plans


@pytest.mark.parametrize("how", ["cancel", "hold"])
def test_an_array_that_does_not_want_to_go_on_gives_its_new_places_up(how: str) -> None:
    scene = sweeping()
    scene.job("wide", gpus=8, **LONG)
    assert scene.number("sweep") in scene.body.world.claims
    getattr(scene, how)("sweep")
    assert scene.number("sweep") not in scene.body.world.claims
    scene.advance(minutes=1).expect(running=["b", "wide"])


def test_tasks_that_share_devices_are_packed_so_that_whole_ones_come_free() -> None:
    scene = Watched()
    scene.cluster(nodes=1, gpus=3)
    for name in ("x", "y", "z"):
        scene.job(f"{name}-brief", ask=share(700), minutes=1)
    scene.job("tiny", ask=share(300), array=3, **LONG).run().advance(minutes=2)
    tasks = scene.body.world.arrays[scene.number("tiny")]
    assert sorted(tasks.devices) == [1, 2, 4]
    scene.job("whole", gpus=2, **LONG).advance(minutes=2).expect(running=["tiny", "whole"])
    assert len(set(tasks.devices)) == 1


def test_of_many_tasks_those_are_moved_who_leave_the_most_for_the_least() -> None:
    """Forty nodes with a task on every device, of which many are over: more may be moved than are looked at."""
    rig, dice = Rig(40, gpus=8), random.Random(1)
    rig.feed(SetTier("standard", Tier(200, DAY_MS, moves_max=2)))
    sweep = rig.submit(1, array=320, limit_ms=100 * HOUR_MS)
    rig.start(sweep, 0, 320)
    first, count, *more = ranges_of(sorted(dice.sample(range(320), 100)))
    rig.feed(Exited(sweep, 1, 0, first, count, more=more))
    rig.feed(after_ms=2 * MINUTE_MS)
    slots = rig.world.arrays[sweep].slot[:]
    left = sorted(slots.count(slot) for slot in range(40))
    facts = rig.feed(Submit(Spec(("work",), gang=4, ask=Resources(8, 8000, 2**33), limit_ms=10 * HOUR_MS))).facts
    (plan,) = (item for item in facts if isinstance(item, MovesPlanned))
    assert len(plan.tasks) == sum(left[:4]), "those of the emptiest nodes"
    assert not set(plan.off) & set(plan.to)
    check_world(rig.world)


def tell_of_one_move() -> None:
    """It is worth it: somebody who has only just begun is moved."""
    scattered().job("wide", gpus=8, **LONG).advance(minutes=2)


def tell_of_tasks() -> None:
    """Four tasks move, all that there are."""
    sweeping().job("wide", gpus=8, **LONG).advance(minutes=2)


def spread_out() -> Watched:
    """Four nodes; the tasks of an array are on two of them, and all would find room on the others. Only they may move.

    node-0  0 1 . . . . . .   node-1  2 3 . . . . . .   node-2  b b b b . . . .   node-3  c c c c c c c .
    """
    scene = Watched()
    scene.cluster(nodes=4, gpus=8)
    for name, gpus, brief in (("p", 6, 6), ("q", 6, 6), ("b", 4, 4), ("c", 7, 1)):
        if name in "bc":
            scene.job(name, gpus=gpus, tier="critical", **LONG).run()
        scene.job(f"brief-{name}", gpus=brief, minutes=2).run()
    scene.job("sweep", gpus=1, array=4, **LONG).advance(minutes=3)
    return scene


def test_tasks_of_several_nodes_wait_for_the_last_of_them() -> None:
    scene = spread_out()
    tasks = scene.body.world.arrays[scene.number("sweep")]
    assert sorted(tasks.slot) == [0, 0, 1, 1]
    scene.job("wide", gpus=8, gang=2, **LONG).advance(minutes=2).expect(running=["sweep", "b", "c", "wide"])
    assert not {0, 1} & set(tasks.slot)
    assert tasks.epoch.tolist() == [2] * 4


def test_a_task_of_an_array_is_helped_and_the_others_wait() -> None:
    """One task at a time: what is gained is that one starts now, and not when a place opens by itself."""
    scene = scattered()
    scene.job("sweep", gpus=8, array=3, **LONG).expect(stopping="a", reason={"sweep": Code.MOVED_FOR})
    claim = scene.body.world.claims[scene.number("sweep")]
    assert (claim.width, claim.leases[0].slot) == (1, 0)
    scene.advance(minutes=5).expect(running=["a", "b", "sweep"], on={"a": "node-1"})
    tasks = scene.body.world.arrays[scene.number("sweep")]
    assert [TaskPhase(phase) for phase in tasks.phase] == [TaskPhase.RUNNING, TaskPhase.QUEUED, TaskPhase.QUEUED]
    (plan,) = scene.plans
    assert (plan.job, plan.moved, plan.asks_milli) == (scene.number("sweep"), [scene.number("a")], 8000)
    assert plan.gain == 8000 * (4 * HOUR_MS - 10_000)


def test_an_array_that_is_due_keeps_nobody_from_being_helped() -> None:
    """Its tasks are so short that it is not worth it. A gang that is due behind it is helped as if it were alone."""
    scene = scattered()
    scene.send(SetTier("standard", Tier(200, 0, moves_max=2)))
    sweep = Resources(8, 4000, 2**30)
    scene.job("sweep", ask=sweep, array=3, minutes=1, limit_ms=MINUTE_MS).job("wide", gpus=8, **LONG)
    scene.advance(minutes=1)
    assert [plan.job for plan in scene.plans] == [scene.number("wide")]


def test_tasks_of_one_array_are_moved_for_one_of_another() -> None:
    scene = sweeping()
    scene.job("large", gpus=8, array=2, **LONG).advance(minutes=2)
    tasks = scene.body.world.arrays[scene.number("large")]
    assert tasks.phase.count(TaskPhase.RUNNING) == 1
    (plan,) = scene.plans
    assert (plan.job, set(plan.moved)) == (scene.number("large"), {scene.number("sweep")})


def tell_of_a_task_that_waits() -> None:
    """Somebody is moved for a task of an array."""
    scattered().job("sweep", gpus=8, array=3, **LONG).advance(minutes=2)


def tell_of_several_nodes() -> None:
    """Some tasks are gone before others, and there is a place that nobody claims."""
    spread_out().job("wide", gpus=8, gang=2, **LONG).advance(minutes=2)


def tell_of_groups() -> None:
    """A gang of several groups is moved."""
    teamed().job("wide", gpus=8, **LONG).advance(minutes=2)


def tell_of_waiting_groups() -> None:
    """Somebody is moved for a gang of several groups."""
    scattered().job("team", **groups((1, 6), (1, 2)), **LONG).advance(minutes=2)


def tell_of_tasks_twice() -> None:
    """Tasks would move twice within the hour."""
    scene = sweeping(moves_max=1).share("default", gpus=16)
    scene.job("wide", gpus=8, minutes=2, limit_ms=HOUR_MS).advance(minutes=5)
    scene.job("firm", gpus=4, evictable=False, **LONG).run().cancel("b").run()
    scene.job("again", gpus=8, **LONG).advance(minutes=2)


def tell_of_much_to_lose() -> None:
    """It is not: both have run for hours, and who waits wants an hour."""
    scattered().advance(hours=5).job("wide", gpus=8, minutes=60, limit_ms=HOUR_MS).advance(minutes=2)


def tell_of_two_moves() -> None:
    """It would be worth it twice within the hour, for the same one."""
    scene = scattered(moves_max=1)
    scene.share("default", gpus=16).job("wide", gpus=8, minutes=2, limit_ms=HOUR_MS).advance(minutes=5)
    scene.job("firm", gpus=4, evictable=False, **LONG).run().cancel("b").run()
    scene.expect(on={"a": "node-1", "firm": "node-0"}).job("again", gpus=8, **LONG).advance(minutes=2)


@pytest.mark.parametrize(
    ("name", "tell", "law"),
    [
        ("moved_to_nowhere", tell_of_one_move, "whoever is moved has a place that is kept for it"),
        ("moved_at_any_price", tell_of_much_to_lose, "a move is worth it"),
        ("lost_work_not_counted", tell_of_one_move, "an account leaves nothing out"),
        ("moved_again_and_again", tell_of_two_moves, "nobody is moved more often than its tier allows"),
        ("moved_as_new", tell_of_one_move, "who keeps its places is as old as before"),
        ("moved_to_nowhere", tell_of_tasks, "whoever is moved has a place that is kept for it"),
        ("tasks_moved_as_one", tell_of_tasks, "an account leaves nothing out"),
        ("moved_again_and_again", tell_of_tasks_twice, "nobody is moved more often than its tier allows"),
        ("moved_to_nowhere", tell_of_groups, "whoever is moved has a place that is kept for it"),
        ("moved_as_new", tell_of_groups, "who keeps its places is as old as before"),
        ("groups_moved_as_their_largest", tell_of_groups, "an account leaves nothing out"),
        ("groups_claimed_alike", tell_of_groups, "the ledger is the sum of the leases"),
        ("groups_claimed_alike", tell_of_waiting_groups, "the ledger is the sum of the leases"),
        ("tasks_gain_together", tell_of_a_task_that_waits, "a move is worth it"),
        ("moved_to_nowhere", tell_of_a_task_that_waits, "whoever is moved has a place that is kept for it"),
        ("groups_gain_alike", tell_of_waiting_groups, "a move is worth it"),
        ("mover_starts_elsewhere", tell_of_several_nodes, "a task that moves leaves, or waits for its new place"),
    ],
)
def test_a_planted_bug_is_found(name: str, tell: Callable[[], None], law: str) -> None:
    tell()
    with PLANTED[name](), pytest.raises(InvariantError) as caught:
        tell()
    assert caught.value.law == law


def share(milli: int) -> Resources:
    """So much of one device."""
    return Resources(0, 1000, 2**30, milli)


def piece(name: str) -> dict[str, Any]:
    """A partition of one device."""
    return {"ask": Resources(1, 1000, 2**30), "needs": Needs(partition=name)}
