"""The fleet: nodes as columns, and the shelves that find them by what they have free.

A node has a slot for ever, given by a fact. Its numbers are int64 columns (`array('q')`, so an overflow raises), and
its devices are the bits of one word. Nodes that are up and unbarred, with the same free vector, stand on one shelf: a
bitset over slots, read from the lowest slot up. A shelf is therefore a function of what is free now, never of the order
in which it became free. The fleet knows nothing of jobs but who sits where, and nothing of which shelf is the better
choice.
"""

from __future__ import annotations

from array import array
from typing import Final, TypeAlias

from muster.model.errors import InvariantError
from muster.model.job import Bar, BarKind, NodePhase
from muster.model.node import PLAIN, Traits, flavor_of
from muster.units import Resources

DEVICES_MAX: Final = 62
FreeVector: TypeAlias = tuple[int, int, int]

_UP: Final = int(NodePhase.UP)  # a plain int: enum members are slow to compare


class Fleet:
    """Columns by slot. `holders[slot]` counts the tasks that each job has there; `kinds` counts nodes by capacity.

    `bars[slot]` are the bars of a node that has any, by kind and owner; `shelf_of[slot]` is the free vector that a node
    is found by, or None while no new work may go there.
    """

    __slots__ = (
        "bars",
        "cap_cpu",
        "cap_gpus",
        "cap_memory",
        "free_cpu",
        "free_devices",
        "free_memory",
        "holders",
        "kinds",
        "names",
        "phase",
        "shelf_of",
        "shelves",
        "slot_of",
        "traits",
    )

    def __init__(self) -> None:
        self.names: list[str] = []
        self.slot_of: dict[str, int] = {}
        self.traits: list[Traits] = []
        self.phase = array("q")
        self.cap_gpus = array("q")
        self.cap_cpu = array("q")
        self.cap_memory = array("q")
        self.free_devices = array("q")
        self.free_cpu = array("q")
        self.free_memory = array("q")
        self.bars: dict[int, tuple[Bar, ...]] = {}
        self.holders: dict[int, dict[int, int]] = {}
        self.shelves: dict[FreeVector, int] = {}
        self.shelf_of: list[FreeVector | None] = []
        self.kinds: dict[Resources, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def free_vector(self, slot: int) -> FreeVector:
        """What a node has free: GPUs, thousandths of a core, bytes."""
        return (self.free_devices[slot].bit_count(), self.free_cpu[slot], self.free_memory[slot])

    def capacity(self, slot: int) -> Resources:
        """What a node has in all."""
        return Resources(self.cap_gpus[slot], self.cap_cpu[slot], self.cap_memory[slot])

    def flavor(self, slot: int) -> str:
        """The kind of capacity that a node is."""
        return flavor_of(self.traits[slot], self.capacity(slot))

    def is_idle(self, slot: int) -> bool:
        """Whether nobody holds anything there."""
        return slot not in self.holders

    def is_open(self, slot: int) -> bool:
        """Whether new work may go to a node: it is up and nobody bars it."""
        return self.phase[slot] == _UP and slot not in self.bars

    def join(self, slot: int, name: str, capacity: Resources, traits: Traits = PLAIN) -> None:
        """Give a node its slot, or an idle one its new capacity and traits; it is up from now on."""
        if slot == len(self.names):
            self._append(name)
        elif self.names[slot] != name or slot in self.holders:
            raise InvariantError("a slot belongs to one node", f"slot {slot}: {self.names[slot]}, then {name}")
        else:
            self._unshelve(slot)
            self._count_kind(self.capacity(slot), -1)
        self._count_kind(capacity, 1)
        self.traits[slot] = traits
        self.cap_gpus[slot] = capacity.gpus
        self.cap_cpu[slot] = self.free_cpu[slot] = capacity.cpu_milli
        self.cap_memory[slot] = self.free_memory[slot] = capacity.memory_bytes
        self.free_devices[slot] = (1 << capacity.gpus) - 1
        self.phase[slot] = NodePhase.UP
        self._shelve(slot)

    def set_phase(self, slot: int, phase: NodePhase) -> None:
        """Move a node on or off the shelves."""
        self._unshelve(slot)
        self.phase[slot] = phase
        self._shelve(slot)

    def bar(self, slot: int, bar: Bar) -> None:
        """Set a bar; it replaces the one of the same kind and owner."""
        others = [other for other in self.bars.get(slot, ()) if (other.kind, other.owner) != (bar.kind, bar.owner)]
        self._unshelve(slot)
        self.bars[slot] = tuple(sorted([*others, bar], key=_bar_key))
        self._shelve(slot)

    def unbar(self, slot: int, kind: BarKind, owner: str) -> None:
        """Lift a bar; with the last one the node is back on its shelf."""
        bars = self.bars.get(slot, ())
        left = tuple(bar for bar in bars if (bar.kind, bar.owner) != (kind, owner))
        if len(left) == len(bars):
            raise InvariantError("only a bar that stands is lifted", f"{self.names[slot]}: {kind} of {owner}")
        self._unshelve(slot)
        if left:
            self.bars[slot] = left
        else:
            del self.bars[slot]
        self._shelve(slot)

    def occupy(self, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        """Give `tasks` of a job their share of a node. The inverse of `vacate`."""
        cpu = self.free_cpu[slot] - ask.cpu_milli * tasks
        memory = self.free_memory[slot] - ask.memory_bytes * tasks
        free = self.free_devices[slot]
        if cpu < 0 or memory < 0 or devices & ~free or devices.bit_count() != ask.gpus * tasks:
            raise InvariantError("allocations fit their node", f"job {job} on {self.names[slot]}: {ask} x {tasks}")
        self._set_free(slot, free & ~devices, cpu, memory)
        here = self.holders.get(slot)
        if here is None:
            self.holders[slot] = {job: tasks}
        else:
            here[job] = here.get(job, 0) + tasks

    def vacate(self, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        """Take them back. The inverse of `occupy`."""
        free = self.free_devices[slot]
        here = self.holders.get(slot, {})
        left = here.get(job, 0) - tasks
        if left < 0 or devices & free:
            raise InvariantError("only what is held is given back", f"job {job} on {self.names[slot]}: {ask} x {tasks}")
        cpu = self.free_cpu[slot] + ask.cpu_milli * tasks
        self._set_free(slot, free | devices, cpu, self.free_memory[slot] + ask.memory_bytes * tasks)
        if left:
            here[job] = left
        elif len(here) > 1:
            del here[job]
        else:
            del self.holders[slot]

    def fork(self) -> Fleet:
        """An independent copy: columns by memcpy, shelves and holders by dict."""
        twin = Fleet.__new__(Fleet)
        twin.names = self.names.copy()
        twin.slot_of = self.slot_of.copy()
        twin.traits = self.traits.copy()
        for column in ("phase", "cap_gpus", "cap_cpu", "cap_memory", "free_devices", "free_cpu", "free_memory"):
            setattr(twin, column, getattr(self, column)[:])
        twin.bars = self.bars.copy()
        twin.holders = {slot: here.copy() for slot, here in self.holders.items()}
        twin.shelves = self.shelves.copy()
        twin.shelf_of = self.shelf_of.copy()
        twin.kinds = self.kinds.copy()
        return twin

    def _count_kind(self, capacity: Resources, change: int) -> None:
        count = self.kinds.get(capacity, 0) + change
        if count:
            self.kinds[capacity] = count
        else:
            del self.kinds[capacity]

    def _append(self, name: str) -> None:
        self.slot_of[name] = len(self.names)
        self.names.append(name)
        self.traits.append(PLAIN)
        for column in (self.cap_gpus, self.cap_cpu, self.cap_memory):
            column.append(0)
        for column in (self.free_devices, self.free_cpu, self.free_memory):
            column.append(0)
        self.phase.append(NodePhase.GONE)
        self.shelf_of.append(None)

    def _set_free(self, slot: int, devices: int, cpu: int, memory: int) -> None:
        """Change what is free, and move the node to the shelf for it."""
        self.free_devices[slot] = devices
        self.free_cpu[slot] = cpu
        self.free_memory[slot] = memory
        old = self.shelf_of[slot]
        if old is None:
            return
        vector, bit, shelves = (devices.bit_count(), cpu, memory), 1 << slot, self.shelves
        left = shelves[old] ^ bit
        if left:
            shelves[old] = left
        else:
            del shelves[old]
        shelves[vector] = shelves.get(vector, 0) | bit
        self.shelf_of[slot] = vector

    def _shelve(self, slot: int) -> None:
        if self.is_open(slot):
            vector = self.free_vector(slot)
            self.shelves[vector] = self.shelves.get(vector, 0) | (1 << slot)
            self.shelf_of[slot] = vector

    def _unshelve(self, slot: int) -> None:
        vector = self.shelf_of[slot]
        if vector is None:
            return
        left = self.shelves[vector] ^ (1 << slot)
        if left:
            self.shelves[vector] = left
        else:
            del self.shelves[vector]
        self.shelf_of[slot] = None


def _bar_key(bar: Bar) -> tuple[str, str]:
    return bar.kind, bar.owner
