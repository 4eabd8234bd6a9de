"""The auditor's books of devices: which node owns which. Kept from what the facts say of nodes, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muster.model.job import MUSTER, BarKind, NodePhase
from muster.world.audit.books import NodeBook
from muster.world.laws.law import require


class DeviceBooks:
    """Who owns each device, by slot, and the devices of each slot."""

    def __init__(self) -> None:
        self._owners: dict[str, int] = {}
        self._owned: dict[int, list[str]] = {}

    def settle(self, nodes: Sequence[NodeBook], changed: Iterable[int]) -> None:
        """Some nodes changed: who owns which device now. A node that is gone or in quarantine owns none."""
        touched = [slot for slot in changed if nodes[slot].devices or slot in self._owned]
        for slot in touched:
            for device in self._owned.pop(slot, ()):
                del self._owners[device]
        for slot in touched:
            node = nodes[slot]
            if node.phase == NodePhase.GONE or (BarKind.QUARANTINE, MUSTER) in node.bars:
                continue
            self._owned[slot] = [
                device for place, device in enumerate(node.devices) if not node.lack.devices >> place & 1
            ]
            for device in self._owned[slot]:
                other = nodes[self._owners.setdefault(device, slot)]
                require(other is node, "no device is in two nodes", f"{device}: {other.name} and {node.name}")
