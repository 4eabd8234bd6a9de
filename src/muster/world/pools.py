"""The lay-out of the fleet: which nodes are equal, which lie together, and where in the arena each of them stands.

Made anew whenever nodes join or change, or become more or less of a risk, from their traits and risks alone, so that
pools, ranks and domains are numbered by content: pools by what their nodes have in common, domains by the order of
their names, members by slot.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from muster.model.node import Flavor, Level, Place, Traits, flavor_of
from muster.units import Resources
from muster.world import arena as at

_LEVELS: Final = (Level.RACK, Level.BLOCK, Level.CLUSTER, Level.REGION)
_SHARE: Final = 1000

Spans: TypeAlias = list[tuple[int, int]]
Cuts: TypeAlias = Mapping[str, Flavor]
"""Flavors by name, of those whose devices are cut."""


class Pool(NamedTuple):
    """What nodes of one pool have in common: all that an ask can tell apart, but for what is free."""

    region: str
    cluster: str
    flavor: str
    capacity: tuple[int, int, int, int, int]
    taints: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    risk: int = 0
    overlays: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()


class Layout(NamedTuple):
    """Pools in their order, with their members; slots in the order of places; domains by level as spans of the level
    below, and the domain of each slot by level."""

    pools: list[Pool]
    members: list[list[int]]
    topology: list[int]
    spans: list[Spans]
    homes: list[list[int]]


def pool_of(
    traits: Traits,
    capacity: Resources,
    mentioned: frozenset[str],
    risk: int = 0,
    overlays: tuple[str, ...] = (),
    partitions: tuple[str, ...] = (),
) -> Pool:
    """The pool of a node; labels that nobody mentions make no difference."""
    amounts = (capacity.gpus, capacity.cpu_milli, capacity.memory_bytes, capacity.disk_bytes, capacity.network_mbps)
    labels = tuple(pair for pair in traits.labels if pair[0] in mentioned)
    place = traits.place
    flavor = flavor_of(traits, capacity)
    return Pool(place.region, place.cluster, flavor, amounts, traits.taints, labels, risk, overlays, partitions)


def lay_out(
    traits: Sequence[Traits],
    capacities: Sequence[Resources],
    mentioned: frozenset[str],
    risks: Mapping[int, int],
    overlays: Mapping[int, tuple[str, ...]],
    cuts: Cuts,
) -> Layout:
    """Number pools, members and domains by content."""
    by_pool: dict[Pool, list[int]] = {}
    for slot, (own, capacity) in enumerate(zip(traits, capacities, strict=True)):
        flavor = cuts.get(flavor_of(own, capacity))
        names = () if flavor is None else tuple(each.name for each in flavor.partitions)
        pool = pool_of(own, capacity, mentioned, risks.get(slot, 0), overlays.get(slot, ()), names)
        by_pool.setdefault(pool, []).append(slot)
    pools = sorted(by_pool)
    places = [own.place for own in traits]
    topology = sorted(range(len(traits)), key=lambda slot: (*_path(places[slot]), slot))
    spans, homes = _domains(places, topology)
    return Layout(pools, [by_pool[pool] for pool in pools], topology, spans, homes)


def write_arena(layout: Layout, capacities: Sequence[Resources], prices: Mapping[str, int]) -> array[int]:
    """An arena in which every node is empty, closed and not in the index."""
    count, devices = len(capacities), max((capacity.gpus for capacity in capacities), default=0)
    words = array("q", bytes(8 * at.HEADER))
    words[at.NODES], words[at.DEVICES], words[at.POOLS] = count, devices, len(layout.pools)
    words[at.DOMAIN_WIDTH] = at.DOMAIN_NODES + devices + 1
    _section(words, at.AT_NODES, at.NODE_ROW * count)
    _section(words, at.AT_DEVICES, devices * count)
    _section(words, at.AT_SLOTS, devices * count)
    _write_nodes(words, layout, capacities)
    _section(words, at.AT_POOLS, at.POOL_ROW * len(layout.pools))
    _write_list(words, at.AT_MEMBERS, [slot for members in layout.members for slot in members])
    _write_list(words, at.AT_CELLS, [at.NOWHERE] * count)
    _write_list(words, at.AT_TOPOLOGY, layout.topology)
    _write_domains(words, layout.spans)
    _write_homes(words, layout.homes)
    words[at.AT_INDEX] = len(words)
    _write_pools(words, layout, prices)
    return words


def _path(place: Place) -> tuple[str, str, str, str]:
    return (place.region, place.cluster, place.block, place.rack)


def _domains(places: Sequence[Place], topology: list[int]) -> tuple[list[Spans], list[list[int]]]:
    """Domains level by level: each is a span of the level below, which is in the same order."""
    spans: list[Spans] = []
    homes: list[list[int]] = []
    below = list(range(len(topology)))  # the child of each position: itself
    for level in _LEVELS:
        here, number, last = [0] * len(topology), -1, None
        found: Spans = []
        for position, slot in enumerate(topology):
            path = places[slot].path(level)
            if path != last:
                number, last = number + 1, path
                found.append((below[position], below[position]))
            found[number] = (found[number][0], below[position] + 1)
            here[position] = number
        home = [0] * len(topology)
        for position, slot in enumerate(topology):
            home[slot] = here[position]
        spans.append(found)
        homes.append(home)
        below = here
    spans.append([(0, len(spans[-1]))])
    return spans, homes


def _section(words: array[int], header: int, size: int) -> int:
    words[header] = len(words)
    words.frombytes(bytes(8 * size))
    return words[header]


def _write_list(words: array[int], header: int, values: Iterable[int]) -> None:
    words[header] = len(words)
    words.extend(values)


def _write_nodes(words: array[int], layout: Layout, capacities: Sequence[Resources]) -> None:
    devices = words[at.DEVICES]
    for pool, members in enumerate(layout.members):
        amounts = layout.pools[pool].capacity
        free = (amounts[0], amounts[1], amounts[2], 0, amounts[3], amounts[4])
        for rank, slot in enumerate(members):
            row = array("q", (0, pool, *free, (1 << amounts[0]) - 1, rank))
            begin = words[at.AT_NODES] + slot * at.NODE_ROW
            words[begin : begin + at.DOMAINS] = row
    for slot, node in enumerate(capacities):
        begin = words[at.AT_DEVICES] + slot * devices
        words[begin : begin + node.gpus] = array("q", [at.DEVICE]) * node.gpus


def _write_domains(words: array[int], spans: Sequence[Spans]) -> None:
    """Rows of all levels, the racks first; the fleet is one domain of regions."""
    first = 0
    for offset, level in enumerate(spans):
        words[at.AT_LEVEL + offset] = first
        first += len(level)
    words[at.AT_LEVEL + len(spans)] = first
    nothing = [0] * (words[at.DOMAIN_WIDTH] - at.DOMAIN_GPU_MILLI)
    rows = ((begin, end, *nothing) for level in spans for begin, end in level)
    _write_list(words, at.AT_DOMAINS, (value for row in rows for value in row))


def _write_homes(words: array[int], homes: Sequence[Sequence[int]]) -> None:
    """Where the rows of each node's domains are."""
    width, rows = words[at.DOMAIN_WIDTH], words[at.AT_DOMAINS]
    for level, home in enumerate([*homes, [0] * words[at.NODES]]):
        first = rows + words[at.AT_LEVEL + level] * width
        for slot, domain in enumerate(home):
            words[words[at.AT_NODES] + slot * at.NODE_ROW + at.DOMAINS + level] = first + domain * width


