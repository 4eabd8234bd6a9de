"""Fleets and asks for the benchmarks of placement: racks, blocks and flavors; CPU and memory that strand devices."""

from __future__ import annotations

import random
from typing import Final

from muster.model.node import Place, Traits
from muster.units import Resources
from muster.world.fleet import Fleet

NODE: Final = Resources(8, 96_000, 1 << 40)
RACK: Final = 32
BLOCK: Final = 16
"""Nodes in a rack, racks in a block."""


def make_fleet(nodes: int) -> Fleet:
    """Equal nodes of 8 GPUs in racks and blocks of one cluster."""
    fleet = Fleet()
    for slot in range(nodes):
        fleet.join(slot, f"node-{slot:05d}", NODE, make_traits(slot))
    assert len(fleet.words)
    return fleet


def make_traits(slot: int) -> Traits:
    """Where a node stands."""
    rack = slot // RACK
    return Traits("h100", Place("eu", "alpha", f"block-{rack // BLOCK:03d}", f"rack-{rack:04d}"))


def make_asks(count: int, seed: int) -> list[Resources]:
    """One to eight GPUs or a share of one, each with CPU and memory from half to twice its part of a node."""
    dice = random.Random(seed)
    asks: list[Resources] = []
    for gpus in dice.choices((0, 1, 2, 4, 8), (15, 40, 20, 15, 10), k=count):
        part = gpus * 1000 or dice.choice((250, 300, 500, 700))
        cpu = min(NODE.cpu_milli, part * 12 * dice.choice((50, 100, 100, 125, 150, 200)) // 100)
        memory = min(
            NODE.memory_bytes, part * (NODE.memory_bytes // 8000) * dice.choice((50, 75, 100, 100, 150)) // 100
        )
        asks.append(Resources(gpus, cpu, memory, 0 if gpus else part))
    return asks
