"""The auditor's books of the fleet: what the facts say of each node, and which nodes an entry touched.

It knows nodes, what they have, lack and are barred by; it knows nothing of the jobs on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from muster.model import fact
from muster.model.job import NodePhase
from muster.model.node import NO_LACK, Flavor
from muster.units import DAY_MS, Resources
from muster.world.arena import DEVICE
from muster.world.audit.books import NodeBook
from muster.world.audit.device import DeviceBooks
from muster.world.audit.quota import Plot, Stock
from muster.world.laws.law import require

NodeFact: TypeAlias = (
    fact.NodeJoined | fact.NodeSaid | fact.NodeLacks | fact.NodePhased | fact.NodeBarred | fact.NodeUnbarred
)


class FleetBooks:
    """Nodes by slot. `touched` are the slots of this entry, in the order in which it named them."""

    def __init__(self, flavors: dict[str, Flavor]) -> None:
        self.nodes: list[NodeBook] = []
        self.touched: dict[int, None] = {}
        self._stale: dict[int, None] = {}
        self._plots: dict[int, Plot] = {}
        self._kinds: dict[tuple[str, int, str, str], Plot] = {}
        self._flavors = flavors
        self._devices = DeviceBooks()

    def book(self, item: NodeFact, at: int) -> None:
        """Take one fact down."""
        day = at // DAY_MS
        match item:
            case fact.NodeJoined():
                self._join(item, day)
            case fact.NodeSaid():
                node = self.nodes[item.slot]
                node.traits = replace(node.traits, labels=item.labels, taints=item.taints)
                node.said = item.later
            case fact.NodeLacks():
                node = self.nodes[item.slot]
                if item.lack.devices | node.lack.devices != node.lack.devices:
                    node.losses.append((day, 2))
                node.lack = item.lack
            case fact.NodePhased():
                node = self.nodes[item.slot]
                if item.phase > node.phase:
                    node.losses.append((day, item.phase - node.phase))
                node.phase = item.phase
            case fact.NodeBarred():
                self.nodes[item.slot].bars[(item.bar.kind, item.bar.owner)] = item.bar
            case fact.NodeUnbarred():
                node = self.nodes[item.slot]
                stood = node.bars.pop((item.kind, item.owner), None) is not None
                require(stood, "only a bar that stands is lifted", f"{node.name}: {item.kind} of {item.owner}")
        self.touch(item.slot)

    def _join(self, item: fact.NodeJoined, day: int) -> None:
        """A new node, or an old one that is back; silence is worth 1 loss, a fence or a lost device 2."""
        if item.slot == len(self.nodes):
            self.nodes.append(NodeBook(item.name, item.capacity, item.traits, item.devices))
            return
        node = self.nodes[item.slot]
        idle = node.held.is_nothing()
        require(idle and node.name == item.name, "a slot belongs to one node", f"{item.name} on slot {item.slot}")
        if item.capacity.gpus < node.capacity.gpus - node.lack.devices.bit_count():
            node.losses.append((day, 2))
        self._plots.pop(item.slot, None)
        node.capacity, node.traits, node.devices = item.capacity, item.traits, item.devices
        node.phase, node.lack, node.said = NodePhase.UP, NO_LACK, None

    def is_open(self, slot: int, devices: int) -> bool:
        """Whether work may go to a node, and none of some devices is lacking there."""
        node = self.nodes[slot]
        return node.phase == NodePhase.UP and not node.bars and not devices & node.lack.devices

    def touch(self, slot: int) -> None:
        """What is said of a slot may be another now."""
        self.touched[slot] = None
        self._stale[slot] = None

    def touch_plots(self) -> None:
        """What every node counts for may be another now."""
        self._stale.update(dict.fromkeys(range(len(self.nodes))))
        self._plots.clear()

    def settle(self) -> Iterable[int]:
        """An entry is whole: the slots that it touched."""
        self._devices.settle(self.nodes, self.touched)
        return self.touched

    def take_stale(self) -> Iterator[tuple[int, Stock]]:
        """What each slot counts for that was touched since this was last asked."""
        stale, self._stale = self._stale, {}
        return ((slot, self._stock(slot)) for slot in stale)

    def flavor_at(self, slot: int) -> Flavor:
        """The flavor of a node; one that was never set has its name alone."""
        name = self.nodes[slot].flavor()
        return self._flavors.get(name, Flavor(name))

    def plots_at(self, places: Sequence[tuple[int, int]]) -> list[tuple[Plot, int]]:
        """What places count for: a plot for each, and how many tasks are there."""
        return [(self._plot(slot), tasks) for slot, tasks in places]

    def _plot(self, slot: int) -> Plot:
        """What a node counts as; those that are alike in this have the same plot."""
        known = self._plots.get(slot)
        if known is None:
            flavor, place = self.flavor_at(slot), self.nodes[slot].traits.place
            kind = (flavor.family, flavor.units, place.region, place.cluster)
            known = self._plots[slot] = self._kinds.setdefault(kind, Plot(*kind))
        return known

    def _stock(self, slot: int) -> Stock:
        """What is held beyond what a node still has counts against it."""
        node = self.nodes[slot]
        has = node.capacity if node.lack == NO_LACK else node.capacity.minus(node.lack.amount)
        cpu, memory, *_ = node.held.left_of(has)
        milli = DEVICE * has.gpus - sum(node.held.devices.values())
        free = Resources(cpu_milli=cpu, memory_bytes=memory, gpu_milli=milli)
        is_healthy = node.phase == NodePhase.UP and not node.bars
        return Stock(self._plot(slot), has, free if is_healthy else None)
