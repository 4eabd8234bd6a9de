"""What is offered starts, what is not offered would not have, and asking leaves no trace: over any small fleet."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.kernel.kernel import Kernel, Outcome
from muster.model.event import BarNode, NodeSeen, NodeSilent, SetFlavor, SetOverlay, SetTenant, Submit
from muster.model.fact import Claimed, Placed, TasksPlaced
from muster.model.job import BarKind, Job
from muster.model.node import Flavor, Place, Traits
from muster.model.overlay import POWER, Overlay
from muster.model.partition import Partition
from muster.model.reason import Refused
from muster.model.spec import ANYWHERE, Needs, Spec, as_asked
from muster.model.tenant import Tenant, limits
from muster.scheduler.options import (
    CPU_STEP_MILLI,
    LOOSER,
    MEMORY_STEP_BYTES,
    RELAXATIONS,
    amount_of,
    asked_of,
    available,
    find_changes,
    find_options,
    looser,
    relax,
)
from muster.scheduler.promotion import find_promotion, higher_tiers
from muster.units import Resources
from muster.world.snapshot import digest
from muster.world.world import World

LAWFUL = settings(derandomize=True, deadline=None, max_examples=200)
SEEDS = st.integers(0, 2**32)
CUT = Flavor("gpu", watts=400, slots=8, partitions=(Partition("half", 4, (0, 4)),))
CPU, MEMORY = CPU_STEP_MILLI, MEMORY_STEP_BYTES


def build(seed: int, *, is_varied: bool = False) -> World:
    """A world after its cycles: crowded nodes in racks and clusters and of two flavors, some of them silent or barred,
    tenants with and without a quota.

    Drawn by dice, for hypothesis prefers simple worlds, and in those nobody waits who could be helped. A varied one has
    zones, taints and devices that are cut, maybe a feed, and jobs that mind them or want less than a device.
    """
    dice, lots, others = random.Random(seed), random.Random(~seed), random.Random(f"{seed}/others")
    kernel = Kernel(World())
    if is_varied:
        kernel.handle([SetFlavor("h100", Flavor("gpu", watts=700)), SetFlavor("cut", CUT)], 1)
    for at in range(dice.randint(1, 4)):
        place = Place(cluster=dice.choice(["", "", "far"]), rack=dice.choice(["r1", "r2"]))
        traits = Traits(dice.choice(["", "h100"]), place)
        capacity = _draw(dice, 2, 8)
        kernel.handle([NodeSeen(f"n{at}", capacity, traits=_vary_traits(others, traits) if is_varied else traits)], 1)
    if is_varied and others.random() < 0.5:
        labels = (others.choice(("zone", "zone=a")),)
        kernel.handle([SetOverlay("feed", Overlay(POWER, others.randrange(300, 6000), labels=labels))], 1)
    most = [dice.choice([None, each]) for each in (dice.randint(2, 16), dice.randint(200, 4000), 9 * MEMORY // 2)]
    kernel.handle([SetTenant("lab", Tenant(lines=limits(*most)))], 2)
    for at in range(dice.randint(4, 12)):
        tier = lots.choice(["standard", "standard", "opportunistic"])
        spec = relax_tier(_draw_spec(dice), tier)
        kernel.handle([Submit(_vary_spec(others, spec) if is_varied else spec)], 3 + at)
        if not dice.randint(0, 9):
            kernel.handle([NodeSilent(f"n{dice.randint(0, 3)}")], 3 + at)
        if not dice.randint(0, 9):
            kernel.handle([BarNode(f"n{dice.randint(0, 3)}", BarKind.CORDON, "admin")], 3 + at)
    return kernel.world


def _draw(dice: random.Random, least: int, most: int) -> Resources:
    """Amounts that lie off the steps as well as on them."""
    gpus, cpu, memory = (dice.randint(least, most) for _ in range(3))
    return Resources(gpus, cpu * CPU // 2, memory * MEMORY // 2)


def _draw_spec(dice: random.Random) -> Spec:
    array = dice.choice([0, 0, 0, 3])
    gang = 1 if array else dice.randint(1, 4)
    tenant, ask = dice.choice(["lab", "other"]), _draw(dice, 0, 5)
    return Spec(("x",), tenant=tenant, gang=gang, array=array, ask=ask, needs=_draw_needs(dice, gang))


def _draw_needs(dice: random.Random, gang: int) -> Needs:
    """Half of them want something of where they run; levels are for gangs."""
    flavored = [Needs(flavors=("h100",)), Needs(flavors=("gpu",))]
    levels = [Needs(within="node"), Needs(within="rack"), Needs(spread="node"), Needs(spread="rack", within="fleet")]
    return dice.choice([ANYWHERE, ANYWHERE, *flavored, *(levels if gang > 1 else [])])


def _vary_traits(dice: random.Random, traits: Traits) -> Traits:
    flavor = "cut" if dice.random() < 0.3 else traits.flavor
    labels, taints = (("zone", dice.choice("ab")),), ("odd",) if dice.random() < 0.2 else ()
    return msgspec.structs.replace(traits, flavor=flavor, labels=labels, taints=taints)


def _vary_spec(dice: random.Random, spec: Spec) -> Spec:
    """Wishes for a job; or one that wants a share of a device, or a piece of one."""
    labels = dice.choice(((), (), ("zone=a",), ("zone!=a",)))
    needs = msgspec.structs.replace(spec.needs, labels=labels, tolerates=dice.choice(((), ("odd",))))
    replace, roll = msgspec.structs.replace, dice.random()
    if roll > 0.3:
        return replace(spec, needs=needs)
    needs = replace(needs, within="", spread="", flavors=(), partition="half" if roll < 0.15 else "")
    ask = replace(spec.ask, gpus=1) if needs.partition else replace(spec.ask, gpus=0, gpu_milli=500)
    return replace(spec, needs=needs, gang=1, ask=ask)


def starts(world: World, spec: Spec) -> bool:
    """Whether a spec that is submitted to a fork is placed in that very batch."""
    twin = world.fork()
    number = twin.next_job
    outcome = Kernel(twin).handle([Submit(as_asked(spec))], twin.now)
    return not isinstance(outcome.answers[0], Refused) and number in _placed_in(outcome)


def _placed_in(outcome: Outcome) -> list[int]:
    placed = [job for item in outcome.facts if isinstance(item, Placed) for job in item.jobs]
    return placed + [item.job for item in outcome.facts if isinstance(item, TasksPlaced)]


def waiting_of(world: World) -> list[Job]:
    """Whoever waits in a line: those whose places are being freed are in none, and are offered nothing."""
    jobs = [job for job in world.jobs.values() if world.is_waiting(job)]
    return [job for job in jobs if world.queue.find_line(job) is not None]


@LAWFUL
@given(SEEDS, st.booleans())
def test_the_options_are_the_least_changes_that_start(seed: int, is_varied: bool) -> None:
    """By brute force: for each field every smaller amount on its steps is submitted, and every looser need."""
    world = build(seed, is_varied=is_varied)
    for job in waiting_of(world):
        before = digest(world)
        options = find_options(world, job)
        offered = {option.field: option.to for option in options}
        assert digest(world) == before
        assert find_changes(world.fork_places(), job.spec) == options, "jobs are not asked for"
        for field, step in RELAXATIONS:
            asked = amount_of(job.spec, field)
            smaller = range(step, asked, step)
            starting = [amount for amount in smaller if starts(world, relax(job.spec, field, amount))]
            assert offered.get(field, 0) == max(starting, default=0), (field, asked)
        for field in LOOSER:
            starting_names = [to for to in looser(world, job.spec, field) if starts(world, relax(job.spec, field, to))]
            assert offered.get(field) == next(iter(starting_names), None), (field, asked_of(job.spec, field))


@LAWFUL
@given(SEEDS, st.booleans())
def test_the_tier_that_is_offered_is_the_nearest_that_helps(seed: int, is_varied: bool) -> None:
    """By brute force: it is submitted in every tier above its own; it starts, or is given what others have."""
    world = build(seed, is_varied=is_varied)
    for job in waiting_of(world):
        before = digest(world)
        option = find_promotion(world, job.spec, world.now)
        assert digest(world) == before
        found = [(name, _stops_for(world, relax_tier(job.spec, name))) for name in higher_tiers(world, job.spec)]
        helping = [(name, stops) for name, stops in found if stops is not None]
        assert (option and (option.to, option.stops)) == next(iter(helping), None), found


def relax_tier(spec: Spec, tier: str) -> Spec:
    return msgspec.structs.replace(spec, tier=tier)


def _stops_for(world: World, spec: Spec) -> int | None:
    """How many are told to stop in the batch in which a spec is submitted, so that it starts; None if it just waits."""
    twin = world.fork()
    number = twin.next_job
    outcome = Kernel(twin).handle([Submit(as_asked(spec))], twin.now)
    if number in _placed_in(outcome):
        return 0
    claims = [item.victims for item in outcome.facts if isinstance(item, Claimed) and item.job == number]
    return claims[0] if claims else None


def test_advice_about_tiers_is_given_at_all() -> None:
    worlds = [build(seed) for seed in range(60)]
    found = [find_promotion(world, job.spec, world.now) for world in worlds for job in waiting_of(world)]
    offered = {(option.asked, option.to) for option in found if option is not None}
    assert offered == {("standard", "critical"), ("opportunistic", "standard"), ("opportunistic", "critical")}
    assert None in found


def test_advice_about_needs_is_given_at_all() -> None:
    """The law above would be empty if no such world came up."""
    worlds = [build(seed) for seed in range(300)]
    fields = {option.field for world in worlds for job in waiting_of(world) for option in find_options(world, job)}
    assert fields >= {"gang", "gpus", "cpu_milli", "memory_bytes", *LOOSER}


@LAWFUL
@given(SEEDS)
def test_an_opening_is_as_wide_as_it_says_and_no_wider(seed: int) -> None:
    world = build(seed)
    for opening in available(world, "lab"):
        gangs = [opening.gang, opening.gang + 1]
        found = [gang > 0 and starts(world, Spec(("x",), tenant="lab", gang=gang, ask=opening.ask)) for gang in gangs]
        assert found == [opening.gang > 0, False]
        assert _count_singles(world, opening.ask) == opening.tasks


def _count_singles(world: World, ask: Resources) -> int:
    """How many one-task jobs start, submitted one after the other until one waits."""
    kernel, count = Kernel(world.fork()), 0
    spec = Spec(("x",), tenant="lab", ask=ask)
    while any(isinstance(item, Placed) for item in kernel.handle([Submit(spec)], world.now).facts):
        count += 1
    return count
