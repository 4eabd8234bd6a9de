"""Where one task goes, compiled: the best cell that holds a node it fits on, and there the lowest slot. Exact.

Cells above an ask's own step fit for sure; in a cell at its step, nodes are looked at one by one. So nothing that fits
is ever refused, and a refusal has looked at every node that could have.
"""

from __future__ import annotations

from muster.scheduler.placing.query import (
    CPU,
    DISK,
    GPUS,
    MEMORY,
    MILLI,
    NETWORK,
    PIECE,
    POOL_COUNT,
    POOL_ROWS,
    ROW,
    ROW_POOL,
    ROW_RANK,
    STARTS,
)
from muster.scheduler.placing.terms import bound_at, bound_of_part, places_in_table
from muster.world.arena import (
    AT_CELLS,
    AT_DEVICES,
    AT_MEMBERS,
    AT_NODES,
    AT_POOLS,
    CHUNK,
    DEVICE,
    DEVICES,
    FREE_CPU,
    FREE_DISK,
    FREE_GPUS,
    FREE_MASK,
    FREE_MEMORY,
    FREE_NETWORK,
    FREE_PART,
    NODE_ROW,
    NOWHERE,
    PARTS,
    PLANE,
    POOL_CPU,
    POOL_FIRST,
    POOL_GPUS,
    POOL_MEMORY,
    POOL_PLANES,
    POOL_ROW,
    POOL_SIZE,
    POOL_ZONES,
    REGION,
    REGION_CPU,
    REGION_MEMORY,
    STEPS,
    ZONE,
)
from muster.world.compiled import Words, compiled
from muster.world.cuts import room_in_cuts
from muster.world.index import bound_of, lowest_bit, part_of, region_at, step_of, zone_at


@compiled
def fits(words: Words, query: Words, slot: int) -> bool:
    """Whether one task fits on a node now."""
    row = words[AT_NODES] + NODE_ROW * slot
    return bool(
        has_amounts(words, row, query[GPUS], query[MILLI], query[CPU], query[MEMORY], query[DISK], query[NETWORK])
        and (
            not query[PIECE]
            or words[row + FREE_GPUS] > 0
            or room_in_cuts(words, slot, query[MILLI], query[PIECE], query[STARTS]) > 0
        )
    )


@compiled
def has_amounts(words: Words, row: int, gpus: int, milli: int, cpu: int, memory: int, disk: int, network: int) -> bool:
    """Whether a node has so much of everything, whatever its devices are cut into. For who asks many nodes, with what
    it asks for at hand."""
    return bool(
        words[row + FREE_GPUS] >= gpus
        and words[row + FREE_CPU] >= cpu
        and words[row + FREE_MEMORY] >= memory
        and words[row + FREE_DISK] >= disk
        and words[row + FREE_NETWORK] >= network
        and (words[row + FREE_GPUS] > 0 or words[row + FREE_PART] >= milli)
    )


@compiled
def cells_from(cpu: int, memory: int) -> int:
    """The cells of a plane at these steps or above, as bits."""
    row = (1 << STEPS) - (1 << memory)
    found = 0
    for step in range(cpu, STEPS):
        found |= row << (step * STEPS)
    return found


@compiled
def is_sure(words: Words, query: Words, pool: int, gpus: int, part: int, cpu: int, memory: int) -> bool:
    """Whether every node of a cell fits, without looking."""
    if query[DISK] or query[NETWORK] or (not gpus and (bound_of_part(part) < query[MILLI] or query[PIECE])):
        return False
    return bool(
        bound_of(cpu, words[pool + POOL_CPU]) >= query[CPU]
        and bound_of(memory, words[pool + POOL_MEMORY]) >= query[MEMORY]
    )


