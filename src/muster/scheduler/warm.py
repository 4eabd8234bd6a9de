"""Warm up: run every compiled search once, so that nobody waits for the compiler in the middle of a batch.

The first time on a machine this compiles for some twenty seconds and keeps the result beside the source; afterwards it
loads that in a fraction of a second.
"""

from __future__ import annotations

from muster.model.job import NodePhase
from muster.model.node import Spot, Traits
from muster.model.spec import ANYWHERE, Needs
from muster.scheduler.fit import count_room, find_gang, find_tasks, widest_capacity
from muster.units import Resources
from muster.world.fleet import Fleet


def warm_up() -> None:
    """Place, take and give back on a fleet of two nodes that nobody else sees."""
    fleet, ask = Fleet(), Resources(1, 1000, 1)
    for slot in range(2):
        fleet.join(slot, f"n{slot}", Resources(2, 4000, 8), Traits(spot=Spot("torus", (1, 1, 2), (0, 0, slot))))
    for gang in (1, 2, 4):
        for lease in find_gang(fleet, ask, gang) or ():
            fleet.occupy(lease.slot, gang, ask, lease.tasks, lease.devices)
            fleet.vacate(lease.slot, gang, ask, lease.tasks, lease.devices)
    find_gang(fleet, Resources(gpu_milli=500), 1)
    find_gang(fleet, ask, 1, Needs(apart=("a/b",)))
    find_tasks(fleet, ask, 3)
    count_room(fleet, ask)
    widest_capacity(fleet, ask, 2, ANYWHERE)
    find_gang(fleet, ask, 2, Needs(shape=(1, 1, 2)))
    fleet.set_phase(0, NodePhase.GONE)
