"""Score terms, compiled: integers from 0 to 1000, by which one place is better than another. The one table of them.

A term sees a node as the index does, as a cell of its pool: whole devices free, the largest broken device, steps of CPU
and memory. So nodes of one cell score alike, and the search compares cells instead of nodes. Each term looks at devices
alone, at devices and CPU, or at CPU and memory; so the score of a cell is a sum of three numbers, which are written
down once per class and pool. The weights come with the query, from the Profile; a weight of 0 switches a term off.

Adding a term: a function here, its line in one of the three sums, its weight in `query` and in `muster.model.profile`.
"""

from __future__ import annotations

from muster.scheduler.query import (
    BALANCE,
    COST,
    FILLING,
    FITTING,
    GPUS,
    MENDING,
    MILLI,
    MIX_COUNT,
    PACKING,
    POOL_COUNT,
    POOL_ROWS,
    ROW,
    ROW_POOL,
    ROW_TABLE,
    SCARCITY,
    SPARING,
    STEADINESS,
)
from muster.world.arena import (
    AT_POOLS,
    PARTS,
    PLANE,
    POOL_COST,
    POOL_GPUS,
    POOL_RISK,
    POOL_ROW,
    POOL_SCARCITY,
    RISKIEST,
    STEPS,
)
from muster.world.compiled import Words, compiled

FULL = 1000


@compiled
def packing(most: int, left: int) -> int:
    """Whole devices: the fewer a node has left, the better it was filled."""
    return FULL * (most - left) // most if most else 0


@compiled
def filling(cpu: int, memory: int) -> int:
    """CPU and memory: a fuller node before an emptier one."""
    return FULL * (2 * (STEPS - 1) - cpu - memory) // (2 * (STEPS - 1))


@compiled
def balance(most: int, left: int, cpu: int) -> int:
    """What is left should be usable together: devices without CPU are stranded, and CPU without devices is idle."""
    if not most:
        return FULL
    return FULL - FULL * abs((STEPS - 1) * left - most * cpu) // ((STEPS - 1) * most)


@compiled
def sparing(wants_devices: int, most: int, left: int) -> int:
    """Work that needs no device keeps off nodes whose devices are free."""
    return FULL if wants_devices or not most else FULL - FULL * left // most


@compiled
def mending(milli: int, part: int) -> int:
    """A share of a device goes to one that is broken already, if one surely has room."""
    return FULL if milli and bound_of_part(part) >= milli else 0


@compiled
def steadiness(risk: int) -> int:
    """A node that failed again and again of late comes after one that did not."""
    return FULL - FULL * risk // RISKIEST


@compiled
def fitting(query: Words, most: int, before: int, after: int) -> int:
    """What is left should be of use to those who are there: devices that are no multiple of a size are stranded for it.
    The fewer a placement strands for the mix, each size by its weight, the better; half of all if nothing changes."""
    mix = POOL_ROWS + ROW * query[POOL_COUNT]
    stranded, worst = 0, 0
    for pair in range(mix, mix + 2 * query[MIX_COUNT], 2):
        size, weight = query[pair], query[pair + 1]
        stranded += weight * (after % size - before % size)
        worst += weight * min(most, size - 1)
    return FULL * (worst - stranded) // (2 * worst) if worst else FULL


@compiled
def left_of(query: Words, gpus: int, part: int) -> int:
    """Whole devices that a task leaves free for sure of so many: a share breaks one unless it surely mends."""
    if query[MILLI]:
        return max(0, gpus - int(bound_of_part(part) < query[MILLI]))
    return int(gpus - query[GPUS])


@compiled
def bound_of_part(part: int) -> int:
    """The least that the largest broken device has left at a step."""
    if part <= 1:
        return part
    return 250 if part == 2 else 500


@compiled
def device_points(words: Words, query: Words, pool: int, gpus: int, part: int) -> int:
    """All terms that look at the pool and at devices alone."""
    most, wants_devices = words[pool + POOL_GPUS], int(query[GPUS] + query[MILLI] > 0)
    return int(
        query[PACKING] * packing(most, gpus - query[GPUS])
        + query[SPARING] * sparing(wants_devices, most, gpus)
        + query[MENDING] * mending(query[MILLI], part)
        + query[SCARCITY] * (FULL - words[pool + POOL_SCARCITY])
        + query[COST] * (FULL - words[pool + POOL_COST])
        + query[STEADINESS] * steadiness(words[pool + POOL_RISK])
        + query[FITTING] * fitting(query, most, gpus, left_of(query, gpus, part))
    )


@compiled
def balance_points(words: Words, query: Words, pool: int, gpus: int, cpu: int) -> int:
    """All terms that look at devices and CPU."""
    return int(query[BALANCE] * balance(words[pool + POOL_GPUS], gpus - query[GPUS], cpu))


@compiled
def filling_points(query: Words, cpu: int, memory: int) -> int:
    """All terms that look at CPU and memory."""
    return int(query[FILLING] * filling(cpu, memory))


@compiled
def table_size(words: Words, pool: int) -> int:
    """Words that the table of one pool needs: points and bounds by plane, by devices and CPU, by CPU and memory."""
    devices = words[words[AT_POOLS] + POOL_ROW * pool + POOL_GPUS] + 1
    return int(devices * (2 * PARTS + STEPS) + PLANE)


@compiled
def write_table(words: Words, query: Words, row: int) -> None:
    """Write down the three sums of a query's pool, and for each plane the best that a cell in it could have."""
    pool, at = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL], query[row + ROW_TABLE]
    devices, most = words[pool + POOL_GPUS] + 1, 0
    balances, fillings = at + 2 * PARTS * devices, at + (2 * PARTS + STEPS) * devices
    for bit in range(PLANE):
        query[fillings + bit] = filling_points(query, bit // STEPS, bit % STEPS)
        most = max(most, query[fillings + bit])
    for gpus in range(devices):
        best = 0
        for cpu in range(STEPS):
            query[balances + gpus * STEPS + cpu] = balance_points(words, query, pool, gpus, cpu)
            best = max(best, query[balances + gpus * STEPS + cpu])
        for part in range(PARTS):
            plane = gpus * PARTS + part
            query[at + plane] = device_points(words, query, pool, gpus, part)
            query[at + PARTS * devices + plane] = query[at + plane] + best + most


@compiled
def bound_at(words: Words, query: Words, row: int, plane: int) -> int:
    """The best that a cell of a plane could score."""
    pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
    return int(query[query[row + ROW_TABLE] + PARTS * (words[pool + POOL_GPUS] + 1) + plane])


@compiled
def places_in_table(words: Words, query: Words, row: int, plane: int) -> tuple[int, int, int]:
    """Where in the table the three sums of the cells of a plane are: that of the plane, those by CPU, and those by CPU
    and memory. For who adds up many: what is added is what `score_at` adds."""
    devices = words[words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL] + POOL_GPUS] + 1
    at = query[row + ROW_TABLE]
    balances = at + 2 * PARTS * devices
    return at + plane, balances + plane // PARTS * STEPS, balances + STEPS * devices


@compiled
def score_at(words: Words, query: Words, row: int, plane: int, bit: int) -> int:
    """The weighted sum of all terms for placing one task on a node of a cell, from the table."""
    devices, balances, fillings = places_in_table(words, query, row, plane)
    return int(query[devices] + query[balances + bit // STEPS] + query[fillings + bit])
