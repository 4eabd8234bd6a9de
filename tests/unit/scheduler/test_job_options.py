"""Advice on small scenes: what is offered starts, what cannot be helped gets no offer, and asking changes nothing."""

from __future__ import annotations

import pytest

from muster.model import event
from muster.model.job import BarKind
from muster.model.node import Flavor, Place, Traits
from muster.model.overlay import POWER, Overlay
from muster.model.reason import Code
from muster.model.spec import Needs
from muster.model.tenant import Tenant, limits
from muster.scheduler import options
from muster.scheduler.options import Opening, Option, available, find_options
from muster.testing.rig import Rig, spec
from muster.units import Resources
from muster.world.snapshot import digest

GIB = 2**30


def options_of(rig: Rig, number: int) -> list[Option]:
    """What is offered to a job, and that the question left no trace."""
    before = (digest(rig.world), list(rig.world.queue.awake), rig.world.next_job)
    found = find_options(rig.world, rig.job(number))
    assert (digest(rig.world), list(rig.world.queue.awake), rig.world.next_job) == before
    return found


def test_fewer_tasks_or_fewer_gpus_each() -> None:
    """Two nodes of 8, one GPU taken: of 4 tasks with 4 GPUs three fit, and four with 3 GPUs do."""
    rig = Rig(nodes=2)
    rig.submit(1)
    wide = rig.submit(4, gang=4)
    assert options_of(rig, wide) == [Option("gang", 4, 3), Option("gpus", 4, 3)]


def test_nothing_is_offered_to_a_job_that_is_held() -> None:
    rig = Rig(nodes=1)
    rig.submit(6)
    assert options_of(rig, rig.submit(4, held=True)) == []


