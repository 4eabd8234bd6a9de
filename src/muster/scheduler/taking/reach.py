"""reach, compiled: what could come free at most, node by node, if somebody took all that it has a right to.

A *right* is a word for each kin and kind of victim (`muster.scheduler.taking.rights` writes them): whether one is taken
that is inside its guarantee, that borrows, that borrows of what the claimant is owed. With all of them gone, each node
has at most what is free there and what they have: if the gang does not fit into that, nobody need be looked at one by
one; if it does, these are also the least that room on each node may cost. It knows rows and words, and chooses nobody.
"""

from __future__ import annotations

from typing import Final

from muster.model.phase import TaskPhase
from muster.scheduler.placing.query import CPU as ASK_CPU
from muster.scheduler.placing.query import GPUS, POOL_COUNT, POOL_ROWS, ROW_POOL
from muster.scheduler.placing.query import MEMORY as ASK_MEMORY
from muster.scheduler.placing.query import MILLI as ASK_MILLI
from muster.scheduler.placing.query import ROW as QUERY_ROW
from muster.world.arena import (
    AT_CELLS,
    AT_MEMBERS,
    AT_NODES,
    AT_POOLS,
    DEVICE,
    DEVICES,
    FREE_CPU,
    FREE_GPUS,
    FREE_MEMORY,
    FREE_PART,
    NODE_ROW,
    NOWHERE,
    OPEN,
    PARTS,
    PLANE,
    POOL,
    POOL_FIRST,
    POOL_GPUS,
    POOL_PLANES,
    POOL_ROW,
    POOL_SIZE,
)
from muster.world.compiled import Words, compiled
from muster.world.runs import (
    BACK,
    BEFORE,
    CPU,
    FUNDS,
    KIND,
    MEMORY,
    MILLI,
    NO_ROW,
    ROW,
    SAVED,
    SITE,
    SLOT,
    STATE,
    STAYS,
    TENANT,
    WORTH,
)

RUNNING = int(TaskPhase.RUNNING)
IF_INSIDE, IF_BORROWING, IF_OWED = 1, 2, 4
"""What a word of a right says: which victims of that kin and kind may be taken."""
NOW, RESTART, OWED, KINDS, CODES = range(5)
"""A right: when it is, what a restart costs, the funds that are owed, how many kinds there are; then the words by kin
and kind, then the kin of every tenant."""
KINS: Final = 3

TAKE_SLOT, TAKE_MILLI, TAKE_CPU, TAKE_MEMORY, TAKE_COST, TAKE_RATE = range(6)
TAKE: Final = 6
"""Of a node: which it is, what could be taken there, what would be lost by all of it, and by the cheapest thousandth:
one more than that.

A *sheet* says of how many nodes anything could be taken; then for each node where that begins in it, or 0; then that of
one after the other, in the order in which they were met. Rights are mostly about few nodes of a large fleet, and these
then lie together."""


@compiled
def may_take(right: Words, tenant: int, kind: int, funds: int) -> bool:
    """Whether a victim may be taken, who borrows of these funds."""
    kinds = right[KINDS]
    word = right[CODES + right[CODES + KINS * kinds + tenant] * kinds + kind]
    if not funds:
        return bool(word & IF_INSIDE)
    return bool(word & IF_OWED) if funds & right[OWED] else bool(word & IF_BORROWING)


@compiled
def cost_of(right: Words, rows: Words, at: int) -> int:
    """What is lost if a run is stopped."""
    return int(rows[at + WORTH] * (right[NOW] - rows[at + SAVED] + right[RESTART]))


@compiled
def has_gangs(rows: Words, ends: Words, edges: Words, right: Words) -> bool:
    """Whether any gang has something that may be taken."""
    for shelf in range(len(ends)):
        at, first = ends[shelf], first_taken(rows, ends[shelf], edges[shelf], right)
        while at >= first:
            if may_take_row(rows, at, right):
                return True
            at = rows[at + BEFORE]
    return False


@compiled
def add_gangs(rows: Words, ends: Words, edges: Words, right: Words, sheet: Words) -> None:
    """Add what gangs have that may be taken to the sums of their nodes, shelf by shelf."""
    for shelf in range(len(ends)):
        at, first = ends[shelf], first_taken(rows, ends[shelf], edges[shelf], right)
        while at >= first:
            if may_take_row(rows, at, right):
                amounts = rows[at + MILLI], rows[at + CPU], rows[at + MEMORY]
                note_one(sheet, rows[at + SLOT], amounts[0], amounts[1], amounts[2], cost_of(right, rows, at))
            at = rows[at + BEFORE]


