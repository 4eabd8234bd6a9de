"""The index, compiled: nodes found by what they have free, kept in step with every change of it.

Nodes of one pool are equal but for what is free. Each open node stands in one cell of its pool; a word per plane says
which cells are not empty, and a few words per cell say which chunks of 32 members have somebody in it. Finding a node
is then a walk over words in the order of slots, so the index is a function of what is free and never of its history.
"""

from __future__ import annotations

from muster.world.arena import (
    AT_CELLS,
    AT_DEVICES,
    AT_NODES,
    AT_POOLS,
    CHUNK,
    DEVICE,
    DEVICES,
    DOMAIN_CPU,
    DOMAIN_GPU_MILLI,
    DOMAIN_LEVELS,
    DOMAIN_NODES,
    DOMAINS,
    FREE_CPU,
    FREE_DISK,
    FREE_GPUS,
    FREE_MASK,
    FREE_MEMORY,
    FREE_NETWORK,
    FREE_PART,
    NODE_ROW,
    NODES,
    NOWHERE,
    OPEN,
    PARTS,
    PLANE,
    POOL,
    POOL_COUNTS,
    POOL_CPU,
    POOL_FIRST,
    POOL_MEMORY,
    POOL_PLANES,
    POOL_REGIONS,
    POOL_ROW,
    POOL_SIZE,
    POOL_WIDTH,
    POOL_ZONES,
    RANK,
    REGION,
    REGION_CPU,
    REGION_MEMORY,
    REGION_ROW,
    STEPS,
    ZONE,
)
from muster.world.compiled import Words, compiled
from muster.world.cuts import devices_in, move_slots


@compiled
def step_of(amount: int, most: int) -> int:
    """How many of the bounds 1/16, 1/8, 1/4, 1/2, 3/4 and all of `most` an amount reaches."""
    if amount >= most:
        return STEPS - 1
    return (
        int(amount >= most >> 4)
        + int(amount >= most >> 3)
        + int(amount >= most >> 2)
        + int(amount >= most >> 1)
        + int(amount >= most - (most >> 2))
    )


@compiled
def bound_of(step: int, most: int) -> int:
    """The least amount at a step."""
    if step == 0:
        return 0
    if step <= 4:
        return most >> (5 - step)
    return most - (most >> 2) if step == 5 else most


@compiled
def part_of(milli: int) -> int:
    """The step of the largest broken device: none, below a quarter, below a half, more."""
    if milli == 0:
        return 0
    return 1 + int(milli >= 250) + int(milli >= 500)


@compiled
def cell_at(words: Words, slot: int) -> int:
    """The cell that a node belongs to by what it has free."""
    row = words[AT_NODES] + NODE_ROW * slot
    pool = words[AT_POOLS] + POOL_ROW * words[row + POOL]
    part = part_of(words[row + FREE_PART])
    cpu = step_of(words[row + FREE_CPU], words[pool + POOL_CPU])
    memory = step_of(words[row + FREE_MEMORY], words[pool + POOL_MEMORY])
    return int((words[row + FREE_GPUS] * PARTS + part) * PLANE + cpu * STEPS + memory)


