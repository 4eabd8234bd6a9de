"""The arena: every number of the fleet in one run of int64 words, and the map of where each stands.

One array is one argument for compiled code and one memcpy for a fork. The first words are offsets of the sections:

    nodes     rows by slot: what is free, which pool and which domains
    devices   thousandths left of each device, by slot
    slots     which parts of each device are taken by partitions, by slot, as bits
    pools     rows: what the nodes of a pool have in common, and where its index lies
    members   slots by pool, in the order of slots; cells by pool, in the same order
    topology  slots in the order of places, so that every domain is a range of them
    domains   rows by level: the range of children, what is free in them, how many nodes have so many devices free
    index     by pool: which cells are not empty; by cell, zone and region of members: where, and how much at most

A *cell* is what the index sees of a free vector: whole devices exactly, the largest broken device in quarters, CPU and
memory in seven steps of what the node has. Nothing here decides, and nothing here knows a name.
"""

from __future__ import annotations

from typing import Final

# -- header ------------------------------------------------------------------------------------------------------------
NODES, DEVICES, POOLS, DOMAIN_WIDTH = range(4)
AT_NODES, AT_DEVICES, AT_POOLS, AT_MEMBERS, AT_CELLS, AT_TOPOLOGY, AT_DOMAINS, AT_INDEX = range(4, 12)
AT_LEVEL: Final = 12  # ... and five more: where the domains of each level begin, counted in domains, and where all end
AT_SLOTS: Final = 18
HEADER: Final = 24

# -- node rows ---------------------------------------------------------------------------------------------------------
(
    OPEN,
    POOL,
    FREE_GPUS,
    FREE_CPU,
    FREE_MEMORY,
    FREE_PART,
    FREE_DISK,
    FREE_NETWORK,
    FREE_MASK,
    RANK,
    DOMAINS,  # offsets of the rows of its rack, block, cluster and region, and of the fleet
) = range(11)
DOMAIN_LEVELS: Final = 5
NODE_ROW: Final = DOMAINS + DOMAIN_LEVELS
FREE: Final = (FREE_GPUS, FREE_CPU, FREE_MEMORY, FREE_PART, FREE_DISK, FREE_NETWORK)
"""In the order of `Resources`, where the largest broken device stands for a share of one."""

# -- pool rows ---------------------------------------------------------------------------------------------------------
(
    POOL_SIZE,
    POOL_GPUS,
    POOL_CPU,
    POOL_MEMORY,
    POOL_FIRST,  # of its members
    POOL_PLANES,  # offset of one word per plane: which of its cells are not empty
    POOL_COUNTS,  # offset of one word per cell: how many nodes are in it
    POOL_REGIONS,  # offset of the rows of each cell: one per zone, then one per region, saying what the cell has there
    POOL_ZONES,
    POOL_WIDTH,  # rows of a cell: zones and regions
    POOL_SCARCITY,
    POOL_COST,
    POOL_RISK,
) = range(13)
POOL_ROW: Final = 13

# -- rows of regions and zones -----------------------------------------------------------------------------------------
REGION_PARTS, REGION_CPU, REGION_MEMORY = range(3)
"""Which chunks of a region, or regions of a zone, have a node in the cell, as bits; at least the most CPU and the most
memory that one of those has. A zone's bounds are not below those of its regions."""
REGION_ROW: Final = 3

# -- domain rows -------------------------------------------------------------------------------------------------------
CHILD_FIRST, CHILD_END, DOMAIN_GPU_MILLI, DOMAIN_CPU, DOMAIN_NODES = range(5)
"""From DOMAIN_NODES on: how many open nodes have 0, 1, 2, ... whole devices free. A row is DOMAIN_WIDTH words."""

# -- cells -------------------------------------------------------------------------------------------------------------
STEPS: Final = 7
"""Steps of CPU and memory: below 1/16, 1/8, 1/4, 1/2, 3/4, below all, all of what the node has."""
PLANE: Final = STEPS * STEPS
PARTS: Final = 4
"""Steps of the largest broken device: none, below 1/4, below 1/2, more."""
CHUNK: Final = 16
"""Members in a chunk."""
REGION: Final = 32 * CHUNK
"""Members in a region."""
ZONE: Final = 16 * REGION
"""Members in a zone."""
NOWHERE: Final = -1
RISKIEST: Final = 2
"""The highest risk that a node can have: see `muster.world.losses`."""
DEVICE: Final = 1000
"""A whole device, in thousandths."""