def test_cpu_and_memory_are_lowered_alone_and_in_steps() -> None:
    """One node with 64 cores and 256 GiB; 10.05 cores and 100.5 GiB are taken."""
    rig = Rig(nodes=1)
    rig.submit(ask=Resources(0, 10_050, 100 * GIB + GIB // 2))
    broad = rig.submit(ask=Resources(0, 60_000, GIB))
    assert options_of(rig, broad) == [Option("cpu_milli", 60_000, 53_900)]
    heavy = rig.submit(ask=Resources(0, 1000, 200 * GIB))
    (option,) = options_of(rig, heavy)
    assert (option.field, option.to) == ("memory_bytes", 155 * GIB + GIB // 2)


def test_no_single_change_helps_against_two_shortages() -> None:
    rig = Rig(nodes=1)
    rig.submit(8)
    assert options_of(rig, rig.submit(8)) == []


def test_no_option_goes_down_to_nothing() -> None:
    """Without its GPU the job would fit; but then it would be another job."""
    rig = Rig(nodes=1)
    rig.submit(8)
    assert options_of(rig, rig.submit(1)) == []


def test_an_option_stays_within_the_quota_and_the_room() -> None:
    """Of 16 free GPUs the tenant may hold 5 more; then only 4 are free."""
    rig = Rig(nodes=3)
    rig.tenant("lab", gpus=13)
    rig.submit(8, tenant="lab")
    job = rig.submit(2, gang=4, tenant="lab")
    assert options_of(rig, job) == [Option("gang", 4, 2), Option("gpus", 2, 1)]
    rig.submit(8)
    rig.submit(5)
    assert options_of(rig, job) == [Option("gang", 4, 1)]


def test_whoever_does_not_wait_gets_no_options() -> None:
    rig = Rig(nodes=1)
    assert options_of(rig, rig.submit(8)) == []


def test_whoever_could_start_as_it_is_needs_none() -> None:
    """A node came, and the cycle that will see it has not run yet."""
    rig = Rig(nodes=1)
    rig.submit(8)
    waiting = rig.submit(8)
    rig.world.fleet.join(1, "node-1", Resources(8, 64_000, 256 * GIB))
    assert options_of(rig, waiting) == []


def test_an_array_is_offered_what_starts_its_first_task() -> None:
    rig = Rig(nodes=1)
    rig.submit(5)
    array = rig.submit(4, array=1000)
    assert options_of(rig, array) == [Option("gpus", 4, 3)]


def test_what_a_draft_does_not_take_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(nodes=2)
    rig.submit(8)
    wide = rig.submit(8, gang=2)
    assert options_of(rig, wide) == [Option("gang", 2, 1), Option("gpus", 8, 4)]
    monkeypatch.setattr(options, "find_gang", lambda _fleet, ask, _gang, _needs, _pools: None if ask.gpus == 8 else [])
    assert [option.field for option in find_options(rig.world, rig.job(wide))] == ["gpus"]


def test_the_search_is_bounded_for_any_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def count(_world: object, asked: object) -> bool:
        nonlocal tries
        tries += 1
        return asked is not huge

    huge = spec(ask=Resources(62, 2**60, 2**60))
    rig = Rig(nodes=1)
    rig.submit(8)
    monkeypatch.setattr(options, "can_start", count)
    monkeypatch.setattr(options, "_keep_proven", lambda _world, _spec, found: found)
    found = options.find_changes(rig.world, huge)
    assert [option.field for option in found] == ["gpus", "cpu_milli", "memory_bytes"]
    assert tries <= 55


def test_openings_of_an_idle_fleet() -> None:
    """Nodes of 8 GPUs, 64 cores, 256 GiB: a GPU goes with 8 cores and 32 GiB."""
    rig = Rig(nodes=2)
    assert available(rig.world, "lab") == [
        Opening(Resources(0, 1000, 4 * GIB), 128, 128, Code.NO_ROOM),
        Opening(Resources(1, 8000, 32 * GIB), 16, 16, Code.NO_ROOM),
        Opening(Resources(2, 16_000, 64 * GIB), 8, 8, Code.NO_ROOM),
        Opening(Resources(4, 32_000, 128 * GIB), 4, 4, Code.NO_ROOM),
        Opening(Resources(8, 64_000, 256 * GIB), 2, 2, Code.NO_ROOM),
    ]


def test_openings_know_the_tenant_s_quota() -> None:
    rig = Rig(nodes=2)
    rig.tenant("lab", gpus=3)
    found = {it.ask.gpus: (it.tasks, it.bound) for it in available(rig.world, "lab")}
    quota, room = Code.OVER_QUOTA, Code.NO_ROOM
    assert found == {0: (128, room), 1: (3, quota), 2: (1, quota), 4: (0, quota), 8: (0, quota)}
    assert [it.tasks for it in available(rig.world, "other")] == [128, 16, 8, 4, 2]


def test_shares_are_those_of_the_most_frequent_kind_with_so_many_gpus() -> None:
    rig = Rig(nodes=2, gpus=0, cpu_milli=4000, memory_bytes=16 * GIB)
    rig.feed(event.NodeSeen("big", Resources(3, 10_000, 10 * GIB)))
    assert available(rig.world, "lab") == [
        Opening(Resources(0, 1000, 4 * GIB), 10, 10, Code.NO_ROOM),
        Opening(Resources(1, 3300, 3413 * 2**20), 3, 3, Code.NO_ROOM),
        Opening(Resources(2, 6600, 6826 * 2**20), 1, 1, Code.NO_ROOM),
    ]


def test_what_would_start_has_the_price_of_where_it_would_go() -> None:
    rig = Rig(nodes=1, gpus=8)
    rig.feed(event.SetFlavor("gpu", Flavor("gpu", price_micros=2_500_000)))
    rig.feed(event.SetTenant("lab", Tenant(lines=limits(gpus=2))))
    prices = {it.ask.gpus: it.price_micros for it in available(rig.world, "lab")}
    assert prices == {0: 0, 1: 2_500_000, 2: 5_000_000, 4: 0, 8: 0}


def test_a_fleet_of_nothing_has_no_openings() -> None:
    assert available(Rig().world, "lab") == []
    assert available(Rig(nodes=1, gpus=0, cpu_milli=500).world, "lab") == []


def test_a_looser_need_is_offered_with_the_least_change() -> None:
    """Two racks of one block, one GPU free in each: a gang of two must give up its rack, and not its block."""
    rig = Rig()
    for number in range(4):
        place = Place(cluster="alpha", block="b1", rack=f"r{number // 2}")
        rig.feed(event.NodeSeen(f"n{number}", Resources(1, 64_000, 2**38), traits=Traits(place=place)))
    for name in ("n0", "n2"):
        rig.feed(event.BarNode(name, BarKind.CORDON, "me"))
    near = rig.submit(1, gang=2, needs=Needs(within="rack"))
    assert options_of(rig, near) == [Option("gang", 2, 1), Option("within", "rack", "block")]


def test_another_flavor_is_offered_the_cheapest_first() -> None:
    rig = Rig()
    for name in ("a100", "h100", "l40"):
        rig.feed(event.NodeSeen(name, Resources(2, 64_000, 2**38), traits=Traits(name)))
    rig.feed(
        event.SetFlavor("a100", Flavor("a100", price_micros=2)), event.SetFlavor("l40", Flavor("l40", price_micros=1))
    )
    rig.submit(2, needs=Needs(flavors=("h100",)))
    waiting = rig.submit(2, needs=Needs(flavors=("h100",)))
    assert options_of(rig, waiting) == [Option("flavors", "h100", "l40")]


def test_a_spread_is_loosened_step_by_step() -> None:
    """Three nodes in two racks: no two tasks in one rack is too much for three tasks, no two in one node is not."""
    rig = Rig()
    for number in range(4):
        place = Place(rack=f"r{number % 3}")
        rig.feed(event.NodeSeen(f"n{number}", Resources(2, 64_000, 2**38), traits=Traits(place=place)))
    rig.feed(event.BarNode("n2", BarKind.CORDON, "me"))
    spread = rig.submit(1, gang=3, needs=Needs(spread="rack"))
    assert options_of(rig, spread) == [Option("gang", 3, 2), Option("spread", "rack", "node")]


def test_what_a_feed_has_left_is_counted_once_for_all_clusters_behind_it() -> None:
    rig = Rig()
    rig.feed(event.SetFlavor("gpu", Flavor("gpu", watts=700)))
    for cluster in ("near", "far"):
        rig.feed(event.NodeSeen(f"n-{cluster}", Resources(8, 64_000, 2**38), traits=Traits(place=Place("eu", cluster))))
    rig.feed(event.SetOverlay("feed", Overlay(POWER, 5 * 700, nodes=("n-near", "n-far"))))
    assert {it.ask.gpus: it.tasks for it in available(rig.world, "lab") if it.ask.gpus} == {1: 5, 2: 2, 4: 1, 8: 0}
