"""herds: the tasks of arrays that hold places and stay, by age; as rows that stand beside those of gangs.

A task is as old as the ticket by which it has its place. One that was told to stop is about to be gone, unless it took
too long: then nobody counts on it any more, and it holds its place like those that stay, though nobody may take it. It
knows nothing of rights, and chooses nobody.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from muster.model.job import Job
from muster.model.phase import Lease, TaskPhase
from muster.model.spec import Spec
from muster.units import MINUTE_MS, Resources
from muster.world.compiled import Words, column_of, compiled, order_of, sort_rows, words_of
from muster.world.loans import TASKS_OF_ARRAY
from muster.world.runs import CPU, FIXED, HERD, JOB, MEMORY, MILLI, ROW, SITE, STAYS, TASKS, TICKET, Runs, amounts_of
from muster.world.tasks import Tasks, spans_of
from muster.world.usage import amount_of
from muster.world.world import World

MARGIN_MS: Final = MINUTE_MS
"""How much longer than its grace a run may take to be gone; who takes longer is not counted on."""
STARTING, RUNNING, STOPPING = int(TaskPhase.STARTING), int(TaskPhase.RUNNING), int(TaskPhase.STOPPING)
Group: TypeAlias = tuple[int, int]
"""A job and a site: the tasks of the one on the other are a herd."""


def find_staying(world: World, job: Job, now: int) -> Words:
    """The tasks of an array that hold places and are not about to be gone, the newest last."""
    tasks = world.arrays[job.id]
    chosen = array("q", bytes(8 * max(1, tasks.holding)))
    count = pick_staying(column_of(tasks.phase), words_of(tasks.since), told_by(job.spec, now), words_of(chosen))
    return order_of(words_of(tasks.ticket), words_of(chosen)[:count])


def leaving_tasks(world: World, job: Job, now: int) -> Iterator[tuple[int, int, Lease]]:
    """The places of an array's tasks that are about to be gone, each node's for itself: (first, count, lease)."""
    tasks, told = world.arrays[job.id], told_by(job.spec, now)
    for span in spans_of(tasks.phase, (TaskPhase.STOPPING,), 0, len(tasks)):
        for begin, width in _told_after(tasks, *span, told):
            yield from tasks.seats(begin, width, shared=job.spec.ask.gpu_milli > 0)


def told_by(spec: Spec, now: int) -> int:
    """Whoever was told to stop by then has taken too long."""
    return now - spec.grace_ms - MARGIN_MS


def _told_after(tasks: Tasks, first: int, count: int, told: int) -> Iterator[tuple[int, int]]:
    """The runs in a range of tasks that were told to stop later than that."""
    end = first + count
    if min(tasks.since[first:end]) > told:
        yield first, count
        return
    while first < end:
        stop = first
        while stop < end and tasks.since[stop] > told:
            stop += 1
        if stop > first:
            yield first, stop - first
        first = stop + 1


def spread_rows(
    world: World, staying: Callable[[int], Words], claims: Iterable[tuple[int, ...]]
) -> tuple[array[int], list[Group]]:
    """What is held besides gangs as rows, the newest last: what the tasks of an array that stay have on one site by one
    ticket, with the number of their herd, and what is claimed. And the herds."""
    runs, flat, groups = world.know_runs(), array("q"), list[Group]()
    by_slot = words_of(world.sites.numbers())
    for number in sorted(runs.arrays):
        flat.extend(_rows_of(world, world.jobs[number], staying(number), by_slot, len(groups)))
        groups += [(number, site) for site in range(len(world.sites.all))]
    for row in claims:
        flat.extend(row)
    return sort_rows(flat, ROW, (TICKET, JOB, SITE)) if flat else flat, groups


def _rows_of(world: World, job: Job, order: Words, by_slot: Words, herd: int) -> array[int]:
    """The rows of one array, whose herds have these numbers from `herd` on, by site."""
    tasks = world.arrays[job.id]
    columns = (words_of(tasks.ticket), column_of(tasks.slot), by_slot)
    rows = array("q", bytes(8 * ROW * (count_rows(order, *columns) if len(order) else 0)))
    plain = array("q", row_of(world.know_runs(), job.id, job.spec, job.spec.ask, (0, TASKS_OF_ARRAY, 0, 1)))
    plain[HERD] = herd
    if rows:
        write_rows(order, *columns, words_of(plain), words_of(rows))
    return rows


def row_of(runs: Runs, job: int, spec: Spec, ask: Resources, held: tuple[int, int, int, int]) -> tuple[int, ...]:
    """A row as `muster.world.runs` has them, of a job that `held` by some ticket, as what, on a site, for so many
    tasks that ask for the same: nothing of it is borrowed so far."""
    ticket, slot, site, tasks = held
    tenant, kind = runs.tenants.number(spec.tenant), runs.kinds.number((spec.tier, spec.priority))
    worth, amounts = amount_of(ask, 1), amounts_of(ask, tasks)
    state = STAYS if spec.evictable else FIXED
    return (ticket, job, tenant, kind, slot, site, *amounts, worth, 0, state, 0, 0, tasks, 0, 0)


@compiled
def pick_staying(phase: Words, since: Words, told: int, chosen: Words) -> int:
    """Write which tasks stay; how many there are."""
    found = 0
    for task in range(len(phase)):
        is_overdue = phase[task] == STOPPING and since[task] <= told
        if STARTING <= phase[task] <= RUNNING or is_overdue:
            chosen[found] = task
            found += 1
    return found


@compiled
def count_rows(order: Words, ticket: Words, slots: Words, sites: Words) -> int:
    """How many runs of tasks there are that are alike in ticket and site."""
    found, last = 0, order[0]
    for task in order:
        if not found or ticket[task] != ticket[last] or sites[slots[task]] != sites[slots[last]]:
            found += 1
        last = task
    return found


@compiled
def write_rows(order: Words, ticket: Words, slots: Words, sites: Words, plain: Words, rows: Words) -> None:
    """Write a row for each run of tasks that are alike in ticket and site."""
    found = -1
    for task in order:
        at = found * ROW
        if found >= 0 and rows[at + TICKET] == ticket[task] and rows[at + SITE] == sites[slots[task]]:
            rows[at + TASKS] += 1
            rows[at + MILLI] += plain[MILLI]
            rows[at + CPU] += plain[CPU]
            rows[at + MEMORY] += plain[MEMORY]
        else:
            found, at = found + 1, at + ROW
            for field in range(ROW):
                rows[at + field] = plain[field]
            rows[at + TICKET], rows[at + SITE] = ticket[task], sites[slots[task]]
            rows[at + HERD] += sites[slots[task]]
