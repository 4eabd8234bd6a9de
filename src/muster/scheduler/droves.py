"""droves: the tasks of arrays that may be moved so that others fit, what each would lose, and on which nodes they are.

An array may have a hundred thousand of them. So they stay columns until it is known which nodes promise most, and only
those on them become candidates one by one, beside the gangs there. It knows costs and nodes, and not where anybody
would go.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from muster.model.job import Job
from muster.model.phase import Lease, TaskPhase
from muster.model.spec import has_devices
from muster.model.tier import Tier
from muster.policy.protection import may_move
from muster.scheduler.box_prices import find_boxes
from muster.scheduler.moving import why_immovable, why_tasks_stay
from muster.scheduler.placing.fit import Pools, query_of
from muster.scheduler.stage import Seat
from muster.scheduler.taking.near import find_near
from muster.scheduler.taking.reach import note_one, price_nodes, sheet_size
from muster.scheduler.taking.rights import RESTART_MS
from muster.scheduler.taking.teams import lead_of
from muster.scheduler.taking.victims import Candidate
from muster.world.arena import NOWHERE
from muster.world.compiled import Words, column_of, compiled, find_filled, words_of
from muster.world.fleet import Fleet
from muster.world.queue import Shape
from muster.world.runs import amounts_of
from muster.world.tasks import Tasks
from muster.world.world import World

RUNNING: Final = int(TaskPhase.RUNNING)


class Drove(NamedTuple):
    """Tasks of one array that may be moved, upwards, and what is lost by each."""

    job: Job
    tasks: Words
    costs: Words


def find_drove(world: World, job: Job, at: int) -> Drove | None:
    """Those that run, have run and rested long enough, if their array may be moved at all."""
    if not may_be_driven(world, job, at):
        return None
    tasks, tier = world.arrays[job.id], world.tiers[job.spec.tier]
    chosen, costs = (array("q", bytes(8 * tasks.counts[TaskPhase.RUNNING])) for _ in range(2))
    columns = (column_of(tasks.phase), words_of(tasks.since), words_of(tasks.saved_at), _resting(tasks, job, tier, at))
    least_ms = job.spec.grace_ms + RESTART_MS
    account = (at, at - tier.min_run_ms, least_ms, amounts_of(job.spec.ask, 1)[0])
    count = pick_movable(*columns, *account, words_of(chosen), words_of(costs))
    return Drove(job, words_of(chosen)[:count], words_of(costs)[:count]) if count else None


def may_be_driven(world: World, job: Job, at: int) -> bool:
    """Whether tasks of an array may be moved."""
    spec, tier = job.spec, world.tiers[job.spec.tier]
    if not (spec.evictable and has_devices(spec)) or tier.sharing is not None:
        return False
    if why_immovable(job) or why_tasks_stay(world, job):
        return False
    return may_move(tier, at - tier.min_run_ms, job.evicted, (), at)


def least_cost(job: Job) -> int:
    """What is lost at least by any task of an array that is moved."""
    return amounts_of(job.spec.ask, 1)[0] * (job.spec.grace_ms + RESTART_MS)


def _resting(tasks: Tasks, job: Job, tier: Tier, at: int) -> Words:
    """A column of the tasks that were moved too lately, or too often; nothing if there is none."""
    since = at - tier.min_run_ms
    found = [task for task, moves in tasks.moved.items() if not may_move(tier, since, job.evicted, moves, at)]
    rests = bytearray(len(tasks) if found else 0)
    for task in found:
        rests[task] = 1
    resting: Words = column_of(rests)
    return resting


# -- who is near ---------------------------------------------------------------------------------------------------


def find_all(world: World, droves: Iterable[Drove], below: int) -> Iterator[Candidate]:
    """Every task that loses less than that."""
    wanted = array("q", bytes(16 * max(1, len(world.fleet))))
    return (each for drove in droves for each in _candidates(world, drove, below, wanted))


def choose_near(
    world: World, shape: Shape, pools: Pools, gangs: Sequence[Candidate], droves: Sequence[Drove], below: int
) -> Iterator[list[Candidate]]:
    """Who may be moved and loses less than that, node by node: those nodes first that promise most; to the first group
    of a gang that has several."""
    fleet, nodes, shape = world.fleet, max(1, len(world.fleet)), lead_of(shape)
    sheet, prices = words_of(array("q", bytes(8 * sheet_size(nodes)))), array("q", (0, NOWHERE)) * nodes
    for each in gangs:
        for ask, leases in each.seat.spec.parts(each.seat.leases):
            for lease in leases:
                note_one(sheet, lease.slot, *amounts_of(ask, lease.tasks), each.cost)
    for drove in droves:
        slots, amounts = column_of(world.arrays[drove.job.id].slot), amounts_of(drove.job.spec.ask, 1)
        add_drove(drove.tasks, drove.costs, slots, below, *amounts, sheet)
    price_nodes(
        fleet.words,
        query_of(fleet, shape.ask, shape.gang, shape.needs, pools),
        sheet,
        shape.gang,
        words_of(prices),
    )
    near = find_near(world, shape, prices) if not shape.needs.shape else _boxed(fleet, shape, prices)
    wanted = array("q", (0, NOWHERE)) * nodes
    here: dict[int, list[Candidate]] = {}
    for slot in near:
        wanted[2 * slot + 1], here[slot] = 0, []
    for each in (*gangs, *(one for drove in droves for one in _candidates(world, drove, below, wanted))):
        for lease in each.seat.leases:
            known = here.get(lease.slot)
            if known is not None and (not known or known[-1] is not each):  # it may have two leases on a node
                known.append(each)
    return iter(here.values())


def _boxed(fleet: Fleet, shape: Shape, prices: array[int]) -> list[int]:
    """The nodes of the cheapest boxes: the cheapest nodes are seldom side by side."""
    by_slot = {slot: prices[2 * slot + 1] for slot in find_filled(prices, 2)}
    return [slot for box in find_boxes(fleet, shape.needs.shape, by_slot) for slot in box.slots]


def _candidates(world: World, drove: Drove, below: int, wanted: array[int]) -> Iterator[Candidate]:
    """The tasks of a drove on nodes that are wanted: those whose word there is not NOWHERE."""
    job, tasks = drove.job, world.arrays[drove.job.id]
    picked = array("q", bytes(16 * len(drove.tasks)))
    slots = column_of(tasks.slot)
    found = pick_wanted(drove.tasks, drove.costs, slots, below, words_of(wanted), words_of(picked))
    for at in range(0, 2 * found, 2):
        task, cost = picked[at], picked[at + 1]
        lease = Lease(tasks.slot[task], 1, tasks.devices[task])
        yield Candidate(cost, job.id, task, Seat(job.id, task, job.spec, (lease,)))


@compiled
def pick_movable(
    phase: Words, since: Words, saved: Words, rests: Words, now: int, latest: int, least_ms: int, worth: int,
    chosen: Words, costs: Words,
) -> int:  # fmt: skip
    """Write which tasks run since `latest` or longer and do not rest, and what is lost by each; how many there are."""
    found = 0
    for task in range(len(phase)):
        if phase[task] == RUNNING and since[task] <= latest and not (len(rests) and rests[task]):
            chosen[found] = task
            costs[found] = worth * (max(0, now - max(since[task], saved[task])) + least_ms)
            found += 1
    return found


@compiled
def add_drove(
    tasks: Words, costs: Words, slots: Words, below: int, milli: int, cpu: int, memory: int, sheet: Words
) -> None:
    """Add what tasks have that lose less than that to what could be taken from their nodes."""
    for at in range(len(tasks)):
        if costs[at] < below:
            note_one(sheet, slots[tasks[at]], milli, cpu, memory, costs[at])


@compiled
def pick_wanted(tasks: Words, costs: Words, slots: Words, below: int, wanted: Words, picked: Words) -> int:
    """Write which tasks sit on a node that is wanted and lose less than that, and what each loses; how many those
    are."""
    found = 0
    for at in range(len(tasks)):
        if costs[at] < below and wanted[2 * slots[tasks[at]] + 1] != NOWHERE:
            picked[2 * found], picked[2 * found + 1] = tasks[at], costs[at]
            found += 1
    return found
