"""The rows of runs stay few, and stay those of whoever holds something."""

from __future__ import annotations

import random

from muster.testing.rig import Rig
from muster.world.invariants import check_world
from muster.world.runs import GONE, ROW, STATE, find_runs


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