def _write_pools(words: array[int], layout: Layout, prices: Mapping[str, int]) -> None:
    """Rows of pools, and room for the index of each."""
    first, total = 0, len(layout.topology)
    dearest = max((prices.get(pool.flavor, 0) for pool in layout.pools), default=0) or 1
    kinds: dict[Pool, int] = {}
    for pool, members in zip(layout.pools, layout.members, strict=True):
        kinds[_kind(pool)] = kinds.get(_kind(pool), 0) + len(members)
    for number, (pool, members) in enumerate(zip(layout.pools, layout.members, strict=True)):
        row = words[at.AT_POOLS] + at.POOL_ROW * number
        planes = (pool.capacity[0] + 1) * at.PARTS
        zones = -(-len(members) // at.ZONE)
        width = zones + -(-len(members) // at.REGION)
        words[row + at.POOL_SIZE] = len(members)
        words[row + at.POOL_GPUS : row + at.POOL_FIRST] = array("q", pool.capacity[:3])
        words[row + at.POOL_FIRST] = first
        words[row + at.POOL_PLANES] = len(words)
        words[row + at.POOL_COUNTS] = len(words) + planes
        words[row + at.POOL_REGIONS] = len(words) + planes + planes * at.PLANE
        words[row + at.POOL_ZONES], words[row + at.POOL_WIDTH] = zones, width
        words[row + at.POOL_SCARCITY] = _SHARE - _SHARE * kinds[_kind(pool)] // total
        words[row + at.POOL_COST] = _SHARE * prices.get(pool.flavor, 0) // dearest
        words[row + at.POOL_RISK] = pool.risk
        words.frombytes(bytes(8 * (planes + planes * at.PLANE * (1 + width * at.REGION_ROW))))
        first += len(members)


def _kind(pool: Pool) -> Pool:
    """A pool but for its risk and its overlays, which make nobody rare."""
    return pool._replace(risk=0, overlays=())


def copy_free(before: array[int], after: array[int], slot: int) -> None:
    """Let a node have free in one arena what it has in another."""
    for field in (*at.FREE, at.FREE_MASK):
        place = at.NODE_ROW * slot + field
        after[after[at.AT_NODES] + place] = before[before[at.AT_NODES] + place]
    width = min(before[at.DEVICES], after[at.DEVICES])
    begin, source = after[at.AT_DEVICES] + slot * after[at.DEVICES], before[at.AT_DEVICES] + slot * before[at.DEVICES]
    after[begin : begin + width] = before[source : source + width]
    begin, source = after[at.AT_SLOTS] + slot * after[at.DEVICES], before[at.AT_SLOTS] + slot * before[at.DEVICES]
    after[begin : begin + width] = before[source : source + width]


def is_bound(words: array[int], place: int) -> bool:
    """Whether a word of the index is a bound, which may be above the truth."""
    for pool in range(words[at.POOLS]):
        row = words[at.AT_POOLS] + at.POOL_ROW * pool
        offset = place - words[row + at.POOL_REGIONS]
        size = (words[row + at.POOL_GPUS] + 1) * at.PARTS * at.PLANE * words[row + at.POOL_WIDTH] * at.REGION_ROW
        if 0 <= offset < size:
            return offset % at.REGION_ROW != at.REGION_PARTS
    return False
