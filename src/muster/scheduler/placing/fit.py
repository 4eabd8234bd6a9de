"""fit: where an ask goes. The Python face of the compiled search: it makes the query, and reads the answer.

One task goes to the best-scoring node, a gang to the tightest domain, tasks of an array fill node after node. Exact:
what could fit is never refused. Every choice ends in the lowest slot or the first place.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from msgspec.structs import astuple

from muster.model.node import LEVELS, Level, Spot
from muster.model.partition import NO_PIECE
from muster.model.phase import Lease
from muster.model.spec import ANYWHERE, Needs
from muster.scheduler.placing import gang as gangs
from muster.scheduler.placing import groups, many
from muster.scheduler.placing import torus as boxes
from muster.scheduler.placing.exact import MEMO_ROW, find_exact_place
from muster.scheduler.placing.masks import find_rows, keys_of
from muster.scheduler.placing.pieces import choose_slots
from muster.scheduler.placing.query import AT_MEMO, NO_LEVEL, POOL_COUNT, POOL_ROWS, ROW, ROW_POOL, ROW_TABLE
from muster.scheduler.placing.rations import Draws, Rations, zone_of, zones_of
from muster.scheduler.placing.screen import screened
from muster.scheduler.placing.single import find_place, lowest_devices, tightest_device
from muster.scheduler.placing.terms import table_size, write_table
from muster.units import Resources
from muster.world.arena import AT_TOPOLOGY, NOWHERE
from muster.world.compiled import Entry, Words, words_of
from muster.world.cuts import find_piece
from muster.world.fleet import Fleet

Pools: TypeAlias = tuple[int, ...] | None
"""The numbers of the pools that a search is kept to; None is all of them."""

TASKS_MAX: Final = 1 << 40
_DESK: Final = "desk"
_BLANK: Final = "blank"
_TORI: Final = "tori"
_FIND_PLACE: Final = Entry(find_place)
_LOWEST_DEVICES: Final = Entry(lowest_devices)


def find_gang(
    fleet: Fleet, ask: Resources, gang: int, needs: Needs = ANYWHERE, pools: Pools = None, job: int = 0
) -> list[Lease] | None:
    """Leases for all of a gang's tasks, or None if they do not all fit now. Whose they are to be matters to chance
    alone."""
    find = _find_rationed if fleet.overlays.by_name else _find_in_pools
    if needs is not ANYWHERE and needs.has_company:
        with screened(fleet, needs):
            return find(fleet, ask, gang, needs, pools, job)
    return find(fleet, ask, gang, needs, pools, job)


def _find_rationed(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools, job: int) -> list[Lease] | None:
    """Where it may go by the budgets of overlays."""
    rations = Rations(fleet)
    kept = rations.keep(_parts_of(ask, gang, needs), pools)
    found = None if kept == () else _find_in_pools(fleet, ask, gang, needs, kept, job)
    if found is None and kept is not pools:
        found = find_divided(fleet, rations, ask, gang, needs, pools) if _is_divisible(gang, needs) else None
        fleet.overlays.has_refused = fleet.overlays.has_refused or found is None
    return found


def _find_in_pools(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools, job: int) -> list[Lease] | None:
    if needs is not ANYWHERE:
        if needs.shape:
            return _find_box(fleet, ask, gang, needs, pools)
        if needs.groups:
            return _find_groups(fleet, needs, pools, [])
    if gang == 1:
        return _find_one(fleet, ask, needs, pools, job)
    words, desk = fleet.words, desk_of(fleet)
    count = gangs.find_gang(words, query_of(fleet, ask, gang, needs, pools), desk)
    return gangs.read_leases(words, desk, count) if count else None


def count_short(fleet: Fleet, ask: Resources, gang: int, needs: Needs) -> int:
    """For how many tasks of a gang that did not fit room must come free before it can, at least; 0 if that is not
    known: nodes that are booked are not counted."""
    if gang == 1 or needs.booking:
        return 0
    return gangs.count_short(fleet.words, query_of(fleet, ask, gang, needs))


def find_tasks(fleet: Fleet, ask: Resources, most: int, needs: Needs = ANYWHERE, pools: Pools = None) -> list[Lease]:
    """Leases for as many of `most` equal tasks as fit now, the fullest nodes first."""
    with screened(fleet, needs) if needs.has_company else contextlib.nullcontext():
        if not fleet.overlays.by_name:
            return _fill(fleet, ask, most, needs, pools)
        found, left = list[Lease](), most
        for pool, draws, rations in _rationed_pools(fleet, ask, needs, pools):
            leases = _fill(fleet, ask, rations.most(draws, left), needs, pool)
            tasks = sum(lease.tasks for lease in leases)
            rations.take(draws, tasks)
            found, left = found + leases, left - tasks
        fleet.overlays.has_refused = fleet.overlays.has_refused or left > 0
        return found


def _fill(fleet: Fleet, ask: Resources, most: int, needs: Needs, pools: Pools) -> list[Lease]:
    if ask.gpu_milli and needs.partition:
        return _find_pieces(fleet, ask, most, needs, pools)
    words, desk = fleet.words, desk_of(fleet)
    query = query_of(fleet, ask, 1, needs, pools)
    return gangs.read_leases(words, desk, many.find_many(words, query, desk, most))


def _rationed_pools(
    fleet: Fleet, ask: Resources, needs: Needs, pools: Pools, rations: Rations | None = None
) -> Iterator[tuple[tuple[int], Draws, Rations]]:
    """The pools that tasks fill one after the other, in the order in which they do; each with what a task takes there,
    of what was not taken in those before."""
    rations = rations or Rations(fleet)
    for number, _, _ in _keep_to(find_rows(fleet.pools, ask, needs, fleet.tables), pools):
        yield (number,), rations.draws(zone_of(fleet, number), ask), rations


def find_pools(fleet: Fleet, ask: Resources, needs: Needs = ANYWHERE) -> list[int]:
    """The pools that an ask could ever use, in the order of their numbers."""
    fleet.words  # noqa: B018 - lays the fleet out, if that is due
    asks = [group.ask for group in needs.groups] or [ask]
    return sorted({number for each in asks for number, _, _ in find_rows(fleet.pools, each, needs)})


def count_room(
    fleet: Fleet,
    ask: Resources,
    needs: Needs = ANYWHERE,
    pools: Pools = None,
    most: int = TASKS_MAX,
    rations: Rations | None = None,
) -> int:
    """How many one-task gangs of this ask would fit now, over all nodes; more than `most` are not counted. Who counts
    in parts has `rations` of its own, from which those of every part are taken."""
    if not fleet.overlays.by_name:
        return count_unrationed(fleet, ask, needs, pools, most)
    with screened(fleet, needs) if needs.has_company else contextlib.nullcontext():
        found = 0
        for pool, draws, left in _rationed_pools(fleet, ask, needs, pools, rations):
            room = left.most(draws, most - found)
            tasks = many.count_room(fleet.words, query_of(fleet, ask, 1, needs, pool), room)
            left.take(draws, tasks)
            found += tasks
        return found


def count_unrationed(
    fleet: Fleet, ask: Resources, needs: Needs = ANYWHERE, pools: Pools = None, most: int = TASKS_MAX
) -> int:
    """The same if no overlay had a budget: a gang that fits is never counted out, as it may be where tasks that go one
    by one use up a budget on the flavor that they would rather have."""
    with screened(fleet, needs) if needs.has_company else contextlib.nullcontext():
        return many.count_room(fleet.words, query_of(fleet, ask, 1, needs, pools), most)


def widest_room(fleet: Fleet, ask: Resources, gang: int, needs: Needs = ANYWHERE, pools: Pools = None) -> int:
    """How many of a gang's tasks could start together now, where the ask lets them: the gang fits if all could.
    A box of a torus, or a gang of several groups, is there as a whole or not at all."""
    with screened(fleet, needs) if needs.has_company else contextlib.nullcontext():
        if not fleet.overlays.by_name:
            return _widest_in_pools(fleet, ask, gang, needs, pools)
        kept = Rations(fleet).keep(_parts_of(ask, gang, needs), pools)
        room = 0 if kept == () else _widest_in_pools(fleet, ask, gang, needs, kept)
        if kept is pools or room >= gang or not _is_divisible(gang, needs):
            return room
        return _widest_divided(fleet, ask, gang, needs, pools, room)


def widest_unrationed(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools = None) -> int:
    """The same if no overlay had a budget."""
    with screened(fleet, needs) if needs.has_company else contextlib.nullcontext():
        return _widest_in_pools(fleet, ask, gang, needs, pools)


def _widest_divided(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools, least: int) -> int:
    """The most tasks of a gang that could start together, if not fewer than so many; more than the gang never."""
    most = min(gang, _widest_in_pools(fleet, ask, gang, needs, pools))
    if most == gang and _find_rationed(fleet, ask, gang, needs, pools, 0) is None:
        most -= 1
    while least < most:
        middle = (least + most + 1) // 2
        fits = _find_rationed(fleet, ask, middle, needs, pools, 0) is not None
        least, most = (middle, most) if fits else (least, middle - 1)
    return most


def _widest_in_pools(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools) -> int:
    if needs.shape:
        return gang if _find_box(fleet, ask, gang, needs, pools) else 0
    if needs.groups:
        doubts: list[int] = []
        found = _find_groups(fleet, needs, pools, doubts) is not None
        return gang if found or (doubts and fleet.is_blank) else 0  # nobody is refused for ever by a doubt
    return gangs.widest_room(fleet.words, query_of(fleet, ask, gang, needs, pools), desk_of(fleet))


def _parts_of(ask: Resources, gang: int, needs: Needs) -> list[tuple[Resources, int]]:
    """What a gang asks for, and how often."""
    return [(group.ask, group.tasks) for group in needs.groups] or [(ask, gang)]


def _is_divisible(gang: int, needs: Needs) -> bool:
    """Whether the tasks of a gang may be divided among zones: nothing else is said of how they lie together."""
    return gang > 1 and not (needs.shape or needs.groups or needs.spread or needs.slice)


def find_divided(
    fleet: Fleet, rations: Rations, ask: Resources, gang: int, needs: Needs, pools: Pools
) -> list[Lease] | None:
    """Leases for a gang behind several overlays, none of which has room for all of it: in the tightest domain in which
    it can be divided among them."""
    words, desk = fleet.words, desk_of(fleet)
    rows = _keep_to(find_rows(fleet.pools, ask, needs, fleet.tables), pools)
    for group in sorted({group for _, _, group in rows}):
        zones = zones_of(fleet, [number for number, _, own in rows if own == group])
        draws, rooms = [rations.draws(zone, ask) for zone, _ in zones], list[list[int]]()
        for _, numbers in zones:
            gangs.measure_all(words, query_of(fleet, ask, gang, needs, numbers), desk)
            rooms.append(gangs.read_rooms(words, desk)[1])
        for level in range(max(1, LEVELS[needs.near or "node"]), LEVELS[needs.within or "cluster"] + 1):
            for domain, row in groups.domains_of(words, level, bool(ask.gpus or ask.gpu_milli)):
                shares = rations.divide([(each, room[row]) for each, room in zip(draws, rooms, strict=True)], gang)
                if shares is not None:
                    parts = zip(shares, (numbers for _, numbers in zones), strict=True)
                    queries = [query_of(fleet, ask, tasks, needs, own) for tasks, own in parts if tasks]
                    return _write_divided(fleet, queries, level, domain)
    return None


def _write_divided(fleet: Fleet, queries: Sequence[Words], level: int, domain: int) -> list[Lease]:
    """The leases of every part of a gang inside one domain, in the order of places."""
    words, desk = fleet.words, desk_of(fleet)
    found: list[Lease] = []
    for query in queries:
        found += gangs.read_leases(words, desk, gangs.find_within(words, query, desk, level, domain))
    begin = int(words[AT_TOPOLOGY])
    place = {slot: at for at, slot in enumerate(words[begin : begin + len(fleet)].tolist())}
    return sorted(found, key=lambda lease: place[lease.slot])


def widest_capacity(fleet: Fleet, ask: Resources, gang: int, needs: Needs = ANYWHERE, pools: Pools = None) -> int:
    """How many could if the whole fleet were empty and open, and told apart what the ask mentions; the pools are those
    of such a blank."""
    key = ("capacity", ask, gang, needs, pools)
    found: int | None = fleet.recall(key)
    if found is None:
        found = fleet.asked[key] = widest_room(blank_of(fleet, needs), ask, gang, needs, pools)
    return found


def blank_of(fleet: Fleet, needs: Needs) -> Fleet:
    """The fleet, empty and open, with pools told apart by all that the needs mention."""
    labels = keys_of(needs)
    key = (_BLANK, labels - fleet.mentioned)
    found: Fleet | None = fleet.recall(key)
    if found is None:
        found = fleet.asked[key] = fleet.blank()
        found.mention(labels)
    return found


def _find_one(fleet: Fleet, ask: Resources, needs: Needs, pools: Pools, job: int) -> list[Lease] | None:
    words = fleet.words
    if ask.gpu_milli and needs.partition:
        return _find_piece(fleet, ask, needs, pools)
    if fleet.is_exact:
        found = find_exact_place(fleet, query_of(fleet, ask, 1, needs, pools), job)
        return None if found is None else [_lease(words, found[0], ask, found[1])]
    slot, devices = _FIND_PLACE.call(words, query_of(fleet, ask, 1, needs, pools))
    return None if slot < 0 else [Lease(slot, 1, devices)]


def _find_piece(fleet: Fleet, ask: Resources, needs: Needs, pools: Pools) -> list[Lease] | None:
    """A lease on the node where a share of its size would go, of those that have the slots; and there on those that
    leave the most to others."""
    slot, _ = _FIND_PLACE.call(fleet.words, query_of(fleet, ask, 1, needs, pools))
    return None if slot < 0 else [Lease(slot, 1, choose_slots(fleet, slot, ask.gpu_milli, needs.partition))]


def _find_pieces(fleet: Fleet, ask: Resources, most: int, needs: Needs, pools: Pools) -> list[Lease]:
    """The same for as many of `most` as fit now, one after the other: each is shown while the next is looked for."""
    leases: list[Lease] = []
    while len(leases) < most and (found := _find_piece(fleet, ask, needs, pools)) is not None:
        fleet.show(found[0].slot, ask, 1, found[0].devices)
        leases += found
    for lease in reversed(leases):
        fleet.show(lease.slot, ask, -1, lease.devices)
    return leases


def _find_groups(fleet: Fleet, needs: Needs, pools: Pools, doubts: list[int]) -> list[Lease] | None:
    """Leases for all groups of a gang, with devices of one flavor: the first for which they all fit. Domains that were
    given up too early to be sure are put into `doubts`."""
    words = fleet.words
    for each in groups.pools_of(fleet, needs, pools):
        if all(each):
            desk, queries, rooms = desk_of(fleet), list[Words](), list[tuple[list[int], list[int]]]()
            for group, own in zip(needs.groups, each, strict=True):
                queries.append(query_of(fleet, group.ask, group.tasks, needs, own))
                gangs.measure_all(words, queries[-1], desk)
                rooms.append(gangs.read_rooms(words, desk))
            on_nodes, in_domains = ([room[kind] for room in rooms] for kind in range(2))
            search = groups.Search(fleet, desk, needs.groups, queries, on_nodes, in_domains, doubts)
            leases = groups.find_in_tightest(search, needs)
            if leases is not None:
                return leases
    return None


def _find_box(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools) -> list[Lease] | None:
    """Leases for a box of the torus in which it leaves the fewest free spots around it; of several, of the first."""
    words, query = fleet.words, query_of(fleet, ask, gang, needs, pools)
    for group in range(boxes.count_groups(query)):
        found: list[tuple[int, int, int]] = []
        for number, (torus, desk) in enumerate(tori_of(fleet)):
            box = boxes.find_box(words, query, torus, desk, group, *needs.shape)
            if box >= 0:
                found.append((boxes.around_of(torus, box), number, box))
        if found:
            _, number, box = min(found)
            torus, desk = tori_of(fleet)[number]
            leases = desk_of(fleet)
            count = boxes.write_box(words, query, torus, desk, leases, box, *needs.shape)
            return gangs.read_leases(words, leases, count)
    return None


def tori_of(fleet: Fleet) -> list[tuple[Words, Words]]:
    """The tori of a fleet, by name, each with a desk to search it. Nodes that do not agree on its size are in others
    of the same name."""
    found: list[tuple[Words, Words]] | None = fleet.recall(_TORI)
    if found is None:
        members: dict[tuple[str, ...], dict[int, Spot]] = {}
        for slot, traits in enumerate(fleet.traits):
            if traits.spot is not None:
                names = (*traits.place.path(Level.CLUSTER), traits.spot.torus, str(traits.spot.size))
                members.setdefault(names, {})[slot] = traits.spot
        found = fleet.asked[_TORI] = [_lay_torus(spots) for _, spots in sorted(members.items())]
    return found


def _lay_torus(spots: dict[int, Spot]) -> tuple[Words, Words]:
    size = next(iter(spots.values())).size
    torus = array("q", (*size, len(spots)))
    for slot, spot in spots.items():
        torus.extend((slot, (spot.at[0] * size[1] + spot.at[1]) * size[2] + spot.at[2]))
    words = words_of(torus)
    return words, words_of(array("q", bytes(8 * boxes.desk_size(words))))


def query_of(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools = None) -> Words:
    """The query of a class, made once per lay-out. Read the words of the fleet first: they are of the same lay-out."""
    key = (ask, gang, needs, pools, fleet.mix)
    found: Words | None = fleet.asked.get(key)
    if found is None:
        found = fleet.asked[key] = _make_query(fleet, ask, gang, needs, pools)
    return found


def _make_query(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools) -> Words:
    """The words of the ask, and behind them a table of scores for each pool."""
    words, flat = fleet.words, _write_query(fleet, ask, gang, needs, pools)
    rows = range(POOL_ROWS, POOL_ROWS + ROW * flat[POOL_COUNT], ROW)
    flat.extend(value for pair in fleet.mix for value in pair)
    for row in rows:
        flat[row + ROW_TABLE] = len(flat)
        flat.frombytes(bytes(8 * table_size(words, flat[row + ROW_POOL])))
    if fleet.is_exact and gang == 1:
        flat[AT_MEMO] = len(flat)
        flat.frombytes(bytes(8 * MEMO_ROW * len(fleet)))
    query = words_of(flat)
    for row in rows:
        write_table(words, query, row)
    return query


def _write_query(fleet: Fleet, ask: Resources, gang: int, needs: Needs, pools: Pools) -> array[int]:
    """The words of `query`, in their order."""
    rows = _keep_to(find_rows(fleet.pools, ask, needs, fleet.tables), pools)
    words = array("q", (ask.gpus, ask.gpu_milli, ask.cpu_milli, ask.memory_bytes, ask.disk_bytes, ask.network_mbps))
    spread = (LEVELS[needs.spread], needs.spread_most) if needs.spread else (NO_LEVEL, 0)
    slices = (LEVELS[needs.slice], needs.slice_tasks) if needs.slice else (NO_LEVEL, 0)
    words.extend((gang, LEVELS[needs.near or "node"], LEVELS[needs.within or "cluster"], *spread, *slices))
    words.extend(astuple(fleet.profile))
    piece = (find_piece(fleet.cuts, needs.partition) if ask.gpu_milli and needs.partition else None) or NO_PIECE
    words.extend((len(fleet.mix), len(rows), 0, piece.size, piece.starts))
    words.extend(value for row in rows for value in (*row, 0))
    return words


def _keep_to(rows: list[tuple[int, int, int]], pools: Pools) -> list[tuple[int, int, int]]:
    """The rows of some pools; groups are tried one after the other until one is empty, so they are numbered anew."""
    if pools is None:
        return rows
    kept = [row for row in rows if row[0] in pools]
    groups = sorted({group for _, _, group in kept})
    return [(number, rank, groups.index(group)) for number, rank, group in kept]


def desk_of(fleet: Fleet) -> Words:
    """Where searches on this fleet write."""
    found: Words | None = fleet.asked.get(_DESK)
    if found is None:
        found = fleet.asked[_DESK] = words_of(array("q", bytes(8 * gangs.desk_size(fleet.words))))
    return found


def _lease(words: Words, slot: int, ask: Resources, device: int = NOWHERE) -> Lease:
    if ask.gpu_milli:
        chosen = tightest_device(words, slot, ask.gpu_milli, 0) if device == NOWHERE else device
        return Lease(slot, 1, 1 << chosen)
    return Lease(slot, 1, _LOWEST_DEVICES.call(words, slot, ask.gpus) if ask.gpus else 0)
