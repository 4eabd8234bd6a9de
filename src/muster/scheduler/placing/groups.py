"""Where a gang of several groups goes: all of it or nothing, in the tightest domain that holds all groups together.

Levels are tried from the tightest up, and of the domains of a level the one with the least free first, as for a gang of
one kind. A domain is passed over if one group alone does not fit there. In a domain, one group after the other is put
down as a gang of its own would be, those with the most devices first; what is left of nodes that they share may then be
too little, though another division would do. So before a domain is given up, all divisions of its nodes are counted,
the best rest for each number of tasks. That is exact up to a stated limit of tries.

Devices of one gang are of one flavor, whatever group takes them; groups without devices go wherever they may.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import astuple

from muster.model.group import Group
from muster.model.node import LEVELS
from muster.model.phase import Lease
from muster.model.spec import Needs
from muster.scheduler.placing import gang as gangs
from muster.scheduler.placing.masks import find_rows
from muster.scheduler.placing.single import lowest_devices
from muster.units import Resources
from muster.world import arena as at
from muster.world.compiled import Words
from muster.world.fleet import Fleet

TRIES_MAX: Final = 200_000
"""How many divisions of one domain are looked at: beyond that, a gang that would just fit may wait."""

Pools: TypeAlias = tuple[int, ...]
Mix: TypeAlias = tuple[int, ...]
"""So many tasks of each group."""


class Search(NamedTuple):
    """What a search knows of each group: its query, and how many tasks of it alone fit on each node and domain. The
    `doubts` are domains that were given up at the limit of tries."""

    fleet: Fleet
    desk: Words
    groups: tuple[Group, ...]
    queries: list[Words]
    on_nodes: list[list[int]]
    in_domains: list[list[int]]
    doubts: list[int]


class _Division(NamedTuple):
    """A way to divide the tasks among some nodes: how many of the largest group are left, and who got what last."""

    left: int
    before: _Division | None
    slot: int
    mix: Mix


def pools_of(fleet: Fleet, needs: Needs, pools: Pools | None) -> Iterator[list[Pools]]:
    """The pools of each group, flavor by flavor in the order of preference."""
    rows = [_keep(find_rows(fleet.pools, group.ask, needs, fleet.tables), pools) for group in needs.groups]
    devices = [place for place, group in enumerate(needs.groups) if group.ask.gpus]
    if not devices:
        yield [tuple(number for number, _ in each) for each in rows]
        return
    first = rows[devices[0]]
    for order in sorted({order for _, order in first}):
        own = {number for number, its in first if its == order}
        flavors = {fleet.pools[number].flavor for number in own}
        found: list[Pools] = []
        for place, each in enumerate(rows):
            alike = own if place == devices[0] else {x for x, _ in each if fleet.pools[x].flavor in flavors}
            found.append(tuple(x for x, _ in each if place not in devices or x in alike))
        yield found


def _keep(rows: list[tuple[int, int, int]], pools: Pools | None) -> list[tuple[int, int]]:
    return [(number, group) for number, _, group in rows if pools is None or number in pools]


def find_in_tightest(search: Search, needs: Needs) -> list[Lease] | None:
    """Leases for all groups, in the order of the groups; None if they do not all fit."""
    for level in range(LEVELS[needs.near or "node"], LEVELS[needs.within or "cluster"] + 1):
        for domain in _candidates(search, level):
            leases = _pack(search, level, domain)
            if leases is not None:
                return leases
    return None


def _candidates(search: Search, level: int) -> list[int]:
    """The domains of a level in which each group fits by itself, the one with the least free first."""
    words = search.fleet.words
    base = 0 if level == gangs.NODE_LEVEL else int(words[at.AT_LEVEL + level - 1])
    count = int(words[at.NODES]) if level == gangs.NODE_LEVEL else int(words[at.AT_LEVEL + level]) - base
    rooms = search.on_nodes if level == gangs.NODE_LEVEL else search.in_domains
    fitting = list(range(count))
    for group, room in zip(search.groups, rooms, strict=True):  # most are ruled out by the first
        fitting = [domain for domain in fitting if room[base + domain] >= group.tasks]
    return sorted(fitting, key=lambda domain: (*_free_in(search, level, domain), domain))


def _free_in(search: Search, level: int, domain: int) -> tuple[int, ...]:
    words = search.fleet.words
    if level == gangs.NODE_LEVEL:
        row = words[at.AT_NODES] + at.NODE_ROW * words[words[at.AT_TOPOLOGY] + domain]
        return int(words[row + at.FREE_GPUS]), int(words[row + at.FREE_CPU])
    row = words[at.AT_DOMAINS] + (words[at.AT_LEVEL + level - 1] + domain) * words[at.DOMAIN_WIDTH]
    has_devices = any(group.ask.gpus for group in search.groups)
    return (int(words[row + (at.DOMAIN_GPU_MILLI if has_devices else at.DOMAIN_CPU)]),)


def domains_of(words: Words, level: int, has_devices: bool) -> list[tuple[int, int]]:
    """The domains of a level above nodes, each with its row among those of all levels, the one with the least free
    first."""
    base, end = int(words[at.AT_LEVEL + level - 1]), int(words[at.AT_LEVEL + level])
    field = at.DOMAIN_GPU_MILLI if has_devices else at.DOMAIN_CPU
    rows = int(words[at.AT_DOMAINS]), int(words[at.DOMAIN_WIDTH])
    free = [int(words[rows[0] + rows[1] * row + field]) for row in range(base, end)]
    return sorted(((row - base, row) for row in range(base, end)), key=lambda pair: (free[pair[0]], pair[0]))


def _pack(search: Search, level: int, domain: int) -> list[Lease] | None:
    """One group after the other, in two orders; or whatever division there is."""
    asks = [astuple(group.ask) for group in search.groups]
    by_devices = sorted(range(len(asks)), key=lambda place: (tuple(-x for x in asks[place]), place))
    by_cpu = sorted(range(len(asks)), key=lambda place: (-asks[place][1], -asks[place][2], place))
    for order in (by_devices, by_cpu) if by_cpu != by_devices else (by_devices,):
        leases = _pack_in_order(search, level, domain, order)
        if leases is not None:
            return leases
    division = _divide(search, level, domain)
    return None if division is None else _write(search, division)


def _pack_in_order(search: Search, level: int, domain: int, order: Sequence[int]) -> list[Lease] | None:
    fleet, found = search.fleet, dict[int, list[Lease]]()
    for place in order:
        leases = gangs.read_leases(
            fleet.words, search.desk, gangs.find_within(fleet.words, search.queries[place], search.desk, level, domain)
        )
        if not leases:
            break
        found[place] = leases
        _show(fleet, search.groups[place].ask, leases, 1)
    for place, leases in found.items():
        _show(fleet, search.groups[place].ask, leases, -1)
    return [lease for place in sorted(found) for lease in found[place]] if len(found) == len(order) else None


def _show(fleet: Fleet, ask: Resources, leases: Sequence[Lease], sign: int) -> None:
    for lease in leases:
        fleet.show(lease.slot, ask, sign * lease.tasks, lease.devices)


def _divide(search: Search, level: int, domain: int) -> _Division | None:
    """Some division of all tasks among the nodes of a domain. After each node, for every number of tasks that the
    smaller groups may have left, the fewest that the largest can have left."""
    wanted = tuple(group.tasks for group in search.groups)
    largest = max(range(len(wanted)), key=lambda place: (wanted[place], -place))
    start = tuple(0 if place == largest else tasks for place, tasks in enumerate(wanted))
    front = {start: _Division(wanted[largest], None, at.NOWHERE, ())}
    nothing, tries = (0,) * len(wanted), 0
    known: dict[tuple[int, ...], list[Mix]] = {}
    for slot, rooms, free in _nodes_in(search, level, domain):
        mixes = known.get((*rooms, *free))
        if mixes is None:
            mixes = known[*rooms, *free] = list(_mixes(search.groups, rooms, free, largest))
        after = front.copy()
        for left, division in front.items():
            tries += len(mixes)
            for mix in mixes:
                _improve(after, left, division, slot, mix, largest)
        front = after
        if nothing in front and not front[nothing].left:
            return front[nothing]
        if tries > TRIES_MAX:
            search.doubts.append(domain)
            return None
    return None


def _improve(after: dict[Mix, _Division], left: Mix, division: _Division, slot: int, mix: Mix, largest: int) -> None:
    """Take note of what is left once a node has this mix, if that is the best so far."""
    key = tuple(0 if p == largest else have - take for p, (have, take) in enumerate(zip(left, mix, strict=True)))
    if min(key) < 0:
        return
    taken = min(mix[largest], division.left)
    best = after.get(key)
    if best is None or division.left - taken < best.left:
        own = tuple(taken if place == largest else tasks for place, tasks in enumerate(mix))
        after[key] = _Division(division.left - taken, division, slot, own)


def _nodes_in(search: Search, level: int, domain: int) -> Iterator[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """The nodes of a domain that take anything: slot, tasks of each group alone, and what is free beside devices."""
    words = search.fleet.words
    first = gangs.edge(words, level, domain, gangs.NODE_LEVEL, 0)
    end = gangs.edge(words, level, domain + 1, gangs.NODE_LEVEL, 1)
    for position in range(first, end):
        rooms = tuple(room[position] for room in search.on_nodes)
        if any(rooms):
            slot = int(words[words[at.AT_TOPOLOGY] + position])
            row = words[at.AT_NODES] + at.NODE_ROW * slot
            free = tuple(int(words[row + field]) for field in _FREE)
            yield slot, rooms, free


_FREE: Final = (at.FREE_GPUS, at.FREE_CPU, at.FREE_MEMORY, at.FREE_DISK, at.FREE_NETWORK)


def _mixes(groups: Sequence[Group], rooms: Sequence[int], free: Sequence[int], largest: int) -> Iterator[Mix]:
    """What a node can have of the smaller groups, with as many of the largest as then fit; never nothing."""
    asks = [_vector(group.ask) for group in groups]
    counts = [range(1) if p == largest else range(min(r, groups[p].tasks) + 1) for p, r in enumerate(rooms)]
    for mix in product(*counts):
        left = [have - sum(ask[kind] * n for ask, n in zip(asks, mix, strict=True)) for kind, have in enumerate(free)]
        if min(left) < 0:
            continue
        fits = [have // each for have, each in zip(left, asks[largest], strict=True) if each]
        most = min(rooms[largest], *fits)
        whole = tuple(most if place == largest else tasks for place, tasks in enumerate(mix))
        if any(whole):
            yield whole


def _vector(ask: Resources) -> tuple[int, ...]:
    return ask.gpus, ask.cpu_milli, ask.memory_bytes, ask.disk_bytes, ask.network_mbps


def _write(search: Search, division: _Division | None) -> list[Lease]:
    """A division as leases, group by group, in the order of places."""
    shares: list[tuple[int, Mix]] = []
    while division is not None and division.before is not None:
        shares.insert(0, (division.slot, division.mix))
        division = division.before
    fleet, found = search.fleet, list[tuple[Resources, Lease]]()
    for place, group in enumerate(search.groups):
        for slot, mix in shares:
            if mix[place]:
                devices = int(lowest_devices(fleet.words, slot, group.ask.gpus * mix[place])) if group.ask.gpus else 0
                lease = Lease(slot, mix[place], devices)
                found.append((group.ask, lease))
                _show(fleet, group.ask, [lease], 1)
    for ask, lease in found:
        _show(fleet, ask, [lease], -1)
    return [lease for _, lease in found]
