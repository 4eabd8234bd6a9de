"""Where a gang goes, compiled: the tightest domain that holds all of it, and there the fewest domains below.

A level is tried after the next tighter one has failed. Of the domains of a level, the one with the least free is taken
that has room; inside it, whole children are used from the roomiest down until the rest fits into one, the tightest that
takes it; and so on down to the nodes. Slices keep so many tasks inside one domain of a level, spread limits how many
there may be. A large gang keeps off nodes that failed often of late, if it fits without them. All or none: nothing is
found in parts.

The `desk` is where a search writes: rooms and shares by position, room and marks by domain, a stack, then the leases.
"""

from __future__ import annotations

from muster.model.phase import Lease
from muster.scheduler.placing.query import (
    CPU,
    DISK,
    GANG,
    GPUS,
    MEMORY,
    MILLI,
    NEAR,
    NETWORK,
    PIECE,
    POOL_COUNT,
    POOL_ROWS,
    ROW,
    ROW_GROUP,
    ROW_POOL,
    SLICE,
    SLICE_TASKS,
    SPREAD,
    SPREAD_MOST,
    STARTS,
    STEADINESS,
    WITHIN,
)
from muster.scheduler.placing.single import lowest_devices, tightest_device
from muster.world.arena import (
    AT_DEVICES,
    AT_DOMAINS,
    AT_LEVEL,
    AT_NODES,
    AT_POOLS,
    AT_TOPOLOGY,
    CHILD_END,
    CHILD_FIRST,
    DEVICES,
    DOMAIN_CPU,
    DOMAIN_GPU_MILLI,
    DOMAIN_NODES,
    DOMAIN_WIDTH,
    FREE_CPU,
    FREE_DISK,
    FREE_GPUS,
    FREE_MEMORY,
    FREE_NETWORK,
    NODE_ROW,
    NODES,
    NOWHERE,
    OPEN,
    POOL,
    POOL_RISK,
    POOL_ROW,
    POOLS,
)
from muster.world.compiled import Words, compiled
from muster.world.cuts import room_in_cuts

NODE_LEVEL, FLEET_LEVEL = 0, 5
LEASE = 3
"""Slot, tasks, devices."""
UNBOUND = 1 << 62
TOO_RISKY = 400
"""Weight times tasks times risk from which on a gang keeps off a node, if it finds room without: a gang of n tasks
fails n times as often as one task."""


@compiled
def leases_at(words: Words) -> int:
    """Where on the desk the leases begin: after rooms and shares, room and marks of domains, pools, and the stack."""
    nodes, domains = words[NODES], words[AT_LEVEL + FLEET_LEVEL]
    return int(2 * nodes + 2 * domains + words[POOLS] + 3 * (nodes + domains))


@compiled
def desk_size(words: Words) -> int:
    """How many words a desk needs for this lay-out."""
    return int(leases_at(words) + LEASE * words[NODES] * max(1, words[DEVICES]))


