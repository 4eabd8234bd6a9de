"""fit: where an ask goes. Pure reads of the shelves; every choice ends in the lowest slot.

One task goes to the node it leaves the least free on (best fit). A gang goes to the fewest nodes, and its remainder to
the node that it fills best. Tasks of an array fill the fullest nodes first. Exact: what could fit is never refused.
"""

from __future__ import annotations

from muster.model.phase import Lease
from muster.units import Resources
from muster.world.fleet import Fleet, FreeVector


def find_gang(fleet: Fleet, ask: Resources, gang: int) -> list[Lease] | None:
    """Leases for all of a gang's tasks, or None if they do not all fit now."""
    if gang == 1:
        return _find_best(fleet, ask)
    rooms = _rooms(fleet, ask)
    if sum(room * fleet.shelves[shelf].bit_count() for room, shelf in rooms) < gang:
        return None
    rooms.sort(key=lambda item: (-item[0], item[1]))
    return _fill_whole(fleet, ask, gang, rooms)


def find_tasks(fleet: Fleet, ask: Resources, most: int) -> list[Lease]:
    """Leases for as many of `most` equal tasks as fit now, the fullest nodes first."""
    leases: list[Lease] = []
    for room, shelf in sorted(_rooms(fleet, ask), key=lambda item: item[1]):
        bits = fleet.shelves[shelf]
        while bits and most:
            low = bits & -bits
            count = min(room, most)
            leases.append(_lease(fleet, low.bit_length() - 1, ask, count))
            bits ^= low
            most -= count
    return leases


def count_room(fleet: Fleet, ask: Resources) -> int:
    """How many tasks of this ask would fit now, over all nodes."""
    return sum(room * fleet.shelves[shelf].bit_count() for room, shelf in _rooms(fleet, ask))


def count_capacity(fleet: Fleet, ask: Resources) -> int:
    """How many tasks of this ask the whole fleet could hold if it were empty and every node up."""
    total = 0
    for node, count in fleet.kinds.items():
        total += _room((node.gpus, node.cpu_milli, node.memory_bytes), ask) * count
    return total


def _find_best(fleet: Fleet, ask: Resources) -> list[Lease] | None:
    """The lease of one task, on the node that it leaves the least free on."""
    gpus, cpu, memory = ask.gpus, ask.cpu_milli, ask.memory_bytes
    best: FreeVector | None = None
    for shelf in fleet.shelves:
        if shelf[0] >= gpus and shelf[1] >= cpu and shelf[2] >= memory and (best is None or shelf < best):
            best = shelf
    if best is None:
        return None
    bits = fleet.shelves[best]
    return [_lease(fleet, (bits & -bits).bit_length() - 1, ask, 1)]


def _fill_whole(fleet: Fleet, ask: Resources, gang: int, rooms: list[tuple[int, FreeVector]]) -> list[Lease]:
    """Full nodes while a whole one is needed, then the tightest node that takes the rest."""
    leases: list[Lease] = []
    for index, (room, shelf) in enumerate(rooms):
        bits = fleet.shelves[shelf]
        while bits and gang >= room:
            low = bits & -bits
            leases.append(_lease(fleet, low.bit_length() - 1, ask, room))
            bits ^= low
            gang -= room
        if gang and bits:
            leases.append(_fill_rest(fleet, ask, gang, bits, rooms[index:]))
            gang = 0
        if not gang:
            break
    return leases


def _fill_rest(fleet: Fleet, ask: Resources, rest: int, bits: int, rooms: list[tuple[int, FreeVector]]) -> Lease:
    """The rest on the node with the least room for it; `bits` is what is left of the first shelf in `rooms`."""
    enough = [item for item in rooms if item[0] >= rest]
    tightest = min(enough)
    chosen = bits if tightest == rooms[0] else fleet.shelves[tightest[1]]
    return _lease(fleet, (chosen & -chosen).bit_length() - 1, ask, rest)


def _rooms(fleet: Fleet, ask: Resources) -> list[tuple[int, FreeVector]]:
    """Each shelf with room for at least one task, and for how many per node."""
    gpus, cpu, memory = ask.gpus, ask.cpu_milli, ask.memory_bytes
    return [
        (_room(shelf, ask), shelf)
        for shelf in fleet.shelves
        if shelf[0] >= gpus and shelf[1] >= cpu and shelf[2] >= memory
    ]


def _room(free: FreeVector, ask: Resources) -> int:
    room = free[0] // ask.gpus if ask.gpus else -1
    if ask.cpu_milli:
        cpus = free[1] // ask.cpu_milli
        room = cpus if room < 0 else min(room, cpus)
    if ask.memory_bytes:
        memory = free[2] // ask.memory_bytes
        room = memory if room < 0 else min(room, memory)
    return room


def _lease(fleet: Fleet, slot: int, ask: Resources, tasks: int) -> Lease:
    return Lease(slot, tasks, _lowest_devices(fleet.free_devices[slot], ask.gpus * tasks))


def _lowest_devices(free: int, count: int) -> int:
    taken = 0
    for _ in range(count):
        low = free & -free
        taken |= low
        free ^= low
    return taken
