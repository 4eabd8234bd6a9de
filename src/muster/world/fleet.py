"""The fleet: nodes by slot, and the arena that holds every number of them.

A node has a slot for ever, given by a fact. What it is (name, traits, capacity, bars) is kept in lists by slot; what it
has free is in the arena, together with the index that finds nodes by it. Names and lists are the truth: the arena is
laid out anew when nodes join or change, and only then. The fleet knows nothing of jobs but who sits where, and nothing
of which node is the better choice.
"""

from __future__ import annotations

from array import array
from typing import Final, TypeAlias

from muster.model.errors import InvariantError
from muster.model.job import Bar, BarKind, NodePhase
from muster.model.node import PLAIN, Traits, flavor_of
from muster.units import Resources
from muster.world import arena as at
from muster.world.compiled import Words, words_of
from muster.world.index import shelve, shelve_all, take
from muster.world.memory import Memory
from muster.world.pools import Pool, lay_out, write_arena

DEVICES_MAX: Final = 62
ASKED_MAX: Final = 4096
"""How many answers are remembered at most: a query with its tables may take some kilobytes."""
FreeVector: TypeAlias = tuple[int, int, int]

_UP: Final = int(NodePhase.UP)  # a plain int: enum members are slow to compare


class Fleet:
    """Lists by slot. `holders[slot]` counts the tasks that each job has there (replaced, never changed: forks share);
    `bars[slot]` are the bars of a node that has any, by kind and owner. `mentioned` are the labels that tell pools
    apart, `prices` what a flavor costs.

    `asked` is a memory of answers about the present lay-out, for whoever reads the arena; it is dropped with it.
    """

    __slots__ = (
        "_arena",
        "_is_stale",
        "_words",
        "asked",
        "bars",
        "capacities",
        "holders",
        "mentioned",
        "names",
        "phase",
        "pools",
        "prices",
        "slot_of",
        "traits",
    )

    def __init__(self) -> None:
        self.names: list[str] = []
        self.slot_of: dict[str, int] = {}
        self.traits: list[Traits] = []
        self.capacities: list[Resources] = []
        self.phase = array("q")
        self.bars: dict[int, tuple[Bar, ...]] = {}
        self.holders: dict[int, dict[int, int]] = {}
        self.mentioned: frozenset[str] = frozenset()
        self.prices: dict[str, int] = {}
        self.pools: list[Pool] = []
        self.asked = Memory(ASKED_MAX)
        self._arena = array("q")
        self._words: Words = words_of(self._arena)
        self._is_stale = True

    def __len__(self) -> int:
        return len(self.names)

    @property
    def words(self) -> Words:
        """The arena, for compiled code."""
        if self._is_stale:
            self._lay_out()
        return self._words

    def recall(self, key: object) -> object:
        """What `asked` remembers of the present lay-out."""
        if self._is_stale:
            self._lay_out()
        return self.asked.get(key)

    def read(self, field: int, slot: int) -> int:
        """One number of one node."""
        if self._is_stale:
            self._lay_out()
        words = self._arena
        return words[words[at.AT_NODES] + at.NODE_ROW * slot + field]

    def free(self, slot: int) -> Resources:
        """What a node has free: whole devices, and of the broken ones the largest rest."""
        return Resources(*(self.read(field, slot) for field in at.FREE))

    def find_free(self, slot: int) -> FreeVector | None:
        """GPUs, CPU and memory that new work could have on a node; None if none may go there."""
        if self._is_stale:
            self._lay_out()
        words = self._arena
        row = words[at.AT_NODES] + at.NODE_ROW * slot
        if not words[row + at.OPEN]:
            return None
        return words[row + at.FREE_GPUS], words[row + at.FREE_CPU], words[row + at.FREE_MEMORY]

    def devices(self, slot: int) -> list[int]:
        """Thousandths left of each device of a node."""
        begin = self.words[at.AT_DEVICES] + slot * self._arena[at.DEVICES]
        return self._arena[begin : begin + self.capacities[slot].gpus].tolist()

    def capacity(self, slot: int) -> Resources:
        """What a node has in all."""
        return self.capacities[slot]

    def flavor(self, slot: int) -> str:
        """The kind of capacity that a node is."""
        return flavor_of(self.traits[slot], self.capacities[slot])

    def is_idle(self, slot: int) -> bool:
        """Whether nobody holds anything there."""
        return slot not in self.holders

    def is_open(self, slot: int) -> bool:
        """Whether new work may go to a node: it is up and nobody bars it."""
        return self.phase[slot] == _UP and slot not in self.bars

    def kinds(self) -> dict[Resources, int]:
        """How many nodes there are of each capacity, whatever their phase."""
        found: dict[Resources, int] = {}
        for capacity in self.capacities:
            found[capacity] = found.get(capacity, 0) + 1
        return found

    def join(self, slot: int, name: str, capacity: Resources, traits: Traits = PLAIN) -> None:
        """Give a node its slot, or an idle one its new capacity and traits; it is up from now on."""
        if slot == len(self.names):
            self._append(name)
        elif self.names[slot] != name or slot in self.holders:
            raise InvariantError("a slot belongs to one node", f"slot {slot}: {self.names[slot]}, then {name}")
        self.traits[slot], self.capacities[slot] = traits, capacity
        self.phase[slot] = NodePhase.UP
        self._is_stale = True

    def set_phase(self, slot: int, phase: NodePhase) -> None:
        """Move a node into or out of the index."""
        was_open = self.is_open(slot)
        self.phase[slot] = phase
        self._reshelve(slot, was_open)

    def bar(self, slot: int, bar: Bar) -> None:
        """Set a bar; it replaces the one of the same kind and owner."""
        others = [other for other in self.bars.get(slot, ()) if (other.kind, other.owner) != (bar.kind, bar.owner)]
        was_open = self.is_open(slot)
        self.bars[slot] = tuple(sorted([*others, bar], key=_bar_key))
        self._reshelve(slot, was_open)

    def unbar(self, slot: int, kind: BarKind, owner: str) -> None:
        """Lift a bar; with the last one the node is back in the index."""
        bars = self.bars.get(slot, ())
        left = tuple(bar for bar in bars if (bar.kind, bar.owner) != (kind, owner))
        if len(left) == len(bars):
            raise InvariantError("only a bar that stands is lifted", f"{self.names[slot]}: {kind} of {owner}")
        if left:
            self.bars[slot] = left
        else:
            del self.bars[slot]
            self._reshelve(slot, was_open=False)

    def mention(self, labels: frozenset[str]) -> None:
        """Tell pools apart by these labels too."""
        self.mentioned |= labels
        self._is_stale = True

    def set_price(self, flavor: str, price_micros: int) -> None:
        """What one device of a flavor costs in an hour."""
        self.prices[flavor] = price_micros
        self._is_stale = True

    def occupy(self, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        """Give `tasks` of a job their share of a node. The inverse of `vacate`."""
        if devices.bit_count() != _devices_for(ask, tasks) or not self._take(slot, ask, tasks, devices):
            raise InvariantError("allocations fit their node", f"job {job} on {self.names[slot]}: {ask} x {tasks}")
        here = self.holders.get(slot)
        self.holders[slot] = {job: tasks} if here is None else {**here, job: here.get(job, 0) + tasks}

    def vacate(self, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        """Take them back. The inverse of `occupy`."""
        here = self.holders.get(slot, {})
        left = here.get(job, 0) - tasks
        if left < 0 or not self._take(slot, ask, -tasks, devices):
            raise InvariantError("only what is held is given back", f"job {job} on {self.names[slot]}: {ask} x {tasks}")
        if left:
            self.holders[slot] = {**here, job: left}
        elif len(here) > 1:
            self.holders[slot] = {other: count for other, count in here.items() if other != job}
        else:
            del self.holders[slot]

    def fork(self) -> Fleet:
        """An independent copy: the arena by memcpy, lists and holders by copy."""
        twin = Fleet.__new__(Fleet)
        for name in ("names", "slot_of", "traits", "capacities", "bars", "holders", "prices"):
            setattr(twin, name, getattr(self, name).copy())
        twin.phase = self.phase[:]
        twin.mentioned, twin.pools, twin.asked = self.mentioned, self.pools, Memory(ASKED_MAX, self.asked)
        twin._arena = self._arena[:]
        twin._words = words_of(twin._arena)
        twin._is_stale = self._is_stale
        return twin

    def blank(self) -> Fleet:
        """The same nodes with nobody on them and none of them closed: what the fleet could hold at best."""
        twin = Fleet()
        for name in ("names", "slot_of", "traits", "capacities", "mentioned", "prices"):
            setattr(twin, name, getattr(self, name))
        twin.phase = array("q", [_UP]) * len(self)
        return twin

    def find_index_fault(self) -> str | None:
        """Where the arena differs from one that is laid out anew; bounds of regions may be above those, never below."""
        if self._is_stale:
            return None
        twin = self.fork()
        twin._lay_out()
        for place, (kept, wanted) in enumerate(zip(self._arena, twin._arena, strict=True)):
            if kept != wanted and not (kept > wanted and twin._is_bound(place)):
                return f"word {place}: kept {kept}, wanted {wanted}"
        return None

    def _is_bound(self, place: int) -> bool:
        words = self._arena
        for pool in range(words[at.POOLS]):
            row = words[at.AT_POOLS] + at.POOL_ROW * pool
            offset = place - words[row + at.POOL_REGIONS]
            size = (words[row + at.POOL_GPUS] + 1) * at.PARTS * at.PLANE * words[row + at.POOL_WIDTH] * at.REGION_ROW
            if 0 <= offset < size:
                return offset % at.REGION_ROW != at.REGION_CHUNKS
        return False

    def _take(self, slot: int, ask: Resources, tasks: int, devices: int) -> int:
        share = ask.gpu_milli * tasks if ask.gpu_milli else at.DEVICE if tasks > 0 else -at.DEVICE
        return take(
            self.words,
            slot,
            devices,
            share,
            ask.cpu_milli * tasks,
            ask.memory_bytes * tasks,
            ask.disk_bytes * tasks,
            ask.network_mbps * tasks,
        )

    def _append(self, name: str) -> None:
        self.slot_of[name] = len(self.names)
        self.names.append(name)
        self.traits.append(PLAIN)
        self.capacities.append(Resources())
        self.phase.append(NodePhase.GONE)

    def _reshelve(self, slot: int, was_open: bool) -> None:
        is_open = self.is_open(slot)
        if is_open != was_open and not self._is_stale:
            shelve(self._words, slot, 1 if is_open else -1)

    def _lay_out(self) -> None:
        """Number everything anew; whoever sits somewhere stays there."""
        layout = lay_out(self.traits, self.capacities, self.mentioned)
        before, words = self._arena, write_arena(layout, self.capacities, self.prices)
        for slot in self.holders:
            _copy_free(before, words, slot)
        for slot in range(len(self)):
            words[words[at.AT_NODES] + at.NODE_ROW * slot + at.OPEN] = self.is_open(slot)
        self.pools, self.asked = layout.pools, Memory(ASKED_MAX)
        self._arena, self._words = words, words_of(words)
        self._is_stale = False
        shelve_all(self._words)


def _devices_for(ask: Resources, tasks: int) -> int:
    """How many devices a lease names: tasks with a share of a device have one lease per device."""
    return 1 if ask.gpu_milli else ask.gpus * tasks


def _copy_free(before: array[int], after: array[int], slot: int) -> None:
    for field in (*at.FREE, at.FREE_MASK):
        place = at.NODE_ROW * slot + field
        after[after[at.AT_NODES] + place] = before[before[at.AT_NODES] + place]
    width = min(before[at.DEVICES], after[at.DEVICES])
    begin, source = after[at.AT_DEVICES] + slot * after[at.DEVICES], before[at.AT_DEVICES] + slot * before[at.DEVICES]
    after[begin : begin + width] = before[source : source + width]


def _bar_key(bar: Bar) -> tuple[str, str]:
    return bar.kind, bar.owner