@compiled
def first_taken(rows: Words, end: int, edge: int, right: Words) -> int:
    """From which row on some of a shelf may be taken: of those who borrow, none stands before its edge."""
    if end == NO_ROW:
        return 0
    kinds = right[KINDS]
    word = right[CODES + right[CODES + KINS * kinds + rows[end + TENANT]] * kinds + rows[end + KIND]]
    if word & IF_INSIDE:
        return 0
    return int(edge if word & IF_BORROWING or (word & IF_OWED and right[OWED]) else end + 1)


@compiled
def may_take_row(rows: Words, at: int, right: Words) -> bool:
    """Whether what a gang has somewhere may be taken."""
    if rows[at + STATE] != STAYS:
        return False
    return may_take(right, rows[at + TENANT], rows[at + KIND], rows[at - ROW * rows[at + BACK] + FUNDS])


@compiled
def note_one(sheet: Words, slot: int, milli: int, cpu: int, memory: int, cost: int) -> None:
    """Add what one victim has on a node."""
    to, rate = sheet[1 + slot], cost // max(1, milli) + 1
    if not to:
        to = end_of(sheet)
        sheet[0] += 1
        sheet[1 + slot], sheet[to + TAKE_SLOT], sheet[to + TAKE_RATE] = to, slot, rate
    sheet[to + TAKE_MILLI] += milli
    sheet[to + TAKE_CPU] += cpu
    sheet[to + TAKE_MEMORY] += memory
    sheet[to + TAKE_COST] += cost
    sheet[to + TAKE_RATE] = min(sheet[to + TAKE_RATE], rate)


@compiled
def first_of(sheet: Words) -> int:
    """Where what could be taken begins in a sheet."""
    return 1 + (len(sheet) - 1) // (TAKE + 1)


@compiled
def end_of(sheet: Words) -> int:
    """And where it ends."""
    return int(first_of(sheet) + TAKE * sheet[0])


@compiled
def wipe(sheet: Words) -> None:
    """Make a sheet blank again."""
    for take in range(first_of(sheet), end_of(sheet), TAKE):
        sheet[1 + sheet[take + TAKE_SLOT]] = 0
        for word in range(take, take + TAKE):
            sheet[word] = 0
    sheet[0] = 0


def sheet_size(nodes: int) -> int:
    """How many words a sheet has."""
    return (TAKE + 1) * max(1, nodes) + 1


HERD_SITE, HERD_BORROWED, HERD_FUNDS, HERD_TENANT, HERD_KIND, HERD_MILLI, HERD_CPU, HERD_MEMORY = range(8)
HERD_WORTH, HERD_EVICTABLE = range(8, 10)
"""The tasks of an array on a site: how many of them borrow and of what, and what each of them has and is worth."""


@compiled
def is_of_herd(slots: Words, sites: Words, herd: Words, task: int) -> bool:
    """Whether a task of those that stay is there."""
    return bool(herd[HERD_SITE] < 0 or sites[slots[task]] == herd[HERD_SITE])


@compiled
def sum_herd(
    order: Words, phase: Words, slots: Words, sites: Words, herd: Words, right: Words, is_whole: bool, count: int,
    totals: Words,
) -> int:  # fmt: skip
    """Add what the tasks of a herd have that may be taken, or all that were not told to stop, if it `is_whole`; by the
    number of the tenant and the site, of which there are so many. How many tasks those are. The newest ones borrow."""
    found, borrowed = 0, herd[HERD_BORROWED]
    if not herd[HERD_EVICTABLE]:
        return 0
    for at in range(len(order) - 1, -1, -1):
        task = order[at]
        if is_of_herd(slots, sites, herd, task):
            funds = herd[HERD_FUNDS] if borrowed > 0 else 0
            if phase[task] <= RUNNING and (is_whole or may_take(right, herd[HERD_TENANT], herd[HERD_KIND], funds)):
                to = 3 * (herd[HERD_TENANT] * count + sites[slots[task]])
                totals[to] += herd[HERD_MILLI]
                totals[to + 1] += herd[HERD_CPU]
                totals[to + 2] += herd[HERD_MEMORY]
                found += 1
            borrowed -= 1
    return found


@compiled
def add_tasks(
    order: Words, phase: Words, slots: Words, sites: Words, herd: Words, since: Words, saved: Words, right: Words,
    sheet: Words,
) -> None:  # fmt: skip
    """Add what tasks have that may be taken to the sums of their nodes. The newest ones borrow."""
    borrowed = herd[HERD_BORROWED]
    if not herd[HERD_EVICTABLE]:
        return
    for at in range(len(order) - 1, -1, -1):
        task = order[at]
        if is_of_herd(slots, sites, herd, task):
            funds = herd[HERD_FUNDS] if borrowed > 0 else 0
            if phase[task] <= RUNNING and may_take(right, herd[HERD_TENANT], herd[HERD_KIND], funds):
                cost = herd[HERD_WORTH] * (right[NOW] - max(since[task], saved[task]) + right[RESTART])
                note_one(sheet, slots[task], herd[HERD_MILLI], herd[HERD_CPU], herd[HERD_MEMORY], cost)
            borrowed -= 1


