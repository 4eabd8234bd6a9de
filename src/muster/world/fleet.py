"""The fleet: nodes by slot, and the arena that holds every number of them.

A node has a slot for ever, given by a fact. What it is (name, traits, capacity, devices, bars) is kept in lists by
slot; what it has free is in the arena, together with the index that finds nodes by it. Names and lists are the truth:
the arena is laid out anew when nodes join or change, and only then. The fleet knows nothing of jobs but who sits where,
and nothing of which node is the better choice.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from muster.model.advice import Advice
from muster.model.booking import Keeping
from muster.model.errors import InvariantError
from muster.model.job import Bar, BarKind, Job, NodePhase
from muster.model.node import NO_LACK, PLAIN, Flavor, Lack, Said, Traits, address_of, flavor_of
from muster.model.partition import devices_in, slots_in
from muster.model.profile import DEFAULT, Profile
from muster.model.reason import Code, Reason
from muster.units import Resources
from muster.world import arena as at
from muster.world.company import Company
from muster.world.compiled import Entry, Words, find_differences, words_of
from muster.world.crowd import Crowd, crowd_of
from muster.world.index import seat, shelve, shelve_all
from muster.world.lacks import NOTHING, Withheld, beside_devices, bits_of, give_back, withhold
from muster.world.losses import Losses
from muster.world.memory import Memory
from muster.world.mix import Steps
from muster.world.overlays import Overlays
from muster.world.pools import Pool, copy_free, is_bound, lay_out, write_arena
from muster.world.tables import NO_TABLES, Tables

ASKED_MAX: Final = 4096
"""How many answers are remembered at most: a query with its tables may take some kilobytes."""
FreeVector: TypeAlias = tuple[int, int, int]

_UP: Final = int(NodePhase.UP)  # a plain int: enum members are slow to compare
_SEAT: Final = Entry(seat)
_AT_NODES, _NODE_ROW, _OPEN = at.AT_NODES, at.NODE_ROW, at.OPEN  # what is read most often, at hand
_FREE_GPUS, _FREE_CPU, _FREE_MEMORY = at.FREE_GPUS, at.FREE_CPU, at.FREE_MEMORY


class Fleet:
    """Lists by slot. `holders[slot]` counts the tasks that each job has there (replaced, never changed: forks share);
    `bars[slot]` are the bars of a node that has any, by kind and owner. `capacities` are what nodes joined with,
    `lacks` what of it is not there now, `said` what they will be once they are idle, `losses` how often they failed;
    `claimed` what of a slot is kept for somebody, `withheld` what of it nobody gets, and `booked` for which booking a
    whole node is. `device_ids` are of the nodes that name their devices. `mentioned` are the labels that tell pools
    apart, `prices` what a flavor costs, `cuts` the flavors whose devices are cut, `profile` and `mix` how places are
    weighed.
    `addresses` follow from names and places.

    `asked` is a memory of answers about the present lay-out, for whoever reads the arena; it is dropped with it.
    """

    __slots__ = (
        "_arena",
        "_is_stale",
        "_nodes_with",
        "_shown",
        "_words",
        "addresses",
        "advice",
        "asked",
        "bars",
        "booked",
        "capacities",
        "claimed",
        "company",
        "crowd",
        "cuts",
        "device_ids",
        "holders",
        "is_blank",
        "is_exact",
        "lacks",
        "losses",
        "mentioned",
        "mix",
        "names",
        "overlays",
        "phase",
        "pools",
        "prices",
        "profile",
        "said",
        "slot_of",
        "tables",
        "traits",
        "withheld",
    )

    def __init__(self) -> None:
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.slot_of: dict[str, int] = {}
        self.traits: list[Traits] = []
        self.capacities: list[Resources] = []
        self.device_ids: dict[int, tuple[str, ...]] = {}
        self.lacks: dict[int, Lack] = {}
        self.said: dict[int, Said] = {}
        self.losses = Losses()
        self.company = Company()
        self.overlays = Overlays()
        self.is_blank = False
        self.phase = array("q")
        self.bars: dict[int, tuple[Bar, ...]] = {}
        self.claimed: dict[int, Lack] = {}
        self.withheld: dict[int, Withheld] = {}
        self.booked: dict[int, Keeping] = {}
        self.holders: dict[int, dict[int, int]] = {}
        self.mentioned: frozenset[str] = frozenset()
        self.prices: dict[str, int] = {}
        self.cuts: dict[str, Flavor] = {}
        self.profile = DEFAULT
        self.is_exact = False
        self.mix: Steps = ()
        self.tables = NO_TABLES
        self.advice: Advice | None = None
        self.crowd: Crowd | None = None
        self.pools: list[Pool] = []
        self.asked = Memory(ASKED_MAX)
        self._arena = array("q")
        self._words: Words = words_of(self._arena)
        self._is_stale = True
        self._nodes_with: dict[str, tuple[int, ...]] | None = None
        self._shown: list[str] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def words(self) -> Words:
        """The arena, for compiled code."""
        if self._is_stale:
            self._lay_out()
        return self._words

    def recall(self, key: object) -> Any:
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
        row = words[_AT_NODES] + _NODE_ROW * slot
        if not words[row + _OPEN] and not (slot in self.booked and self.is_open(slot)):
            return None
        return words[row + _FREE_GPUS], words[row + _FREE_CPU], words[row + _FREE_MEMORY]

    def devices(self, slot: int) -> list[int]:
        """Thousandths left of each device of a node."""
        if self._is_stale:
            self._lay_out()
        begin = self._arena[at.AT_DEVICES] + slot * self._arena[at.DEVICES]
        return self._arena[begin : begin + self.capacities[slot].gpus].tolist()

    def capacity(self, slot: int) -> Resources:
        """What a node has in all: what it joined with, but for what it lacks."""
        lack = self.lacks.get(slot)
        return self.capacities[slot] if lack is None else self.capacities[slot].minus(lack.amount)

    def held(self, slot: int) -> tuple[int, int, int, int]:
        """What is held on a node: thousandths of devices, CPU, memory, network."""
        whole, free = self.capacities[slot], self.free(slot)
        milli = at.DEVICE * whole.gpus - sum(self.devices(slot))
        withheld = self.withheld.get(slot, NOTHING)
        pairs = zip(beside_devices(whole), beside_devices(free), withheld.amounts, strict=True)
        cpu, memory, _, network = (most - left - kept for most, left, kept in pairs)
        return milli - withheld.gpu_milli, cpu, memory, network

    def kept_back(self, slot: int) -> tuple[int, int, int]:
        """What of a node is free and kept for whoever claimed it: thousandths of devices, CPU, network."""
        if self._is_stale:  # what an idle node withholds is counted as it is laid out
            self._lay_out()
        lack, withheld = self.lacks.get(slot, NO_LACK), self.withheld.get(slot, NOTHING)
        milli = sum(rest for device, rest in withheld.devices if not lack.devices >> device & 1)
        pairs = zip(withheld.amounts, beside_devices(lack.amount), strict=True)
        cpu, _, _, network = (max(0, kept - missing) for kept, missing in pairs)
        return milli, cpu, network

    def lacking_milli(self, slot: int) -> int:
        """Thousandths of devices that a node lacks and nobody holds."""
        devices = self.lacks[slot].devices
        if self.is_idle(slot):
            return at.DEVICE * devices.bit_count()
        return sum(milli for device, milli in self.withheld[slot].devices if devices >> device & 1)

    def find_slot(self, reference: str) -> int | Reason:
        """The one node that a person means: by its whole address, or by as much of the end of it as is enough."""
        slot = self.slot_of.get(reference)
        if slot is not None:
            return slot
        found = [slot for slot, address in enumerate(self.addresses) if address.endswith(f"/{reference}")]
        if len(found) == 1:
            return found[0]
        if not found:
            return Reason(Code.UNKNOWN_NODE, "node", detail=reference[:128])
        some = ", ".join(self.addresses[slot] for slot in found[:3])
        return Reason(Code.AMBIGUOUS_NODE, reference[:128], len(found), 1, some)

    def shown(self) -> list[str]:
        """What each node is called: its name if no other has it, else its address."""
        if self._shown is None:
            counts: dict[str, int] = {}
            for name in self.names:
                counts[name] = counts.get(name, 0) + 1
            pairs = zip(self.names, self.addresses, strict=True)
            self._shown = [name if counts[name] == 1 else address for name, address in pairs]
        return self._shown

    def name_devices(self, slots: Sequence[int], devices: Sequence[int]) -> list[tuple[str, ...]]:
        """The ids of the devices of leases; nothing where a node did not name its own, and no list where none did."""
        if not self.device_ids:
            return []
        named = [self.device_ids.get(slot, ()) for slot in slots]
        pairs = zip(named, devices, strict=True)
        return [tuple(ids[bit] for bit in bits_of(devices_in(word))) if ids else () for ids, word in pairs]

    def nodes_with(self, device: str) -> tuple[int, ...]:
        """The nodes that joined with a device of this id, by slot."""
        if self._nodes_with is None:
            self._nodes_with = {}
            for slot in sorted(self.device_ids):
                self._sight(slot, self.device_ids[slot])
        return self._nodes_with.get(device, ())

    def flavor(self, slot: int) -> str:
        """The kind of capacity that a node is."""
        return flavor_of(self.traits[slot], self.capacities[slot])

    def is_idle(self, slot: int) -> bool:
        """Whether nobody holds anything there."""
        return slot not in self.holders

    def is_open(self, slot: int) -> bool:
        """Whether new work may go to a node: it is up and nobody bars it."""
        return self.phase[slot] == _UP and slot not in self.bars

    def is_listed(self, slot: int) -> bool:
        """Whether a node is in the index: it is open, and kept for no booking."""
        return self.is_open(slot) and slot not in self.booked

    def missing(self, slot: int) -> Lack:
        """What of a node nobody may have even if it is free: what it lacks, and what is claimed."""
        lack, claimed = self.lacks.get(slot, NO_LACK), self.claimed.get(slot)
        if claimed is None:
            return lack
        here = claimed.devices & ((1 << self.capacities[slot].gpus) - 1)
        return Lack(lack.devices | here, lack.amount.plus(claimed.amount))

    def kinds(self) -> dict[Resources, int]:
        """How many nodes there are of each capacity, whatever their phase."""
        found: dict[Resources, int] = {}
        for capacity in self.capacities:
            found[capacity] = found.get(capacity, 0) + 1
        return found

    def join(
        self, slot: int, name: str, capacity: Resources, traits: Traits = PLAIN, devices: tuple[str, ...] = ()
    ) -> None:
        """Give a node its slot, or an idle one its new capacity, traits and devices; it is up and lacks nothing."""
        if slot == len(self.names):
            self._append(name)
        elif self.names[slot] != name or slot in self.holders:
            raise InvariantError("a slot belongs to one node", f"slot {slot}: {self.names[slot]}, then {name}")
        else:
            del self.slot_of[self.addresses[slot]]
        self.addresses[slot] = address_of(name, traits.place)
        self.slot_of[self.addresses[slot]] = slot
        self.traits[slot], self.capacities[slot] = traits, capacity
        self.phase[slot] = NodePhase.UP
        if self.overlays.by_name:
            self.overlays.settle(slot, self.addresses[slot], traits)
        self._set_devices(slot, devices)
        self.lacks.pop(slot, None)
        self.said.pop(slot, None)
        self.withheld.pop(slot, None)
        self._shown = None
        self._is_stale = True

    def hear(self, slot: int, traits: Traits, later: Said | None) -> None:
        """A node where work is has traits that differ in labels and taints, and is to be something else later."""
        self.traits[slot] = traits
        self.said.pop(slot, None)
        if later is not None:
            self.said[slot] = later
        self.overlays.settle(slot, self.addresses[slot], traits)
        self.split_pools()

    def set_lack(self, slot: int, lack: Lack) -> None:
        """Say what a node lacks of what it joined with; nothing of that is free from now on."""
        words = self.words
        give_back(words, slot, self.withheld.pop(slot, NOTHING))
        self.lacks.pop(slot, None)
        if lack != NO_LACK:
            self.lacks[slot] = lack
        self._withhold(words, slot)
        self.asked = Memory(ASKED_MAX)  # what the fleet could hold at best is another question now

    def set_phase(self, slot: int, phase: NodePhase) -> None:
        """Move a node into or out of the index."""
        was_listed = self.is_listed(slot)
        self.phase[slot] = phase
        self._reshelve(slot, was_listed)

    def bar(self, slot: int, bar: Bar) -> None:
        """Set a bar; it replaces the one of the same kind and owner."""
        others = [other for other in self.bars.get(slot, ()) if (other.kind, other.owner) != (bar.kind, bar.owner)]
        was_listed = self.is_listed(slot)
        self.bars[slot] = tuple(sorted([*others, bar], key=lambda each: (each.kind, each.owner)))
        self._reshelve(slot, was_listed)

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
            self._reshelve(slot, was_listed=False)

    def set_booked(self, slot: int, keeping: Keeping | None) -> None:
        """Say for which booking a node is kept, if for any: only who asks for such nodes finds them."""
        was_listed = self.is_listed(slot)
        self.booked.pop(slot, None)
        if keeping is not None:
            self.booked[slot] = keeping
        self._reshelve(slot, was_listed)

    def set_claimed(self, slot: int, claimed: Lack) -> None:
        """Say what of a node is claimed: as soon as it is free, nobody else has it."""
        words = self.words
        give_back(words, slot, self.withheld.pop(slot, NOTHING))
        self.claimed.pop(slot, None)
        if claimed != NO_LACK:
            self.claimed[slot] = claimed
        self._withhold(words, slot)

    def mention(self, labels: frozenset[str]) -> None:
        """Tell pools apart by these labels too."""
        self.mentioned |= labels
        self._is_stale = True

    def split_pools(self) -> None:
        """Tell pools apart by the overlays that they are in now, and count anew what is taken of those."""
        self.overlays.used = self.overlays.recount(self)
        self._is_stale = True

    def set_price(self, flavor: str, price_micros: int) -> None:
        """What one device of a flavor costs in an hour."""
        self.prices[flavor] = price_micros
        self._is_stale = True

    def set_cuts(self, name: str, flavor: Flavor) -> None:
        """Cut the devices of a flavor as it says, if it does; nobody has anything of them if that is news."""
        if self.cuts.pop(name, None) != (flavor if flavor.partitions else None):
            self._is_stale = True
        if flavor.partitions:
            self.cuts[name] = flavor

    def slots_taken(self, slot: int) -> list[int]:
        """The slots that partitions have of each device of a node, as bits."""
        begin = self.words[at.AT_SLOTS] + slot * self._arena[at.DEVICES]
        return self._arena[begin : begin + self.capacities[slot].gpus].tolist()

    def settle_risks(self, at: int) -> None:
        """Let nodes be of the risk that their losses make them at an instant."""
        if self.losses.by_slot and self.losses.settle(at):
            self._is_stale = True

    def weigh(self, profile: Profile, jobs: Mapping[int, Job] | None = None) -> None:
        """Weigh places by this profile; scores that were written down by another are forgotten. A crowd is kept only
        while it is weighed: that of the jobs, or the one that there is."""
        self.profile, self.is_exact = profile, profile.is_exact
        if not profile.clustering:
            self.crowd = None
        elif jobs is not None or self.crowd is None:
            self.crowd = crowd_of(jobs or {}, self.holders if jobs else {})
        self.asked = Memory(ASKED_MAX)

    def prefer(self, tables: Tables) -> None:
        """Prefer pools by these tables; ranks that were written down by others are forgotten."""
        self.tables = tables
        self.asked = Memory(ASKED_MAX)

    def heed(self, advice: Advice | None) -> None:
        """Go by this advice on packing."""
        self.advice = advice

    def has_room(self, slot: int, ask: Resources, tasks: int, devices: int) -> bool:
        """Whether `occupy` would find what it takes, on a node that is open and not booked."""
        free, rests = self.free(slot), self.devices(slot)
        share = ask.gpu_milli * tasks if ask.gpu_milli else at.DEVICE
        named, slots = list(bits_of(devices_in(devices))), slots_in(devices)
        has_devices = all(device < len(rests) and rests[device] >= share for device in named)
        if slots and has_devices:
            has_devices = not self.slots_taken(slot)[named[0]] & slots
        has_rest = (
            free.cpu_milli >= ask.cpu_milli * tasks
            and free.memory_bytes >= ask.memory_bytes * tasks
            and free.disk_bytes >= ask.disk_bytes * tasks
            and free.network_mbps >= ask.network_mbps * tasks
        )
        return has_devices and has_rest and self.is_listed(slot)

    def is_vacant(self, slot: int, ask: Resources, tasks: int, devices: int) -> bool:
        """Whether nobody holds what `occupy` would take, kept from others or not; of all but devices at a glance."""
        withheld = self.withheld.get(slot, NOTHING)
        cpu = self._arena[self._arena[_AT_NODES] + _NODE_ROW * slot + _FREE_CPU] + withheld.amounts[0]
        if cpu < ask.cpu_milli * tasks:
            return False  # as of most who wait for somebody to leave
        rests = self.devices(slot)
        for device, milli in withheld.devices:
            rests[device] += milli
        share = ask.gpu_milli * tasks if ask.gpu_milli else at.DEVICE
        return all(device < len(rests) and rests[device] >= share for device in bits_of(devices_in(devices)))

    def occupy(self, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        """Give `tasks` of a job their share of a node. The inverse of `vacate`."""
        take = self._take_beside if ask.gpu_milli and slot in self.claimed else self._take
        if not take(slot, ask, tasks, devices):
            raise InvariantError("allocations fit their node", f"job {job} on {self.names[slot]}: {ask} x {tasks}")
        here = self.holders.get(slot)
        self.holders[slot] = {job: tasks} if here is None else {**here, job: here.get(job, 0) + tasks}
        if self.crowd is not None:
            self.crowd.seat(slot, ask, tasks)

    def vacate(self, slot: int, job: int, ask: Resources, tasks: int, devices: int) -> None:
        """Take them back. The inverse of `occupy`."""
        here = self.holders.get(slot) or {}
        left = here.get(job, 0) - tasks
        if left < 0 or not self._take(slot, ask, -tasks, devices):
            raise InvariantError("only what is held is given back", f"job {job} on {self.names[slot]}: {ask} x {tasks}")
        if left:
            self.holders[slot] = {**here, job: left}
        elif len(here) > 1:
            others = self.holders[slot] = here.copy()
            del others[job]
        else:
            del self.holders[slot]
        if self.crowd is not None:
            self.crowd.seat(slot, ask, -tasks)
        if slot in self.lacks or slot in self.claimed:
            self._withhold(self._words, slot)

    def show(self, slot: int, ask: Resources, tasks: int, devices: int) -> None:
        """Show a node as if tasks were there, or as if they had left (below zero): who holds what does not change, and
        whoever looks ahead so takes it back before anything else happens."""
        if not self._take(slot, ask, tasks, devices):
            raise InvariantError("what is shown is taken back", f"{self.names[slot]}: {ask} x {tasks}")

    def fork(self) -> Fleet:
        """An independent copy: the arena by memcpy, lists and holders by copy."""
        twin = Fleet.__new__(Fleet)
        for name in _COPIED:
            setattr(twin, name, getattr(self, name).copy())
        twin._nodes_with, twin._shown = None, self._shown
        twin.phase = self.phase[:]
        twin.mentioned, twin.profile, twin.losses = self.mentioned, self.profile, self.losses.fork()
        twin.mix, twin.tables = self.mix, self.tables
        twin.advice, twin.is_exact = self.advice, self.is_exact
        twin.crowd = None if self.crowd is None else self.crowd.fork()
        twin.company, twin.is_blank = self.company.fork(), self.is_blank
        twin.overlays = self.overlays.fork()
        twin.pools, twin.asked = self.pools, Memory(ASKED_MAX, self.asked)
        twin._arena = self._arena[:]
        twin._words = words_of(twin._arena)
        twin._is_stale = self._is_stale
        return twin

    def blank(self) -> Fleet:
        """The same nodes with nobody on them and none of them closed: what the fleet could hold at best."""
        twin = Fleet()
        for name in ("names", "addresses", "slot_of", "traits", "capacities", "lacks", "mentioned", "prices", "cuts"):
            setattr(twin, name, getattr(self, name))
        twin.phase, twin.overlays = array("q", [_UP]) * len(self), self.overlays.emptied()
        twin.is_blank = True
        return twin

    def jobs_on(self, flavor: str) -> set[int]:
        """The jobs that hold something of a flavor."""
        return {job for slot, holders in self.holders.items() if self.flavor(slot) == flavor for job in holders}

    def flavors_held(self, job: int) -> set[str]:
        """The flavors that a job holds something of."""
        return {self.flavor(slot) for slot, holders in self.holders.items() if job in holders}

    def find_index_fault(self) -> str | None:
        """Where the arena differs from one that is laid out anew; bounds may be above those, never below."""
        if self._is_stale:
            return None
        twin = self.fork()
        twin._lay_out()
        if len(self._arena) != len(twin._arena):
            return f"kept {len(self._arena)} words, wanted {len(twin._arena)}"
        for place in find_differences(self._arena, twin._arena):
            kept, wanted = self._arena[place], twin._arena[place]
            if not (kept > wanted and is_bound(twin._arena, place)):
                return f"word {place}: kept {kept}, wanted {wanted}"
        return None

    def _take(self, slot: int, ask: Resources, tasks: int, devices: int) -> int:
        if self._is_stale:
            self._lay_out()
        if self.overlays.by_slot:
            self.overlays.seat(slot, self.flavor(slot), ask, tasks)
        return _SEAT.call(
            self._words, slot, tasks, devices,
            ask.gpus, ask.gpu_milli, ask.cpu_milli, ask.memory_bytes, ask.disk_bytes, ask.network_mbps,
        )  # fmt: skip

    def _take_beside(self, slot: int, ask: Resources, tasks: int, devices: int) -> int:
        """Take a share of a device beside those who claim other shares of it, for whom the rest is withheld."""
        kept = self.claimed[slot]
        self.set_claimed(slot, Lack(kept.devices & ~devices_in(devices), kept.amount))
        taken = self._take(slot, ask, tasks, devices)
        self.set_claimed(slot, kept)
        return taken

    def _withhold(self, words: Words, slot: int) -> None:
        """Withhold what is missing and free, besides what is withheld already."""
        missing = self.missing(slot)
        if missing != NO_LACK:
            self.withheld[slot] = withhold(words, slot, missing, self.withheld.get(slot, NOTHING))

    def _set_devices(self, slot: int, devices: tuple[str, ...]) -> None:
        if self.device_ids.get(slot, ()) == devices:
            return
        if slot in self.device_ids or self._nodes_with is None:
            self._nodes_with = None
        else:
            self._sight(slot, devices)
        self.device_ids.pop(slot, None)
        if devices:
            self.device_ids[slot] = devices

    def _sight(self, slot: int, devices: tuple[str, ...]) -> None:
        if self._nodes_with is not None:
            for device in devices:
                self._nodes_with[device] = tuple(sorted((*self._nodes_with.get(device, ()), slot)))

    def _append(self, name: str) -> None:
        self.addresses.append("")
        self.names.append(name)
        self.traits.append(PLAIN)
        self.capacities.append(Resources())
        self.phase.append(NodePhase.GONE)

    def _reshelve(self, slot: int, was_listed: bool) -> None:
        is_listed = self.is_listed(slot)
        if is_listed != was_listed and not self._is_stale:
            shelve(self._words, slot, 1 if is_listed else -1)

    def _lay_out(self) -> None:
        """Number everything anew; whoever sits somewhere stays there."""
        layout = lay_out(
            self.traits, self.capacities, self.mentioned, self.losses.risks, self.overlays.by_slot, self.cuts
        )
        before, words = self._arena, write_arena(layout, self.capacities, self.prices)
        for slot in self.holders:
            copy_free(before, words, slot)
        for slot in self.lacks | self.claimed:
            if slot not in self.holders:
                self.withheld[slot] = withhold(words_of(words), slot, self.missing(slot), NOTHING)
        for slot in range(len(self)):
            words[words[at.AT_NODES] + at.NODE_ROW * slot + at.OPEN] = self.is_listed(slot)
        self.pools, self.asked = layout.pools, Memory(ASKED_MAX)
        self._arena, self._words = words, words_of(words)
        self._is_stale = False
        shelve_all(self._words)


_COPIED: Final = (
    "names", "addresses", "slot_of", "traits", "capacities", "device_ids", "lacks", "said", "withheld", "bars",
    "booked", "claimed", "holders", "prices", "cuts",
)  # fmt: skip
"""What a fork has of its own, besides numbers."""