@compiled
def first_in_cell(words: Words, query: Words, pool: int, cell: int, sure: bool, after: int) -> int:
    """The lowest rank above `after` of a member in this cell that fits, or NOWHERE."""
    for zone in range((after + 1) // ZONE, words[pool + POOL_ZONES]):
        if _may_hold(words, query, zone_at(words, pool, cell, zone * ZONE)):
            rank = _first_in_zone(words, query, pool, cell, sure, zone * ZONE, after + 1)
            if rank != NOWHERE:
                return rank
    return NOWHERE


@compiled
def _may_hold(words: Words, query: Words, row: int) -> bool:
    """Whether the bounds of a region or zone let one task in."""
    return bool(words[row + REGION_CPU] >= query[CPU] and words[row + REGION_MEMORY] >= query[MEMORY])


@compiled
def _first_in_zone(words: Words, query: Words, pool: int, cell: int, sure: bool, begin: int, least: int) -> int:
    """The same for the members of one zone, from the rank `least` up; a vain look brings bounds nearer to the truth."""
    zone, cpu, memory = zone_at(words, pool, cell, begin), 0, 0
    regions = words[zone]
    while regions:
        first = begin + REGION * lowest_bit(regions)
        regions &= regions - 1
        region = region_at(words, pool, cell, first)
        if least < first + REGION and _may_hold(words, query, region):
            rank = _first_in_region(words, query, pool, cell, sure, first, least)
            if rank != NOWHERE:
                return rank
            if least <= first:
                _lower_bounds(words, pool, cell, first)
        cpu, memory = max(cpu, words[region + REGION_CPU]), max(memory, words[region + REGION_MEMORY])
    words[zone + REGION_CPU], words[zone + REGION_MEMORY] = cpu, memory
    return NOWHERE


@compiled
def _first_in_region(words: Words, query: Words, pool: int, cell: int, sure: bool, first: int, least: int) -> int:
    """The same for the members of one region, from the rank `least` up."""
    cells, members = words[AT_CELLS] + words[pool + POOL_FIRST], words[AT_MEMBERS] + words[pool + POOL_FIRST]
    size, chunks = words[pool + POOL_SIZE], words[region_at(words, pool, cell, first)]
    while chunks:
        begin = first + CHUNK * lowest_bit(chunks)
        chunks &= chunks - 1
        for rank in range(max(begin, least), min(size, begin + CHUNK)):
            if words[cells + rank] == cell and (sure or fits(words, query, words[members + rank])):
                return rank
    return NOWHERE


@compiled
def _lower_bounds(words: Words, pool: int, cell: int, first: int) -> None:
    """Nobody in a region fits: note how much its nodes really have at most, so that the next ask need not look."""
    cells, members = words[AT_CELLS] + words[pool + POOL_FIRST], words[AT_MEMBERS] + words[pool + POOL_FIRST]
    region, cpu, memory = region_at(words, pool, cell, first), 0, 0
    chunks = words[region]
    while chunks:
        begin = first + CHUNK * lowest_bit(chunks)
        chunks &= chunks - 1
        for rank in range(begin, min(words[pool + POOL_SIZE], begin + CHUNK)):
            if words[cells + rank] == cell:
                row = words[AT_NODES] + NODE_ROW * words[members + rank]
                cpu, memory = max(cpu, words[row + FREE_CPU]), max(memory, words[row + FREE_MEMORY])
    words[region + REGION_CPU], words[region + REGION_MEMORY] = cpu, memory


@compiled
def _best_in_plane(
    words: Words, query: Words, row: int, plane: int, wanted: int, best: int, best_score: int
) -> tuple[int, int]:
    """The best slot so far and its score, after the cells of one plane that are `wanted`."""
    pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
    word = words[words[pool + POOL_PLANES] + plane] & wanted
    if not word:
        return best, best_score
    devices, balances, fillings = places_in_table(words, query, row, plane)
    while word:
        bit = lowest_bit(word)
        word &= word - 1
        points = query[devices] + query[balances + bit // STEPS] + query[fillings + bit]
        if best != NOWHERE and points < best_score:
            continue
        sure = is_sure(words, query, pool, plane // PARTS, plane % PARTS, bit // STEPS, bit % STEPS)
        rank = first_in_cell(words, query, pool, plane * PLANE + bit, sure, NOWHERE)
        if rank == NOWHERE:
            continue
        slot = words[words[AT_MEMBERS] + words[pool + POOL_FIRST] + rank]
        if best == NOWHERE or points > best_score or slot < best:
            best, best_score = slot, points
    return best, best_score


@compiled
def find_single(words: Words, query: Words) -> int:
    """The slot for one task: the preferred pools first, in them the best score, then the lowest slot; or NOWHERE."""
    best, best_score, best_rank, least_part = NOWHERE, 0, 0, part_of(query[MILLI])
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        if best != NOWHERE and query[row + ROW_RANK] > best_rank:
            break
        best_rank = query[row + ROW_RANK]
        pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
        cpu, memory = words[pool + POOL_CPU], words[pool + POOL_MEMORY]
        wanted = cells_from(step_of(query[CPU], cpu), step_of(query[MEMORY], memory))
        for plane in range(query[GPUS] * PARTS, (words[pool + POOL_GPUS] + 1) * PARTS):
            is_worse = best != NOWHERE and bound_at(words, query, row, plane) < best_score
            if not is_worse and (plane >= PARTS or plane >= least_part):
                best, best_score = _best_in_plane(words, query, row, plane, wanted, best, best_score)
    return int(best)


@compiled
def find_place(words: Words, query: Words) -> tuple[int, int]:
    """The same slot, and which devices the task has there, as bits."""
    slot = find_single(words, query)
    if slot == NOWHERE:
        return slot, 0
    if query[MILLI]:
        return slot, 1 << tightest_device(words, slot, query[MILLI], 0)
    return slot, lowest_devices(words, slot, query[GPUS])


@compiled
def lowest_devices(words: Words, slot: int, count: int) -> int:
    """The lowest whole devices of a node, as bits."""
    free, taken = words[words[AT_NODES] + NODE_ROW * slot + FREE_MASK], 0
    for _ in range(count):
        low = free & -free
        taken |= low
        free ^= low
    return int(taken)


@compiled
def tightest_device(words: Words, slot: int, milli: int, before: int) -> int:
    """The device with the least left that `milli` of it can be had of, the lowest of those, leaving out `before`."""
    best, least = NOWHERE, DEVICE + 1
    begin = words[AT_DEVICES] + slot * words[DEVICES]
    for device in range(words[DEVICES]):
        left = words[begin + device]
        if milli <= left < least and not before >> device & 1:
            best, least = device, left
    return best