@compiled
def pick_tasks(
    order: Words, phase: Words, slots: Words, sites: Words, herd: Words, right: Words, wanted: Words, picked: Words
) -> int:
    """Write which tasks may be taken and sit on a node that is wanted, and whether each borrows; how many there are."""
    found, borrowed = 0, herd[HERD_BORROWED]
    if not herd[HERD_EVICTABLE]:
        return 0
    for at in range(len(order) - 1, -1, -1):
        task = order[at]
        if is_of_herd(slots, sites, herd, task):
            funds = herd[HERD_FUNDS] if borrowed > 0 else 0
            is_wanted = phase[task] <= RUNNING and wanted[2 * slots[task] + 1] != NOWHERE
            if is_wanted and may_take(right, herd[HERD_TENANT], herd[HERD_KIND], funds):
                picked[2 * found], picked[2 * found + 1] = task, int(borrowed > 0)
                found += 1
            borrowed -= 1
    return found


@compiled
def sum_tops(rows: Words, used: int, tops: Words, kinds: int, factors: Words, field: int, totals: Words) -> None:
    """Add what those hold of a fund who may be evicted, by the number of their top and their kind."""
    for at in range(0, used * ROW, ROW):
        if rows[at + STATE] == STAYS:
            amount = rows[at + field] * factors[rows[at + SITE]]
            totals[tops[rows[at + TENANT]] * kinds + rows[at + KIND]] += amount


@compiled
def sum_tenants(rows: Words, ends: Words, edges: Words, right: Words, sites: int, totals: Words) -> None:
    """Add what gangs have that may be taken, by the number of the tenant and the site."""
    for shelf in range(len(ends)):
        at, first = ends[shelf], first_taken(rows, ends[shelf], edges[shelf], right)
        while at >= first:
            if may_take_row(rows, at, right):
                to = 3 * (rows[at + TENANT] * sites + rows[at + SITE])
                totals[to] += rows[at + MILLI]
                totals[to + 1] += rows[at + CPU]
                totals[to + 2] += rows[at + MEMORY]
            at = rows[at + BEFORE]


@compiled
def count_untaken(words: Words, query: Words, most: int) -> int:
    """How many tasks, up to `most`, could be on open nodes at best, if nobody is taken."""
    found, milli = 0, DEVICE * query[GPUS] + query[ASK_MILLI]
    for row in range(POOL_ROWS, POOL_ROWS + QUERY_ROW * query[POOL_COUNT], QUERY_ROW):
        pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
        members, cells = words[AT_MEMBERS] + words[pool + POOL_FIRST], words[AT_CELLS] + words[pool + POOL_FIRST]
        for rank in range(words[pool + POOL_SIZE] if _may_have_devices(words, pool, milli) else 0):
            if _has_devices(words[cells + rank], milli):
                found += room_beside(words, query, words[members + rank], most - found, 0, 0, 0)
                if found >= most:
                    return found
    return found


@compiled
def _may_have_devices(words: Words, pool: int, milli: int) -> bool:
    """Whether any node of a pool could have so much of its devices free: there are a few words for all of it, and in a
    full fleet they mostly say no."""
    planes = words[pool + POOL_PLANES]
    for plane in range((words[pool + POOL_GPUS] + 1) * PARTS):
        if words[planes + plane] and _has_devices(plane * PLANE, milli):
            return True
    return False


