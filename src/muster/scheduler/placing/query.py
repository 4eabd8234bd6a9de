"""A query: one class of asks as compiled code reads it. The words of an ask, its limits in space, weights, and pools.

Made once per class and lay-out of the fleet; everything a search needs to know about the ask is in it.
"""

from __future__ import annotations

from typing import Final

GPUS, MILLI, CPU, MEMORY, DISK, NETWORK = range(6)
GANG, NEAR, WITHIN, SPREAD, SPREAD_MOST, SLICE, SLICE_TASKS = range(6, 13)
NO_LEVEL: Final = -1

PACKING, FILLING, BALANCE, SPARING, MENDING, SCARCITY, COST, STEADINESS, FITTING = range(13, 22)
CHANCE, ALIGNMENT, CLUSTERING, BREAKING, SNUGNESS, FRAGMENTS, PATTERN, PRICE, DISPLACEMENT, STRANDING = range(22, 32)
"""The weights of the score terms, in the order of the Profile: those that see a cell, and those that see a node."""

MIX_COUNT: Final = 32
"""How many pairs of the mix, a size and its weight, stand behind the rows of pools."""

POOL_COUNT: Final = 33
AT_MEMO: Final = 34
"""Where it is noted what each node scored, if a term sees nodes: see `muster.scheduler.placing.exact`."""
PIECE, STARTS = range(35, 37)
"""How many slots of a device it takes, if it takes a partition, and in which that may begin, as bits."""
POOL_ROWS: Final = 37
"""From here on a row per pool that may be used, the preferred ones first."""
ROW_POOL, ROW_RANK, ROW_GROUP, ROW_TABLE = range(4)
ROW: Final = 4
"""Pool, rank of preference (a lower one wins whatever the score), group (a gang keeps to one of them), and where in the
query the table of scores for this pool begins."""
