"""Score terms, compiled: integers from 0 to 1000, by which one place is better than another. The one table of them.

A term sees a node as the index does, as a cell of its pool: whole devices free, the largest broken device, steps of CPU
and memory. So nodes of one cell score alike, and the search compares cells instead of nodes. The weights come with the
query, from the Profile; a weight of 0 switches a term off. Adding a term: a function here, its line in `score`, its
weight in `query` and `profile`.
"""

from __future__ import annotations

from muster.scheduler.query import (
    BALANCE,
    COST,
    FILLING,
    GPUS,
    MENDING,
    MILLI,
    PACKING,
    SCARCITY,
    SPARING,
)
from muster.world.arena import POOL_COST, POOL_GPUS, POOL_SCARCITY, STEPS
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
def bound_of_part(part: int) -> int:
    """The least that the largest broken device has left at a step."""
    if part <= 1:
        return part
    return 250 if part == 2 else 500


@compiled
def score(words: Words, query: Words, pool: int, gpus: int, part: int, cpu: int, memory: int) -> int:
    """The weighted sum of all terms for placing one task on a node of this cell."""
    most, left = words[pool + POOL_GPUS], gpus - query[GPUS]
    wants_devices = int(query[GPUS] + query[MILLI] > 0)
    return int(
        query[PACKING] * packing(most, left)
        + query[FILLING] * filling(cpu, memory)
        + query[BALANCE] * balance(most, left, cpu)
        + query[SPARING] * sparing(wants_devices, most, gpus)
        + query[MENDING] * mending(query[MILLI], part)
        + query[SCARCITY] * (FULL - words[pool + POOL_SCARCITY])
        + query[COST] * (FULL - words[pool + POOL_COST])
    )
