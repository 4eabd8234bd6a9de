"""The rows of runs stay few, and stay those of whoever holds something."""

from __future__ import annotations

import random

from muster.model.event import SetTier
from muster.model.tier import Tier
from muster.testing.rig import Rig
from muster.units import HOUR_MS
from muster.world.laws.invariants import check_world
from muster.world.runs import BEFORE, GONE, KIND, NO_ROW, ROW, STATE, TENANT, Runs, find_runs


def test_rows_of_those_who_are_gone_are_cleared_away() -> None:
    rig, dice = Rig(nodes=40, gpus=8), random.Random(1)
    runs, here = rig.world.know_runs(), list[int]()
    for _ in range(600):
        here.append(rig.submit(dice.choice((1, 2, 8)), gang=dice.choice((1, 1, 3))))
        if len(here) > 30:
            rig.exit(here.pop(dice.randrange(len(here))))
        if dice.random() < 0.1:
            runs.rows()
    rows = runs.rows()
    live = sum(rows[at + STATE] != GONE for at in range(0, runs.used * ROW, ROW))
    assert live <= runs.used <= 2 * live + 64
    world = rig.world
    assert runs.content() == find_runs(world.jobs, world.arrays, world.goodput.marks, world.sites.by_slot).content()
    check_world(world)


def shelves_of(runs: Runs) -> dict[tuple[object, object], list[int]]:
    """Where the rows of each tenant and kind begin that are somebody's, the newest first: as its shelf says."""
    rows, found = runs.rows(), dict[tuple[object, object], list[int]]()
    for end in runs.ends:
        at = end
        while at != NO_ROW:
            if rows[at + STATE] != GONE:
                key = (runs.tenants.names[rows[at + TENANT]], runs.kinds.names[rows[at + KIND]])
                found.setdefault(key, []).append(int(at))
            at = int(rows[at + BEFORE])
    return found


def test_on_a_shelf_are_all_rows_of_a_tenant_and_kind_the_newest_first() -> None:
    rig, dice, here = Rig(nodes=40, gpus=8), random.Random(2), list[int]()
    rig.feed(SetTier("high", Tier(100, HOUR_MS)))
    runs = rig.world.know_runs()
    for step in range(400):
        whose = {"tenant": dice.choice("abc"), "tier": dice.choice(("high", "standard")), "priority": dice.randrange(2)}
        here.append(rig.submit(dice.choice((1, 2, 8)), gang=dice.choice((1, 1, 3)), **whose))
        while len(here) > 30:
            rig.exit(here.pop(dice.randrange(len(here))))
        if step % 7 == 0:
            twin, rows = runs.fork(), runs.rows()
            wanted: dict[tuple[object, object], list[int]] = {}
            for at in range((runs.used - 1) * ROW, -1, -ROW):
                if rows[at + STATE] != GONE:
                    key = (runs.tenants.names[rows[at + TENANT]], runs.kinds.names[rows[at + KIND]])
                    wanted.setdefault(key, []).append(at)
            assert shelves_of(runs) == wanted
            assert shelves_of(twin) == wanted


def test_it_is_known_how_many_there_are_of_a_class_and_who_is_of_a_tier() -> None:
    rig, here = Rig(nodes=4, gpus=8), list[int]()
    runs = rig.world.know_runs()
    for tenant, tier, gang in (("a", "standard", 1), ("a", "standard", 3), ("b", "critical", 1)):
        here.append(rig.submit(1, gang=gang, tenant=tenant, tier=tier))
    rig.submit(1, array=3, tenant="b", tier="critical")
    for _ in range(2):  # before rows are written, and after
        assert runs.counts() == {("a", "standard", 0): 2, ("b", "critical", 0): 2}
        assert (runs.gangs_of(("standard",)), runs.gangs_of(("critical",))) == (here[:2], here[2:])
    rig.exit(here[2])
    assert runs.has_class(("b", "critical", 0))
    assert not runs.has_class(("b", "standard", 0))
    for job in here[:2]:
        rig.exit(job)
    assert not runs.has_class(("a", "standard", 0))
    assert runs.gangs_of(("standard", "critical")) == []
    check_world(rig.world)
