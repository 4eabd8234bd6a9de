"""The law of boxes: a gang with a shape holds a whole box of a torus, one task on each spot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

from muster.model.node import Spot
from muster.model.phase import ACTIVE
from muster.world.laws.law import require
from muster.world.world import World


def check_boxes(world: World) -> None:
    """Check every gang that has one."""
    law = "a gang with a shape holds a box of a torus"
    for job in world.jobs.values():
        shape = job.spec.needs.shape
        if shape and isinstance(job.phase, ACTIVE):
            spots = [world.fleet.traits[lease.slot].spot for lease in job.phase.run.leases]
            require(is_box([spot for spot in spots if spot is not None], shape), law, f"job {job.id}: {spots[:8]}")


def is_box(spots: Sequence[Spot], shape: Sequence[int]) -> bool:
    """Whether spots are, each once, those of a box with these sides in some order, across the seam or not."""
    if len({(spot.torus, spot.size) for spot in spots}) != 1:
        return False
    size, here = spots[0].size, {spot.at for spot in spots}
    return any(
        {tuple((at + step) % side for at, step, side in zip(first, steps, size, strict=True)) for steps in box} == here
        for sides in sorted(set(permutations(shape)))
        for box in [list(product(*map(range, sides)))]
        for first in sorted(here)
    )