@compiled
def room_of(words: Words, query: Words, slot: int, most: int) -> int:
    """How many tasks, up to `most`, fit on a node, open or not."""
    row = words[AT_NODES] + NODE_ROW * slot
    if query[GPUS]:
        gpus = words[row + FREE_GPUS]
        if gpus < query[GPUS]:
            return 0
        most = min(most, 1 if gpus < 2 * query[GPUS] else gpus // query[GPUS])
    elif query[PIECE]:
        most = min(most, room_in_cuts(words, slot, query[MILLI], query[PIECE], query[STARTS]))
    elif query[MILLI]:
        most = min(most, _room_in_parts(words, slot, query[MILLI]))
    most = _least(most, words[row + FREE_CPU], query[CPU])
    most = _least(most, words[row + FREE_MEMORY], query[MEMORY])
    most = _least(most, words[row + FREE_DISK], query[DISK])
    return _least(most, words[row + FREE_NETWORK], query[NETWORK])


@compiled
def _least(most: int, free: int, each: int) -> int:
    if not each or not most:
        return most
    if free < each:
        return 0
    return most if most == 1 else min(most, free // each)


@compiled
def _room_in_parts(words: Words, slot: int, milli: int) -> int:
    found = 0
    begin = words[AT_DEVICES] + slot * words[DEVICES]
    for device in range(begin, begin + words[DEVICES]):
        found += words[device] // milli
    return found


@compiled
def _open_room(words: Words, query: Words, desk: Words, slot: int) -> int:
    """Room on a node that is open and in the group that is being tried."""
    row = words[AT_NODES] + NODE_ROW * slot
    if words[row + FREE_GPUS] < query[GPUS] or not words[row + OPEN]:
        return 0
    if not desk[2 * words[NODES] + 2 * words[AT_LEVEL + FLEET_LEVEL] + words[row + POOL]]:
        return 0
    return _adjust(query, NODE_LEVEL, room_of(words, query, slot, query[GANG]))


@compiled
def _adjust(query: Words, level: int, room: int) -> int:
    """Room in a domain, as slices and spread leave it; what lies inside a domain of the spread has no more than it."""
    if level <= query[SPREAD]:
        room = min(room, query[SPREAD_MOST])
    if query[SLICE] == level:
        room -= room % query[SLICE_TASKS]
    return room


@compiled
def edge(words: Words, level: int, domain: int, target: int, side: int) -> int:
    """The first child of a domain at a lower level (side 0), or the first one after it (side 1)."""
    while level > target:
        row = words[AT_DOMAINS] + (words[AT_LEVEL + level - 1] + domain - side) * words[DOMAIN_WIDTH]
        domain = words[row + side]
        level -= 1
    return int(domain)


@compiled
def _usable(words: Words, desk: Words, level: int, domain: int) -> int:
    """What `measure` found for a domain."""
    if level == NODE_LEVEL:
        return int(desk[domain])
    return int(desk[2 * words[NODES] + words[AT_LEVEL + level - 1] + domain])


@compiled
def measure(words: Words, query: Words, desk: Words, level: int, domain: int) -> int:
    """How many tasks a domain has room for; notes the same of every node and domain inside it."""
    if level == NODE_LEVEL:
        desk[domain] = _open_room(words, query, desk, words[words[AT_TOPOLOGY] + domain])
    else:
        for rack in range(edge(words, level, domain, 1, 0), edge(words, level, domain + 1, 1, 1)):
            _measure_rack(words, query, desk, words[AT_DOMAINS] + (words[AT_LEVEL] + rack) * words[DOMAIN_WIDTH])
    for here in range(1, level + 1):
        base = words[AT_LEVEL + here - 1]
        for inner in range(edge(words, level, domain, here, 0), edge(words, level, domain + 1, here, 1)):
            row = words[AT_DOMAINS] + (base + inner) * words[DOMAIN_WIDTH]
            total = 0
            for child in range(words[row + CHILD_FIRST], words[row + CHILD_END]):
                total += _usable(words, desk, here - 1, child)
            desk[2 * words[NODES] + base + inner] = _adjust(query, here, total)
    return _usable(words, desk, level, domain)


@compiled
def _measure_rack(words: Words, query: Words, desk: Words, row: int) -> None:
    """Note how many tasks each node of a rack has room for: nodes are not looked at if none has the devices."""
    has_any = not query[GPUS] or _count_tasks(words, query, row) > 0
    for position in range(words[row + CHILD_FIRST], words[row + CHILD_END]):
        desk[position] = _open_room(words, query, desk, words[words[AT_TOPOLOGY] + position]) if has_any else 0


@compiled
def _bound(words: Words, query: Words, row: int) -> int:
    """At least as many tasks as a domain has room for, by what its nodes have of devices and CPU."""
    if query[CPU] and words[row + DOMAIN_CPU] < query[GANG] * query[CPU]:
        return 0
    if not query[GPUS]:
        return int(words[row + DOMAIN_GPU_MILLI] // query[MILLI] if query[MILLI] else query[GANG])
    return _count_tasks(words, query, row)


@compiled
def _count_tasks(words: Words, query: Words, row: int) -> int:
    """How many tasks with whole devices the nodes of a domain have devices for."""
    tasks, mark, total = 0, query[GPUS], 0
    for gpus in range(query[GPUS], words[DEVICES] + 1):
        if gpus == mark:
            tasks, mark = tasks + 1, mark + query[GPUS]
        total += tasks * words[row + DOMAIN_NODES + gpus]
    return total


@compiled
def _find_node(words: Words, query: Words, desk: Words) -> int:
    """The position of the node with the fewest devices, then the least CPU free, that takes the whole gang."""
    best, best_gpus, best_cpu = NOWHERE, 0, 0
    gpus_wanted = query[GPUS] * query[GANG]
    fleet, enough = words[AT_DOMAINS] + words[AT_LEVEL + FLEET_LEVEL - 1] * words[DOMAIN_WIDTH] + DOMAIN_NODES, 0
    for gpus in range(gpus_wanted, words[DEVICES] + 1):
        enough += words[fleet + gpus]
    for position in range(words[NODES] if enough else 0):
        slot = words[words[AT_TOPOLOGY] + position]
        row = words[AT_NODES] + NODE_ROW * slot
        gpus, cpu = words[row + FREE_GPUS], words[row + FREE_CPU]
        if gpus < gpus_wanted or (best != NOWHERE and (gpus, cpu) >= (best_gpus, best_cpu)):
            continue
        if _open_room(words, query, desk, slot) >= query[GANG]:
            best, best_gpus, best_cpu = position, gpus, cpu
    return best


@compiled
def _find_domain(words: Words, query: Words, desk: Words, level: int) -> int:
    """Of the domains of a level that take the whole gang, the one with the least free; the first of equals."""
    base, end, width = words[AT_LEVEL + level - 1], words[AT_LEVEL + level], words[DOMAIN_WIDTH]
    by = DOMAIN_GPU_MILLI if query[GPUS] or query[MILLI] else DOMAIN_CPU
    last, last_free = NOWHERE, NOWHERE
    while True:
        best, best_free = NOWHERE, 0
        for domain in range(end - base):
            row = words[AT_DOMAINS] + (base + domain) * width
            free = words[row + by]
            if (free, domain) <= (last_free, last) or (best != NOWHERE and free >= best_free):
                continue
            if _bound(words, query, row) >= query[GANG]:
                best, best_free = domain, free
        if best == NOWHERE or measure(words, query, desk, level, best) >= query[GANG]:
            return best
        last, last_free = best, best_free


@compiled
def _share_out(words: Words, desk: Words, level: int, domain: int, tasks: int) -> None:
    """Divide a gang among the nodes of a domain that was measured: a share per position."""
    nodes, domains = words[NODES], words[AT_LEVEL + FLEET_LEVEL]
    stack = 2 * nodes + 2 * domains + words[POOLS]
    top = _push(desk, stack, level, domain, tasks)
    while top > stack:
        top -= 3
        level, domain, tasks = desk[top], desk[top + 1], desk[top + 2]
        if level == NODE_LEVEL:
            desk[nodes + domain] = tasks
        else:
            top = _divide(words, desk, top, level, domain, tasks)


@compiled
def _push(desk: Words, top: int, level: int, domain: int, tasks: int) -> int:
    desk[top], desk[top + 1], desk[top + 2] = level, domain, tasks
    return top + 3


@compiled
def _divide(words: Words, desk: Words, top: int, level: int, domain: int, tasks: int) -> int:
    """Push shares for the children: whole ones from the roomiest down, and the rest to the tightest that takes it."""
    row = words[AT_DOMAINS] + (words[AT_LEVEL + level - 1] + domain) * words[DOMAIN_WIDTH]
    first, end = words[row + CHILD_FIRST], words[row + CHILD_END]
    bound, last = UNBOUND, NOWHERE  # used up: who has more room than `bound`, or as much and is not behind `last`
    while tasks:
        widest, tightest, least = 0, NOWHERE, 0
        for child in range(first, end):
            room = _usable(words, desk, level - 1, child)
            if room > bound or (room == bound and child <= last):
                continue
            widest = max(widest, room)
            if room >= tasks and (tightest == NOWHERE or room < least):
                tightest, least = child, room
        if tightest != NOWHERE:
            return _push(desk, top, level - 1, tightest, tasks)
        if widest < bound:
            bound, last = widest, NOWHERE
        for child in range(first, end):
            if child > last and tasks > bound and _usable(words, desk, level - 1, child) == bound:
                top = _push(desk, top, level - 1, child, bound)
                tasks, last = tasks - bound, child
    return top


@compiled
def _write_leases(words: Words, query: Words, desk: Words, first: int, end: int) -> int:
    """Shares as leases, in the order of places, so that neighbouring ranks are neighbours."""
    count = 0
    for position in range(first, end):
        tasks = desk[words[NODES] + position]
        desk[words[NODES] + position] = 0
        if tasks:
            count = write_lease(words, query, desk, count, words[words[AT_TOPOLOGY] + position], tasks)
    return count


@compiled
def write_lease(words: Words, query: Words, desk: Words, count: int, slot: int, tasks: int) -> int:
    """One lease for whole devices; for shares of a device one per device, the fullest first."""
    at = leases_at(words)
    if not query[MILLI]:
        devices = lowest_devices(words, slot, query[GPUS] * tasks)
        _push(desk, at + LEASE * count, slot, tasks, devices)
        return count + 1
    taken = 0
    while tasks:
        device = tightest_device(words, slot, query[MILLI], taken)
        here = min(tasks, words[words[AT_DEVICES] + slot * words[DEVICES] + device] // query[MILLI])
        _push(desk, at + LEASE * count, slot, here, 1 << device)
        taken |= 1 << device
        tasks -= here
        count += 1
    return count


@compiled
def _open_group(words: Words, query: Words, desk: Words, group: int) -> int:
    """Mark the pools of one group; gives how many there are."""
    marks, count = 2 * words[NODES] + 2 * words[AT_LEVEL + FLEET_LEVEL], 0
    for pool in range(words[POOLS]):
        desk[marks + pool] = 0
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        if query[row + ROW_GROUP] == group:
            desk[marks + query[row + ROW_POOL]] = 1
            count += 1
    return count


@compiled
def _avoid_risks(words: Words, query: Words, desk: Words) -> int:
    """Take the marks off the pools that are too much of a risk for a gang of this size; how many there were."""
    marks, count = 2 * words[NODES] + 2 * words[AT_LEVEL + FLEET_LEVEL], 0
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        pool = query[row + ROW_POOL]
        risk = words[words[AT_POOLS] + POOL_ROW * pool + POOL_RISK]
        if desk[marks + pool] and query[STEADINESS] * query[GANG] * risk >= TOO_RISKY:
            desk[marks + pool] = 0
            count += 1
    return count


@compiled
def _find_in_group(words: Words, query: Words, desk: Words) -> int:
    """Leases for a whole gang on the pools that are marked: in the tightest domain that takes it."""
    for level in range(query[NEAR], query[WITHIN] + 1):
        if level == NODE_LEVEL:
            position = _find_node(words, query, desk)
            if position != NOWHERE:
                return write_lease(words, query, desk, 0, words[words[AT_TOPOLOGY] + position], query[GANG])
            continue
        domain = _find_domain(words, query, desk, level)
        if domain != NOWHERE:
            _share_out(words, desk, level, domain, query[GANG])
            ends = edge(words, level, domain, NODE_LEVEL, 0), edge(words, level, domain + 1, NODE_LEVEL, 1)
            return _write_leases(words, query, desk, ends[0], ends[1])
    return 0


@compiled
def find_gang(words: Words, query: Words, desk: Words) -> int:
    """Leases for a whole gang, on the desk; how many there are, or 0 if it does not fit now."""
    group = 0
    while query[GPUS] <= words[DEVICES] and _open_group(words, query, desk, group):
        count = 0
        if _avoid_risks(words, query, desk):
            count = _find_in_group(words, query, desk)
            _open_group(words, query, desk, group)
        if not count:
            count = _find_in_group(words, query, desk)
        if count:
            return count
        group += 1
    return 0


@compiled
def _open_all(words: Words, query: Words, desk: Words) -> None:
    """Mark the pools of all groups."""
    marks = 2 * words[NODES] + 2 * words[AT_LEVEL + FLEET_LEVEL]
    for pool in range(words[POOLS]):
        desk[marks + pool] = 0
    for row in range(POOL_ROWS, POOL_ROWS + ROW * query[POOL_COUNT], ROW):
        desk[marks + query[row + ROW_POOL]] = 1


@compiled
def measure_all(words: Words, query: Words, desk: Words) -> int:
    """How many tasks the whole fleet has room for; notes the same of every node and domain."""
    _open_all(words, query, desk)
    return measure(words, query, desk, FLEET_LEVEL, 0)


@compiled
def find_within(words: Words, query: Words, desk: Words, level: int, domain: int) -> int:
    """Leases for a whole gang inside one domain; how many there are, or 0 if it does not fit there."""
    _open_all(words, query, desk)
    first, end = edge(words, level, domain, NODE_LEVEL, 0), edge(words, level, domain + 1, NODE_LEVEL, 1)
    if query[GPUS] > words[DEVICES] or measure(words, query, desk, level, domain) < query[GANG]:
        return 0
    _share_out(words, desk, level, domain, query[GANG])
    return _write_leases(words, query, desk, first, end)


@compiled
def widest_room(words: Words, query: Words, desk: Words) -> int:
    """The most tasks of this kind, up to the gang's size, that could start together now where the ask lets them."""
    most, group, level = 0, 0, query[WITHIN]
    count = words[NODES] if level == NODE_LEVEL else words[AT_LEVEL + level] - words[AT_LEVEL + level - 1]
    while query[GPUS] <= words[DEVICES] and _open_group(words, query, desk, group):
        for domain in range(count):
            most = max(most, measure(words, query, desk, level, domain))
        group += 1
    return most


@compiled
def count_short(words: Words, query: Words) -> int:
    """For how many tasks of a gang there are no devices at least, in whichever domain it is kept to; 0 if that is not
    known. A task more has room for each that could go where something comes free, and no sooner."""
    level, most = query[WITHIN], 0
    if not query[GPUS] or level == NODE_LEVEL:
        return 0
    for domain in range(words[AT_LEVEL + level - 1], words[AT_LEVEL + level]):
        most = max(most, _count_tasks(words, query, words[AT_DOMAINS] + domain * words[DOMAIN_WIDTH]))
    return int(max(0, query[GANG] - most))


def read_leases(words: Words, desk: Words, count: int) -> list[Lease]:
    """The leases that a search wrote."""
    begin = leases_at(words)
    flat: list[int] = desk[begin : begin + LEASE * count].tolist()
    return [Lease(*flat[place : place + LEASE]) for place in range(0, len(flat), LEASE)]


def read_rooms(words: Words, desk: Words) -> tuple[list[int], list[int]]:
    """What `measure_all` noted: by position, and by domain."""
    nodes, domains = int(words[NODES]), int(words[AT_LEVEL + FLEET_LEVEL])
    return desk[:nodes].tolist(), desk[2 * nodes : 2 * nodes + domains].tolist()