@compiled
def zone_at(words: Words, pool: int, cell: int, rank: int) -> int:
    """Where it is noted what a cell has in the zone of a member."""
    return int(words[pool + POOL_REGIONS] + (cell * words[pool + POOL_WIDTH] + rank // ZONE) * REGION_ROW)


@compiled
def region_at(words: Words, pool: int, cell: int, rank: int) -> int:
    """Where it is noted what a cell has in the region of a member."""
    region = cell * words[pool + POOL_WIDTH] + words[pool + POOL_ZONES] + rank // REGION
    return int(words[pool + POOL_REGIONS] + region * REGION_ROW)


@compiled
def _enter(words: Words, row: int, cell: int) -> None:
    """A node stands in a cell."""
    pool, rank = words[AT_POOLS] + POOL_ROW * words[row + POOL], words[row + RANK]
    words[words[AT_CELLS] + words[pool + POOL_FIRST] + rank] = cell
    words[region_at(words, pool, cell, rank)] |= 1 << (rank % REGION // CHUNK)
    words[zone_at(words, pool, cell, rank)] |= 1 << (rank % ZONE // REGION)
    words[words[pool + POOL_COUNTS] + cell] += 1
    words[words[pool + POOL_PLANES] + cell // PLANE] |= 1 << (cell % PLANE)
    _raise_bounds(words, row, cell)


@compiled
def _raise_bounds(words: Words, row: int, cell: int) -> None:
    """Region and zone have at least what this node has: their bounds may be above the truth, never below."""
    pool, rank = words[AT_POOLS] + POOL_ROW * words[row + POOL], words[row + RANK]
    cpu, memory, region = words[row + FREE_CPU], words[row + FREE_MEMORY], region_at(words, pool, cell, rank)
    if cpu <= words[region + REGION_CPU] and memory <= words[region + REGION_MEMORY]:
        return
    zone = zone_at(words, pool, cell, rank)
    words[region + REGION_CPU] = max(words[region + REGION_CPU], cpu)
    words[region + REGION_MEMORY] = max(words[region + REGION_MEMORY], memory)
    words[zone + REGION_CPU] = max(words[zone + REGION_CPU], cpu)
    words[zone + REGION_MEMORY] = max(words[zone + REGION_MEMORY], memory)


@compiled
def _leave(words: Words, row: int, cell: int) -> None:
    """A node leaves its cell; the last of a chunk takes its bit along, the last of all the cell's bit."""
    pool, rank = words[AT_POOLS] + POOL_ROW * words[row + POOL], words[row + RANK]
    cells = words[AT_CELLS] + words[pool + POOL_FIRST]
    words[cells + rank] = NOWHERE
    words[words[pool + POOL_COUNTS] + cell] -= 1
    if not words[words[pool + POOL_COUNTS] + cell]:
        words[words[pool + POOL_PLANES] + cell // PLANE] &= ~(1 << (cell % PLANE))
    chunk = rank // CHUNK
    for other in range(chunk * CHUNK, min(words[pool + POOL_SIZE], (chunk + 1) * CHUNK)):
        if words[cells + other] == cell:
            return
    region = region_at(words, pool, cell, rank)
    if not _clear(words, region, rank % REGION // CHUNK):
        _clear(words, zone_at(words, pool, cell, rank), rank % ZONE // REGION)


@compiled
def _clear(words: Words, row: int, part: int) -> int:
    """A part of a region or zone has nobody in the cell; the last part takes the bounds along. Gives what is left."""
    words[row] &= ~(1 << part)
    if not words[row]:
        words[row + REGION_CPU] = words[row + REGION_MEMORY] = 0
    return int(words[row])


@compiled
def _note_in_domains(words: Words, row: int, before: int, after: int, gpu_milli: int, cpu: int) -> None:
    """A node that had `before` whole devices free has `after` (NOWHERE: it is not open), and so much more is free."""
    for level in range(row + DOMAINS, row + DOMAINS + DOMAIN_LEVELS):
        domain = words[level]
        words[domain + DOMAIN_GPU_MILLI] += gpu_milli
        words[domain + DOMAIN_CPU] += cpu
        if before != after:
            if before != NOWHERE:
                words[domain + DOMAIN_NODES + before] -= 1
            if after != NOWHERE:
                words[domain + DOMAIN_NODES + after] += 1


@compiled
def shelve(words: Words, slot: int, sign: int) -> None:
    """An open node enters the index (1), or one that is no longer open leaves it (-1)."""
    row, cell = words[AT_NODES] + NODE_ROW * slot, cell_at(words, slot)
    words[row + OPEN] = int(sign > 0)
    gpus, cpu = words[row + FREE_GPUS], words[row + FREE_CPU]
    milli = DEVICE * gpus + _parts_of(words, slot)
    if sign > 0:
        _enter(words, row, cell)
        _note_in_domains(words, row, NOWHERE, gpus, milli, cpu)
    else:
        _leave(words, row, cell)
        _note_in_domains(words, row, gpus, NOWHERE, -milli, -cpu)


@compiled
def shelve_all(words: Words) -> None:
    """Every open node enters an index that is empty."""
    for slot in range(words[NODES]):
        if words[words[AT_NODES] + NODE_ROW * slot + OPEN]:
            shelve(words, slot, 1)


@compiled
def _parts_of(words: Words, slot: int) -> int:
    """Thousandths left on the broken devices of a node."""
    total, begin = 0, words[AT_DEVICES] + slot * words[DEVICES]
    if words[words[AT_NODES] + NODE_ROW * slot + FREE_PART]:
        for device in range(begin, begin + words[DEVICES]):
            if words[device] < DEVICE:
                total += words[device]
    return total


@compiled
def lowest_bit(word: int) -> int:
    """The place of the lowest bit that is set. Without a branch: which bit it is cannot be foreseen."""
    low, place = word & -word, 0
    place += int(low & 0x7FFFFFFF00000000 != 0) << 5
    place += int(low & 0x7FFF0000FFFF0000 != 0) << 4
    place += int(low & 0x7F00FF00FF00FF00 != 0) << 3
    place += int(low & 0x70F0F0F0F0F0F0F0 != 0) << 2
    place += int(low & 0x4CCCCCCCCCCCCCCC != 0) << 1
    return place + int(low & 0x2AAAAAAAAAAAAAAA != 0)


@compiled
def _can_move(words: Words, slot: int, devices: int, milli: int) -> bool:
    """Whether so much of each named device can be taken or, below zero, given back."""
    begin, rest = words[AT_DEVICES] + slot * words[DEVICES], devices
    if devices >> words[DEVICES]:
        return False
    while rest:
        left = words[begin + lowest_bit(rest)] - milli
        rest &= rest - 1
        if left < 0 or left > DEVICE:
            return False
    return True


@compiled
def _move_devices(words: Words, slot: int, devices: int, milli: int) -> int:
    """Take so much of each named device, or give it back; gives how many were named."""
    row, begin = words[AT_NODES] + NODE_ROW * slot, words[AT_DEVICES] + slot * words[DEVICES]
    named = 0
    while devices:
        device = lowest_bit(devices)
        devices &= devices - 1
        left = words[begin + device] - milli
        words[row + FREE_GPUS] += int(left == DEVICE) - int(words[begin + device] == DEVICE)
        words[begin + device] = left
        if left == DEVICE:
            words[row + FREE_MASK] |= 1 << device
        else:
            words[row + FREE_MASK] &= ~(1 << device)
        named += 1
    if milli != DEVICE and milli != -DEVICE:
        words[row + FREE_PART] = _largest_part(words, begin)
    return named


@compiled
def _largest_part(words: Words, begin: int) -> int:
    """The most that is left of a broken device."""
    part = 0
    for device in range(begin, begin + words[DEVICES]):
        if words[device] < DEVICE:
            part = max(part, words[device])
    return part


@compiled
def take(words: Words, slot: int, devices: int, milli: int, cpu: int, memory: int, disk: int, network: int) -> int:
    """Take amounts of a node, or give them back if they are below zero; 0, and nothing done, if that cannot be.

    `milli` is what is taken of each device in `devices`, which may be the word of a partition. Limits to what is given
    back are the caller's to watch.
    """
    row, word = words[AT_NODES] + NODE_ROW * slot, devices
    devices = devices_in(word)
    if (
        words[row + FREE_CPU] < cpu
        or words[row + FREE_MEMORY] < memory
        or words[row + FREE_DISK] < disk
        or words[row + FREE_NETWORK] < network
        or not _can_move(words, slot, devices, milli)
        or (word != devices and not move_slots(words, slot, word, milli))
    ):
        return 0
    gpus, named = words[row + FREE_GPUS], _move_devices(words, slot, devices, milli)
    words[row + FREE_CPU] -= cpu
    words[row + FREE_MEMORY] -= memory
    words[row + FREE_DISK] -= disk
    words[row + FREE_NETWORK] -= network
    if words[row + OPEN]:
        _reshelve(words, slot)
        _note_in_domains(words, row, gpus, words[row + FREE_GPUS], -milli * named, -cpu)
    return 1


@compiled
def seat(
    words: Words,
    slot: int,
    tasks: int,
    devices: int,
    gpus: int,
    milli: int,
    cpu: int,
    memory: int,
    disk: int,
    network: int,
) -> int:
    """Take what tasks ask for of a node and of the devices that they name, or give it back if they are below zero; 0,
    and nothing done, if that cannot be, or if they name more devices than they ask for, or fewer."""
    rest, wanted = devices_in(devices), 1 if milli else gpus * abs(tasks)
    while rest:
        rest &= rest - 1
        wanted -= 1
    if wanted:
        return 0
    share = milli * tasks if milli else DEVICE if tasks > 0 else -DEVICE
    return take(words, slot, devices, share, cpu * tasks, memory * tasks, disk * tasks, network * tasks)


@compiled
def _reshelve(words: Words, slot: int) -> None:
    """Move an open node from its cell to that of what it has free now."""
    row, after = words[AT_NODES] + NODE_ROW * slot, cell_at(words, slot)
    pool = words[AT_POOLS] + POOL_ROW * words[row + POOL]
    before = words[words[AT_CELLS] + words[pool + POOL_FIRST] + words[row + RANK]]
    if after == before:
        _raise_bounds(words, row, after)
    else:
        _leave(words, row, before)
        _enter(words, row, after)
