"""Masks: which pools an ask may use, and which of them it would rather. Judged once per pool: its nodes are equal.

A taint keeps everybody off who does not tolerate it. A label is asked for as `key=value`, `key!=value` or `key`.
Flavors are tried in the order in which they are named, or, with `any_flavor`, as if they were one. A gang that takes
devices keeps to one flavor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.model.spec import Needs
from muster.units import Resources
from muster.world.pools import Pool


def find_rows(pools: Sequence[Pool], ask: Resources, needs: Needs) -> list[tuple[int, int, int]]:
    """For each pool that may be used: its number, its rank of preference and its group, the preferred first."""
    flavors = needs.flavors or tuple(sorted({pool.flavor for pool in pools}))
    found: list[tuple[int, int, int, int]] = []
    for number, pool in enumerate(pools):
        if pool.flavor in flavors and may_use(pool, needs) and _is_large(pool, ask):
            place = flavors.index(pool.flavor)
            rank = place if needs.flavors and not needs.any_flavor else 0
            found.append((rank, place if ask.gpus or ask.gpu_milli else rank, number, 0))
    found.sort()
    groups = sorted({(rank, group) for rank, group, _, _ in found})
    return [(number, rank, groups.index((rank, group))) for rank, group, number, _ in found]


def may_use(pool: Pool, needs: Needs) -> bool:
    """Whether taints and labels let an ask in."""
    labels = dict(pool.labels)
    tolerated = all(taint in needs.tolerates for taint in pool.taints)
    return tolerated and all(_matches(labels, wish) for wish in needs.labels)


def keys_of(needs: Needs) -> frozenset[str]:
    """The labels that an ask mentions."""
    return frozenset(_split(wish)[0] for wish in needs.labels)


def _is_large(pool: Pool, ask: Resources) -> bool:
    """Whether one task fits on an empty node of the pool."""
    gpus, cpu, memory, disk, network = pool.capacity
    return (
        gpus >= ask.gpus
        and (gpus > 0 or not ask.gpu_milli)
        and cpu >= ask.cpu_milli
        and memory >= ask.memory_bytes
        and disk >= ask.disk_bytes
        and network >= ask.network_mbps
    )


def _matches(labels: Mapping[str, str], wish: str) -> bool:
    key, mark, value = _split(wish)
    if not mark:
        return key in labels
    return (labels.get(key) == value) == (mark == "=")


def _split(wish: str) -> tuple[str, str, str]:
    key, mark, value = wish.partition("!=")
    if mark:
        return key, mark, value
    return wish.partition("=")