@compiled
def _has_devices(cell: int, milli: int) -> bool:
    """Whether the nodes of a cell, if it is one, could have so much of their devices free: nearly all of a full fleet
    have not, and a cell is sooner looked at than a node."""
    plane = cell // PLANE
    return bool(cell != NOWHERE and (plane // PARTS * DEVICE >= milli or plane % PARTS))


@compiled
def count_reach(words: Words, query: Words, sheet: Words, untaken: int, most: int) -> int:
    """How many tasks, up to `most`, could be on open nodes at best, if without anybody taken there is room for so many:
    only nodes of which something could be taken have more."""
    found = untaken
    for take in range(first_of(sheet), end_of(sheet), TAKE):
        slot = sheet[take + TAKE_SLOT]
        if _is_in_pools(words, query, slot):
            found += _room_at_best(words, query, sheet, slot, most) - room_beside(words, query, slot, most, 0, 0, 0)
            if found >= most:
                return most
    return found


@compiled
def _is_in_pools(words: Words, query: Words, slot: int) -> bool:
    pool = words[words[AT_NODES] + NODE_ROW * slot + POOL]
    for row in range(POOL_ROWS, POOL_ROWS + QUERY_ROW * query[POOL_COUNT], QUERY_ROW):
        if query[row + ROW_POOL] == pool:
            return True
    return False


@compiled
def _room_at_best(words: Words, query: Words, sheet: Words, slot: int, most: int) -> int:
    """How many tasks, up to `most`, a node could have if all went of it that could be taken."""
    take = sheet[1 + slot]
    if not take:
        return int(room_beside(words, query, slot, most, 0, 0, 0))
    more = sheet[take + TAKE_MILLI], sheet[take + TAKE_CPU], sheet[take + TAKE_MEMORY]
    return int(room_beside(words, query, slot, most, more[0], more[1], more[2]))


@compiled
def room_beside(words: Words, query: Words, slot: int, most: int, milli: int, cpu: int, memory: int) -> int:
    """How many tasks, up to `most`, a node could have with so much more than it has free."""
    node, each = words[AT_NODES] + NODE_ROW * slot, DEVICE * query[GPUS] + query[ASK_MILLI]
    if not words[node + OPEN]:
        return 0
    if each:
        free = DEVICE * words[node + FREE_GPUS] + words[node + FREE_PART] * words[DEVICES]
        most = min(most, (free + milli) // each)
    if query[ASK_CPU] and most:
        most = min(most, (words[node + FREE_CPU] + cpu) // query[ASK_CPU])
    if query[ASK_MEMORY] and most:
        most = min(most, (words[node + FREE_MEMORY] + memory) // query[ASK_MEMORY])
    return int(most)


@compiled
def price_nodes(words: Words, query: Words, sheet: Words, most: int, prices: Words) -> int:
    """Write of each node of the query's pools how many tasks it could have at best, and the least that it costs to have
    room for one; how many nodes could have any. Words of other nodes stay as they are."""
    found, milli = 0, DEVICE * query[GPUS] + query[ASK_MILLI]
    for row in range(POOL_ROWS, POOL_ROWS + QUERY_ROW * query[POOL_COUNT], QUERY_ROW):
        pool = words[AT_POOLS] + POOL_ROW * query[row + ROW_POOL]
        members, cells = words[AT_MEMBERS] + words[pool + POOL_FIRST], words[AT_CELLS] + words[pool + POOL_FIRST]
        for rank in range(words[pool + POOL_SIZE] if _may_have_devices(words, pool, milli) else 0):
            slot = words[members + rank]
            if not sheet[1 + slot] and _has_devices(words[cells + rank], milli):
                found += _price_node(words, query, sheet, slot, most, prices)
    for take in range(first_of(sheet), end_of(sheet), TAKE):
        slot = sheet[take + TAKE_SLOT]
        if _is_in_pools(words, query, slot):
            found += _price_node(words, query, sheet, slot, most, prices)
    return found


@compiled
def _price_node(words: Words, query: Words, sheet: Words, slot: int, most: int, prices: Words) -> bool:
    """Whether a node could have any task; then it is written how many, and the least that one costs."""
    room = _room_at_best(words, query, sheet, slot, most)
    if room:
        prices[2 * slot], prices[2 * slot + 1] = room, _least_price(words, query, sheet, slot)
    return bool(room)


@compiled
def _least_price(words: Words, query: Words, sheet: Words, slot: int) -> int:
    """All of what could be taken if all is needed; else the cheapest thousandths, as many as are missing."""
    node, take = words[AT_NODES] + NODE_ROW * slot, sheet[1 + slot]
    milli = DEVICE * query[GPUS] + query[ASK_MILLI]
    missing = milli - DEVICE * words[node + FREE_GPUS] - words[node + FREE_PART] * int(query[GPUS] == 0)
    if missing <= 0 or not take:
        return 0
    if missing >= sheet[take + TAKE_MILLI]:
        return int(sheet[take + TAKE_COST])
    return int(missing * (sheet[take + TAKE_RATE] - 1))


@compiled
def pick_gangs(rows: Words, ends: Words, edges: Words, right: Words, prices: Words, picked: Words) -> int:
    """Write where the rows begin of every run that may be taken and has a place on a node that is wanted, shelf by
    shelf: whose price is not NOWHERE. How many there are."""
    found = last = 0
    for shelf in range(len(ends)):
        at, begin = ends[shelf], first_taken(rows, ends[shelf], edges[shelf], right)
        while at >= begin:
            first = at - ROW * rows[at + BACK]
            is_new = prices[2 * rows[at + SLOT] + 1] != NOWHERE and (not found or last != first)
            if is_new and may_take_row(rows, at, right):
                picked[found] = last = first
                found += 1
            at = rows[at + BEFORE]
    return found
