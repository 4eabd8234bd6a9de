"""Sightings: which devices a node says are its own, and who else does. Derived from reports; nothing is decided here.

A node has the devices that it joined with and does not lack. One that is gone has none, and one that is in quarantine
for them takes nothing from anybody.
"""

from __future__ import annotations

from muster.model.job import MUSTER, BarKind, NodePhase
from muster.world.fleet import Fleet


def devices_of(fleet: Fleet, slot: int) -> list[str]:
    """The devices that a node says it has, in the order of their numbers."""
    ids = fleet.device_ids.get(slot)
    if ids is None or fleet.phase[slot] == NodePhase.GONE:
        return []
    lack = fleet.lacks.get(slot)
    missing = 0 if lack is None else lack.devices
    return [device for place, device in enumerate(ids) if not missing >> place & 1]


def find_rival(fleet: Fleet, slot: int) -> tuple[str, int] | None:
    """The first device of a node that another one has, and that node's slot."""
    for device in devices_of(fleet, slot):
        for other in fleet.nodes_with(device):
            if other != slot and not is_quarantined(fleet, other) and device in devices_of(fleet, other):
                return device, other
    return None


def is_quarantined(fleet: Fleet, slot: int) -> bool:
    """Whether a node is under suspicion for its devices."""
    return any((bar.kind, bar.owner) == (BarKind.QUARANTINE, MUSTER) for bar in fleet.bars.get(slot, ()))
