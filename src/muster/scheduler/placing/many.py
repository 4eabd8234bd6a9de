"""Many equal tasks, compiled: as many as fit now, the best cells first; and how many that would be.

The tasks of an array are gangs of one: each goes where one task goes, and a node that takes one takes all it has room
for. One search thus places a thousand tasks.
"""

from __future__ import annotations

from muster.scheduler.placing.gang import room_of, write_lease
from muster.scheduler.placing.query import CPU, GPUS, MEMORY, MILLI, POOL_COUNT, POOL_ROWS, ROW, ROW_POOL
from muster.scheduler.placing.single import cells_from, first_in_cell, is_sure
from muster.scheduler.placing.terms import score_at
from muster.world.arena import (
    AT_MEMBERS,
    AT_POOLS,
    NOWHERE,
    PARTS,
    PLANE,
    POOL_CPU,
    POOL_FIRST,
    POOL_GPUS,
    POOL_MEMORY,
    POOL_PLANES,
    POOL_ROW,
    STEPS,
)
from muster.world.compiled import Words, compiled
from muster.world.index import lowest_bit, part_of, step_of

UNBOUND = 1 << 62


@compiled
def _next_cell(words: Words, query: Words, row: int, bound: int, last: int) -> int:
    """The cell with the best score below `bound`, or as good and behind `last`; the lowest of equals, or NOWHERE."""
    pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
    wanted = cells_from(step_of(query[CPU], words[pool + POOL_CPU]), step_of(query[MEMORY], words[pool + POOL_MEMORY]))
    best, best_score = NOWHERE, -UNBOUND
    for plane in range(query[GPUS] * PARTS, (words[pool + POOL_GPUS] + 1) * PARTS):
        if plane < PARTS and plane < part_of(query[MILLI]):
            continue
        word = words[words[pool + POOL_PLANES] + plane] & wanted
        while word:
            bit = lowest_bit(word)
            word &= word - 1
            cell = plane * PLANE + bit
            points = score_at(words, query, row, plane, bit)
            if points > best_score and (points < bound or (points == bound and cell > last)):
                best, best_score = cell, points
    return best


@compiled
def _fill_cell(words: Words, query: Words, desk: Words, row: int, cell: int, count: int, most: int) -> tuple[int, int]:
    """Leases on the nodes of one cell; how many there are now, and how many tasks are still to place."""
    pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
    plane, bit = cell // PLANE, cell % PLANE
    sure = is_sure(words, query, pool, plane // PARTS, plane % PARTS, bit // STEPS, bit % STEPS)
    rank = NOWHERE
    while most:
        rank = first_in_cell(words, query, pool, cell, sure, rank)
        if rank == NOWHERE:
            break
        slot = words[words[AT_MEMBERS] + words[pool + POOL_FIRST] + rank]
        tasks = room_of(words, query, slot, most)
        count = write_lease(words, query, desk, count, slot, tasks)
        most -= tasks
    return count, most


@compiled
def find_many(words: Words, query: Words, desk: Words, most: int) -> int:
    """Leases for as many of `most` tasks as fit now, on the desk; how many leases there are."""
    count = 0
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        bound, last = UNBOUND, NOWHERE
        while most:
            cell = _next_cell(words, query, row, bound, last)
            if cell == NOWHERE:
                break
            bound, last = score_at(words, query, row, cell // PLANE, cell % PLANE), cell
            count, most = _fill_cell(words, query, desk, row, cell, count, most)
    return count


@compiled
def _count_in_cell(words: Words, query: Words, pool: int, cell: int, most: int) -> int:
    plane, bit = cell // PLANE, cell % PLANE
    sure = is_sure(words, query, pool, plane // PARTS, plane % PARTS, bit // STEPS, bit % STEPS)
    found, rank = 0, NOWHERE
    while found < most:
        rank = first_in_cell(words, query, pool, cell, sure, rank)
        if rank == NOWHERE:
            break
        found += room_of(words, query, words[words[AT_MEMBERS] + words[pool + POOL_FIRST] + rank], most - found)
    return found


@compiled
def count_room(words: Words, query: Words, most: int) -> int:
    """How many tasks of this ask would fit now, up to `most`, over all nodes of its pools."""
    found = 0
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
        cpu, memory = words[pool + POOL_CPU], words[pool + POOL_MEMORY]
        wanted = cells_from(step_of(query[CPU], cpu), step_of(query[MEMORY], memory))
        for plane in range(query[GPUS] * PARTS, (words[pool + POOL_GPUS] + 1) * PARTS):
            word = words[words[pool + POOL_PLANES] + plane] & wanted
            while word:
                cell = plane * PLANE + lowest_bit(word)
                word &= word - 1
                found += _count_in_cell(words, query, pool, cell, most - found)
    return found
