"""Nobody who has a right to places waits for them: told by letting all go whom the table gives it, in a fork.

Crowds of tenants that own something or nothing, of tiers, priorities and an emergency; gangs, elastic or not, and
arrays that may or may not be evicted. Some of them on fleets of several kinds, with wishes, pieces of devices, spares,
several groups and a feed; others in a tree of tenants of three levels, where who is below one stands in what it is
guaranteed, and on a torus, with boxes. When they have come to rest, for each one who waits everybody is taken out of a
fork whom it may take, and what elastic gangs have beyond their least: if it could start there, as work inside its
guarantee or as work that borrows, it should not wait. What it is owed is what it would be guaranteed if those were gone
whom it may take anyway. An array of which only some tasks borrow is left alone there.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final
from unittest import mock

import pytest
from msgspec.structs import replace

from muster.kernel import kernel as door
from muster.kernel.kernel import Kernel
from muster.model.event import Cancel, Event, Exited, HoldJob, ScaleJob, SetFlavor, SetOverlay, SetTier
from muster.model.group import Group
from muster.model.instruction import Stop
from muster.model.job import Job
from muster.model.node import Flavor, Place, Sides, Spot, Traits
from muster.model.overlay import POWER, Overlay
from muster.model.partition import Partition
from muster.model.phase import ACTIVE, Queued, TaskPhase
from muster.model.spec import Needs
from muster.model.tenant import GPU
from muster.model.tier import Tier
from muster.policy.taking import find_right
from muster.scheduler.taking import preemption
from muster.scheduler.taking.rights import kin_of, party_of
from muster.simulator.body import Body
from muster.testing.potential import Watch, count_loans
from muster.testing.scene import Scene
from muster.units import HOUR_MS, Resources
from muster.world.audit.claim import ClaimBooks
from muster.world.quota import Standing
from muster.world.sites import Site
from muster.world.tasks import HOLDING
from muster.world.world import World

TIERS = ("standard", "standard", "critical", "opportunistic")
LEVELS: Final = ({"within": "node"}, {"within": "rack"}, {"spread": "node"}, {"within": "fleet"})
PIECES: Final = (Partition("half", 4, (0, 4)), Partition("quarter", 2, (0, 2, 4)))
FLAVORS: Final = {
    "h100": Flavor(GPU, watts=700),
    "a100": Flavor(GPU, units=450, watts=400),
    "cut": Flavor(GPU, watts=600, slots=8, partitions=PIECES),
}
TORI: Final[tuple[Sides | None, ...]] = (None, None, None, (2, 2, 2), (3, 2, 1), (1, 4, 2), (5, 1, 1), (3, 3, 1))
BOXES: Final = ((1, 1, 1), (1, 1, 2), (2, 1, 1), (1, 1, 3), (2, 2, 1), (2, 2, 2))
FOR_EVER, SETTLED_H = 100_000, 30


def crowd(seed: int, *, is_varied: bool = False) -> Scene:
    """Owners, one of them with little of its own, and somebody who owns nothing; more work than room."""
    dice = random.Random(f"{seed}/rights")
    scene = Scene(seed, inspect_every=1000)
    if is_varied:
        add_nodes(scene, dice)
    else:
        scene.cluster(nodes=dice.randrange(1, 4), gpus=8)
    total = 8 * len(scene.body.world.fleet)
    first = dice.randrange(total + 1)
    lend = dice.choice((None, None, first // 2)) if is_varied else None
    scene.share("a", first, lend=lend).share("b", dice.randrange(total - first + 1))
    scene.send(SetTier("alarm", Tier(50, HOUR_MS, emergency=True)))
    for number in range(dice.randrange(8, 22)):
        submit(scene, dice, f"j{number}", **draw_wishes(dice) if is_varied else {})
        if dice.random() < 0.5:
            scene.advance(seconds=dice.randrange(60))
    return scene.advance(hours=SETTLED_H)


def add_nodes(scene: Scene, dice: random.Random, units: int = 450) -> None:
    """Nodes of two flavors, that count differently, in two racks and two zones, some of them behind a taint; all of
    them, or those of a zone, behind a feed that may not be enough."""
    for name, flavor in FLAVORS.items():
        scene.send(SetFlavor(name, replace(flavor, units=max(flavor.units, units))))
    for number in range(dice.randrange(2, 5)):
        place = Place(cluster=dice.choice(("", "", "east")), rack=dice.choice(("r1", "r2")))
        labels = (("zone", dice.choice("ab")),)
        taints = ("odd",) if dice.random() < 0.2 else ()
        traits = Traits(dice.choice(sorted(FLAVORS)), place, labels, taints)
        scene.node(f"node-{number}", Resources(8, 64_000, 2**39), traits)
    scene.advance(seconds=1)
    if dice.random() < 0.5:
        labels_of_feed = (dice.choice(("zone", "zone=a")),)
        scene.send(SetOverlay("feed", Overlay(POWER, dice.randrange(1000, 20_000), labels=labels_of_feed)))


def nested_crowd(seed: int, *, units: int = 450, watch: Callable[[Body], object] | None = None) -> Scene:
    """Somebody owns part of it all, somebody below part of that, and somebody below that again; some have limits."""
    dice = random.Random(f"{seed}/nested rights")
    scene, size = Scene(seed, inspect_every=1000), dice.choice(TORI)
    if watch is not None:
        watch(scene.body)
    if size:
        add_torus(scene, size)
    else:
        add_nodes(scene, dice, units)
    total = sum(capacity.gpus for capacity in scene.body.world.fleet.capacities)
    own = dice.randrange(total + 1)
    part = dice.randrange(own + 1)
    for name, parent, gpus in (
        ("org", "", own),
        ("a", "org", part),
        ("deep", "a", dice.randrange(part + 1)),
        ("b", "org", dice.randrange(own - part + 1)),
        ("c", "", dice.randrange(total - own + 1)),
    ):
        limit = max(gpus, dice.randrange(total + 1)) if dice.random() < 0.2 else None
        scene.share(name, gpus, parent=parent, limit=limit)
    scene.send(SetTier("alarm", Tier(50, HOUR_MS, emergency=True)))
    for number in range(dice.randrange(8, 22)):
        fields = draw_box(dice) if size and dice.random() < 0.5 else {} if size else draw_wishes(dice)
        submit(scene, dice, f"j{number}", **{**fields, "tenant": dice.choice(("org", "a", "deep", "b", "c", "guest"))})
        if dice.random() < 0.5:
            scene.advance(seconds=dice.randrange(60))
    return scene.advance(hours=SETTLED_H)


def add_torus(scene: Scene, size: Sides) -> None:
    """The nodes of one torus, of four devices each."""
    for number, at in enumerate(itertools.product(*map(range, size))):
        x, y, z = at
        scene.node(f"t{number:02}", Resources(4, 64_000, 2**39), Traits(spot=Spot("t", size, (x, y, z))))
    scene.advance(seconds=1)


def draw_box(dice: random.Random) -> dict[str, Any]:
    """A gang that wants a box of the torus."""
    shape = dice.choice(BOXES)
    plain = {"array": 0, "gang": prod(shape), "gang_most": 0, "in_place": False}
    return {**plain, "gpus": dice.choice((1, 2, 4)), "needs": Needs(shape=shape)}


def submit(scene: Scene, dice: random.Random, name: str, **fields: Any) -> None:
    kind = dice.choice(("gang", "gang", "array", "elastic"))
    gang = 1 if kind == "array" else dice.choice((1, 1, 1, 2))
    drawn = {
        "gpus": dice.choice((1, 2, 4, 8) if kind == "gang" else (1, 2)),
        "array": dice.randrange(1, 7) if kind == "array" else 0,
        "gang": gang,
        "gang_most": gang + dice.randrange(1, 6) if kind == "elastic" else 0,
        "in_place": kind == "elastic" and dice.random() < 0.5,
        "tenant": dice.choice(("a", "a", "b", "guest")),
        "tier": "alarm" if dice.random() < 0.05 else dice.choice(TIERS),
        "priority": dice.choice((0, 0, 5)),
        "evictable": dice.random() < 0.9,
        "grace_ms": 1000 * dice.randrange(1, 90),
    }
    scene.job(name, minutes=FOR_EVER, **{**drawn, **fields})


def draw_wishes(dice: random.Random) -> dict[str, Any]:
    """What a job wants of where it runs, if anything: flavors, a zone, a rack, nodes by themselves. Some of them want
    less than a device, freely or a piece of one, or a spare."""
    found: dict[str, Any] = {
        "flavors": dice.choice(((), (), ("h100",), ("a100",), ("h100", "a100"), ("a100", "h100"))),
        "any_flavor": dice.random() < 0.3,
        "labels": dice.choice(((), (), (), ("zone=a",), ("zone!=a",))),
        "tolerates": dice.choice(((), ("odd",))),
    }
    small: dict[str, Any] = {"array": dice.choice((0, 3)), "gang": 1, "gang_most": 0, "in_place": False}
    roll = dice.random()
    if roll < 0.1:
        ask = Resources(0, 1000, 2**30, gpu_milli=dice.choice((250, 500)))
        return {**small, "ask": ask, "needs": Needs(**found)}
    if roll < 0.2:
        piece = dice.choice(PIECES).name
        return {**small, "gpus": 1, "needs": Needs(**{**found, "flavors": ()}, partition=piece)}
    if roll < 0.5:
        level: dict[str, Any] = dice.choice(
            ({"within": "node"}, {"within": "rack"}, {"spread": "node"}, {"within": "fleet"})
        )
        fields = {"array": 0, "gang": dice.randrange(1, 4), "gang_most": 0, "in_place": False}
        return {**fields, "needs": Needs(**found, **level)}
    if roll < 0.6:
        return {"array": 0, "gang": 2, "gang_most": 0, "in_place": False, "spares": 1, "needs": Needs(**found)}
    if roll < 0.75:
        return draw_groups(dice, found)
    return {"needs": Needs(**found)}


def draw_groups(dice: random.Random, found: dict[str, Any]) -> dict[str, Any]:
    """A gang of several groups: workers, of which some may be larger, and somebody without devices."""
    sizes = [(dice.randrange(1, 3), dice.choice((1, 2, 4, 8))) for _ in range(dice.randrange(1, 3))]
    workers = [Group(f"work-{at}", tasks, Resources(gpus, 1000, 2**30)) for at, (tasks, gpus) in enumerate(sizes)]
    groups = (Group("driver", 1, Resources(0, 1000 * dice.randrange(1, 50), 2**30)), *workers)
    level: dict[str, Any] = dice.choice(({}, {"within": "rack"}, {"within": "node"}))
    gang = sum(group.tasks for group in groups)
    plain = {"ask": Resources(cpu_milli=1000), "array": 0, "gang": gang, "gang_most": 0, "in_place": False}
    return {**plain, "needs": Needs(**found, **level, groups=groups)}


def find_standings(world: World, now: int) -> dict[int, Standing]:
    """How everybody stands who runs; but for arrays of which some tasks borrow and some do not."""
    census = count_loans(world, now)
    whole = {number: borrowed for number, (staying, borrowed) in census.arrays.items() if borrowed in (0, staying)}
    return {
        number: Standing.BORROWING if borrows else Standing.INSIDE for number, borrows in (census.gangs | whole).items()
    }


def find_waiting(world: World) -> list[Job]:
    return [
        job
        for job in world.jobs.values()
        if isinstance(job.phase, Queued) or (job.spec.array and world.arrays[job.id].counts[TaskPhase.QUEUED])
    ]


def find_takable(
    world: World, job: Job, standing: Standing, standings: dict[int, Standing], *, is_owed: bool
) -> list[Job]:
    """All whom the table gives a job that would stand so, and is owed what others borrow or is not."""
    claimant = party_of(world, (job.spec.tier, job.spec.priority), standing)
    found = []
    for number, stands in standings.items():
        each = world.jobs[number]
        victim = party_of(world, (each.spec.tier, each.spec.priority), stands)
        kin = kin_of(job.spec.tenant, world.ledger.chain(each.spec.tenant))
        right = find_right(claimant, victim, kin, owed=is_owed and stands == Standing.BORROWING)
        if right is not None and each.spec.evictable and number != job.id:
            found.append(each)
    return found


def stop_all(kernel: Kernel, events: Sequence[Event], now: int) -> None:
    """Whoever is told to stop by that is gone at once."""
    stops = [item for item in kernel.handle(events, now).instructions if isinstance(item, Stop)]
    kernel.handle([Exited(item.job, item.epoch, 143, item.first, item.count) for item in stops], now)


def find_all_takable(world: World, job: Job, standing: Standing, standings: dict[int, Standing], now: int) -> list[Job]:
    """All whom it may take. It is owed what others borrow if it is inside its guarantee when those are gone whom it may
    take anyway: what others below it, or beside it, hold of the same is used."""
    anyway = find_takable(world, job, standing, standings, is_owed=False)
    if standing != Standing.INSIDE or Standing.INSIDE not in stands_of(without(world, job, anyway, now), job).values():
        return anyway
    return find_takable(world, job, standing, standings, is_owed=True)


def without(world: World, job: Job, gone: list[Job], now: int) -> Kernel:
    """A fork in which some are gone, and nobody else waits or has grown."""
    fork = world.fork()
    kernel = Kernel(fork)
    wide = [each for each in fork.jobs.values() if each.spec.gang_most and isinstance(each.phase, ACTIVE)]
    with mock.patch.multiple(door, run_cycle=lambda *_, **__: [], plan_takings=lambda *_: [], grow_all=lambda _: None):
        kernel.handle([HoldJob(each.id) for each in find_waiting(fork) if each.id != job.id], now)
        stop_all(kernel, [ScaleJob(each.id, each.spec.gang) for each in wide], now)
        stop_all(kernel, [Cancel(each.id) for each in gone], now)
    return kernel


def stands_of(kernel: Kernel, job: Job) -> dict[Site, Standing]:
    """How a job, or a task of it, would stand there, by site."""
    world, spec = kernel.world, job.spec
    ask, tasks = (spec.ask, 1) if spec.array else spec.whole
    return {site: world.quotas.standing(spec.tenant, site, ask, tasks) for site in world.sites.inhabited(ask)}


def could_start(world: World, job: Job, standing: Standing, gone: list[Job], now: int) -> bool:
    """Whether a job, or a task of it, would start and stand so, if some were gone and nobody else waited or grew."""
    kernel = without(world, job, gone, now)
    fork, stands = kernel.world, stands_of(kernel, job)
    if all(each > standing for each in stands.values()):
        return False
    before = dict(find_slots(fork, job))
    with mock.patch.multiple(door, plan_takings=lambda *_: [], grow_all=lambda _: None):
        fork.queue.wake_all()
        kernel.handle([], now + 1)
    return any(task not in before and stands[fork.site_of(slot)] <= standing for task, slot in find_slots(fork, job))


def find_slots(world: World, job: Job) -> list[tuple[int, int]]:
    """Where the parts of a job are: the tasks of an array, or the leases of a gang, in their order."""
    if job.spec.array:
        tasks = world.arrays[job.id]
        return [(task, tasks.slot[task]) for task, phase in enumerate(tasks.phase) if phase in HOLDING]
    phase = world.jobs[job.id].phase
    return list(enumerate(lease.slot for lease in phase.run.leases)) if isinstance(phase, ACTIVE) else []


def check_rights(scene: Scene, seed: int) -> int:
    """Nobody waits who could have started by its right; says how many waited."""
    world, now = scene.body.world, scene.body.world.now + SETTLED_H * HOUR_MS
    standings = find_standings(world, now)
    waiting = [job for job in find_waiting(world) if job.id not in world.claims]
    for job in waiting:
        for standing in (Standing.INSIDE, Standing.BORROWING):
            if standing == Standing.INSIDE or (job.spec.evictable and world.quotas.has_owners()):
                gone = find_all_takable(world, job, standing, standings, now)
                assert not could_start(world, job, standing, gone, now), f"seed {seed}: {job}"
    return len(waiting)


@pytest.fixture(autouse=True)
def _nobody_backs_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption, "may_take", lambda *_: True)
    monkeypatch.setattr(ClaimBooks, "check_backing_off", lambda *_: None)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_nobody_waits_who_has_a_right(first: int) -> None:
    assert sum(check_rights(crowd(seed), seed) for seed in range(first, first + 20)) > 20


def test_nobody_waits_on_a_fleet_of_several_kinds_who_has_a_right() -> None:
    assert sum(check_rights(crowd(seed, is_varied=True), seed) for seed in range(8)) > 8


def check_rest(seed: int) -> None:
    """In a tree of three levels, too, the potential only grows, and all come to rest. All devices count alike here: who
    claims a place where they count less may find one sooner where they count more, and borrow there."""
    watches: list[Watch] = []
    scene = nested_crowd(seed, units=1000, watch=lambda body: watches.append(Watch(body)))
    watches[0].taken.clear()
    scene.advance(hours=SETTLED_H)
    assert not watches[0].taken, f"seed {seed}\n{scene.story()[-4000:]}"


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (1000, 2000))])
def test_in_a_tree_of_tenants_and_on_tori_the_potential_only_grows(first: int) -> None:
    for seed in range(first, first + (1000 if first else 24)):
        check_rest(seed)


def test_nobody_in_a_tree_of_tenants_or_on_a_torus_waits_who_has_a_right() -> None:
    assert sum(check_rights(nested_crowd(seed), seed) for seed in range(24)) > 24


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2000, 250))
def test_nobody_of_many_waits_there_either_who_has_a_right(first: int) -> None:
    assert sum(check_rights(nested_crowd(seed), seed) for seed in range(first, first + 250)) > 250


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1200, 50))
def test_nobody_of_many_waits_there_who_has_a_right(first: int) -> None:
    assert sum(check_rights(crowd(seed, is_varied=True), seed) for seed in range(first, first + 50)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1300, 100))
def test_nobody_of_many_waits_who_has_a_right(first: int) -> None:
    assert sum(check_rights(crowd(seed), seed) for seed in range(first, first + 100)) > 100
