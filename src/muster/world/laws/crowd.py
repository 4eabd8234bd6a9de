"""The law of the crowd: it is who is there, and none is kept while nobody weighs it."""

from __future__ import annotations

from muster.world.crowd import crowd_of
from muster.world.laws.law import require
from muster.world.world import World


def check_crowd(world: World) -> None:
    """Tasks by node and kind, of all that hold something."""
    crowd = world.fleet.crowd
    wanted = crowd_of(world.jobs, world.fleet.holders).counts if world.fleet.profile.clustering else None
    require((crowd and crowd.counts) == wanted, "the crowd is who is there", f"wanted {wanted}")
