"""Masks: which pools an ask may use, and which of them it would rather. Judged once per pool: its nodes are equal.

A taint keeps everybody off who does not tolerate it. A label is asked for as `key=value`, `key!=value` or `key`.
Flavors are tried in the order in which they are named, or, with `any_flavor`, as if they were one; where they are
equals, the one that is fastest for the work comes first, and then the cluster that is nearest to its data. A gang that
takes devices keeps to one flavor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from muster.model.node import LEVELS, Level, fulfils, split_wish
from muster.model.partition import DEVICES_CUT_MAX
from muster.model.spec import Needs
from muster.units import Resources
from muster.world.pools import Pool
from muster.world.tables import NO_TABLES, Tables

Wish: TypeAlias = tuple[int, int, int]
"""Place in the order of flavors, slowness, distance: the lower is preferred."""


def find_rows(
    pools: Sequence[Pool], ask: Resources, needs: Needs, tables: Tables = NO_TABLES
) -> list[tuple[int, int, int]]:
    """For each pool that may be used: its number, its rank of preference and its group, the preferred first."""
    flavors = needs.flavors or tuple(sorted({pool.flavor for pool in pools}))
    found: list[tuple[Wish, int, int]] = []
    for number, pool in enumerate(pools):
        if pool.flavor in flavors and may_use(pool, needs) and _is_cut(pool, ask, needs) and _is_large(pool, ask):
            place = flavors.index(pool.flavor)
            wish = _find_wish(pool, needs, place, tables)
            found.append((wish, place if ask.gpus or ask.gpu_milli else 0, number))
    found.sort()
    ranks = sorted({wish for wish, _, _ in found})
    groups = sorted({(wish, group) for wish, group, _ in found})
    return [(number, ranks.index(wish), groups.index((wish, group))) for wish, group, number in found]


def _find_wish(pool: Pool, needs: Needs, place: int, tables: Tables) -> Wish:
    """How much a pool is preferred. Whoever may span clusters is near to its data in none of them."""
    order = place if needs.flavors and not needs.any_flavor else 0
    is_near = bool(needs.data) and LEVELS[needs.within or "cluster"] <= Level.CLUSTER
    return order, tables.slowness(needs, pool), tables.distance(needs, pool) if is_near else 0


def may_use(pool: Pool, needs: Needs) -> bool:
    """Whether taints and labels let an ask in."""
    labels = dict(pool.labels)
    tolerated = all(taint in needs.tolerates for taint in pool.taints)
    return tolerated and all(fulfils(labels, wish) for wish in needs.labels)


def keys_of(needs: Needs) -> frozenset[str]:
    """The labels that an ask mentions."""
    return frozenset(split_wish(wish)[0] for wish in needs.labels)


def _is_cut(pool: Pool, ask: Resources, needs: Needs) -> bool:
    """Whether devices are cut as an ask wants it: whole ones are never in the way, shares are had of uncut ones."""
    if needs.partition:
        return needs.partition in pool.partitions and pool.capacity[0] <= DEVICES_CUT_MAX
    return not (ask.gpu_milli and pool.partitions)


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
