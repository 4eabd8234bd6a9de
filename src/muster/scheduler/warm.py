"""Warm up: run every compiled search once, so that nobody waits for the compiler in the middle of a batch.

The first time on a machine this compiles for some twenty seconds and keeps the result beside the source; afterwards it
loads that in a fraction of a second.
"""

from __future__ import annotations

from muster.model.job import NodePhase
from muster.model.node import Spot, Traits
from muster.model.phase import Lease, TaskPhase
from muster.model.ranges import as_ranges
from muster.model.spec import ANYWHERE, Needs
from muster.scheduler.fit import count_room, find_gang, find_tasks, widest_capacity
from muster.units import Resources
from muster.world.fleet import Fleet
from muster.world.seating import rows_of
from muster.world.tasks import HOLDING, Tasks


def warm_up() -> None:
    """Place, take and give back on a fleet of two nodes that nobody else sees, and move tasks that are nowhere."""
    _place_all()
    _move_tasks()


def _move_tasks() -> None:
    tasks, ranges = Tasks(4), as_ranges(0, 1, 2, 2)
    tasks.seat(0, rows_of([Lease(0, 4)]), 0)
    tasks.enter(as_ranges(0, 4), TaskPhase.RUNNING, 1)
    tasks.find_runs(ranges, HOLDING, 1)
    tasks.ages(ranges, with_slots=False)
    tasks.leases(ranges)
    tasks.find_older(1)
    tasks.leave(ranges, TaskPhase.SUCCEEDED)


def _place_all() -> None:
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
