"""Warm up: run every compiled search once, so that nobody waits for the compiler in the middle of a batch.

The first time on a machine this compiles for some thirty seconds and keeps the result; afterwards it loads that in a
fraction of a second. It knows no world but those that it makes and forgets, nor where code is kept or who compiles.
"""

from __future__ import annotations

from array import array
from typing import Final

from muster.kernel.kernel import Kernel
from muster.model import event
from muster.model.group import Group
from muster.model.job import NodePhase
from muster.model.node import Lack, Spot, Traits
from muster.model.phase import Lease, TaskPhase
from muster.model.profile import Profile
from muster.model.ranges import as_ranges
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.model.tenant import GPU, GPU_ONE, Line, Tenant
from muster.scheduler.box_prices import find_boxes
from muster.scheduler.consolidation import count_free
from muster.scheduler.older import only_older
from muster.scheduler.placing.fit import count_room, count_short, find_gang, find_tasks, query_of, widest_capacity
from muster.units import Resources
from muster.world.claiming import lift_claims, put_claims
from muster.world.compiled import words_of
from muster.world.cuts import free_starts
from muster.world.fleet import Fleet
from muster.world.runs import close_ranks
from muster.world.seating import FEW, rows_of
from muster.world.tasks import HOLDING, Tasks
from muster.world.world import World

ASK: Final = Resources(1, 1000, 1)


def warm_up() -> None:
    """Place, take and give back on fleets of two nodes that nobody else sees, and move tasks that are nowhere."""
    _place_all()
    _place_exactly()
    _move_tasks()
    _take_back()


def _place_all() -> None:
    fleet = _two_nodes()
    for gang in (1, 2, 4):
        for lease in find_gang(fleet, ASK, gang) or ():
            fleet.occupy(lease.slot, gang, ASK, lease.tasks, lease.devices)
            fleet.vacate(lease.slot, gang, ASK, lease.tasks, lease.devices)
    find_gang(fleet, Resources(gpu_milli=500), 1)
    find_gang(fleet, ASK, 1, Needs(apart=("a/b",)))
    find_gang(fleet, ASK, 2, Needs(groups=(Group("one", 1, ASK), Group("other", 1, ASK))))
    find_tasks(fleet, ASK, 3)
    count_room(fleet, ASK)
    count_short(fleet, ASK, 5, ANYWHERE)
    count_free(fleet.words, query_of(fleet, ASK, 1, ANYWHERE))
    widest_capacity(fleet, ASK, 2, ANYWHERE)
    find_gang(fleet, ASK, 2, Needs(shape=(1, 1, 2)))
    find_boxes(fleet, (1, 1, 2), {0: 1, 1: 1})
    fleet.set_claimed(0, Lack(1, ASK))
    put_claims(fleet, lift_claims(fleet))
    fleet.set_phase(0, NodePhase.GONE)


def _place_exactly() -> None:
    """By a profile that sees nodes one by one."""
    fleet = _two_nodes()
    fleet.weigh(Profile(chance=1))
    find_gang(fleet, ASK, 1)
    free_starts(0, 1, 1)


def _two_nodes() -> Fleet:
    fleet = Fleet()
    for slot in range(2):
        fleet.join(slot, f"n{slot}", Resources(2, 4000, 8), Traits(spot=Spot("torus", (1, 1, 2), (0, 0, slot))))
    return fleet


def _move_tasks() -> None:
    tasks, ranges = Tasks(4), as_ranges(0, 1, 2, 2)
    tasks.seat(0, rows_of([Lease(0, 4)]), 0)
    tasks.enter(as_ranges(0, 4), TaskPhase.RUNNING, 1)
    tasks.find_runs(ranges, HOLDING, 1)
    tasks.know_marks().save(ranges, 1, 1)
    tasks.ages(ranges, with_slots=False)
    tasks.leases(ranges)
    tasks.find_older(1)
    tasks.find_on(0, 4)
    tasks.endings(1, shared=False)
    tasks.leave(ranges, TaskPhase.SUCCEEDED)
    close_ranks(words_of(array("q", bytes(8))), 0, 0)


def _take_back() -> None:
    """An owner takes back what it lent to a gang and to tasks of an array; the gang's places are many, for one fact."""
    kernel = Kernel(World())
    kernel.handle([event.NodeSeen(f"n{number}", Resources(2, 4000, 8)) for number in range(2 * FEW)], 0)
    kernel.handle([event.SetTenant("owner", Tenant(lines=(Line(GPU, guaranteed=4 * FEW * GPU_ONE),)))], 0)
    kernel.handle([_submit("guest", gang=2 * FEW + 2), _submit("guest", array=2 * FEW - 2)], 0)
    kernel.handle([_submit("owner", gang=4 * FEW), _submit("owner", array=4), _submit("guest")], 0)
    with only_older(kernel.world, 0):  # as when a claim is served that others came after
        pass


def _submit(tenant: str, gang: int = 1, array: int = 0) -> event.Submit:
    return event.Submit(Spec(command=("true",), ask=ASK, tenant=tenant, gang=gang, array=array))
