"""What is wrong with what a node says of itself, and what it lacks of what it said before. Nothing is changed here.

A report that makes no sense is refused as a whole: a node is taken as it describes itself, or not at all.
"""

from __future__ import annotations

from muster.kernel.turn import refuse
from muster.model.event import NodeSeen
from muster.model.node import CAPACITY_MAX, NO_LACK, Lack
from muster.model.reason import Code, Reason, Refused
from muster.model.spec import is_name
from muster.model.traits import find_trait_fault
from muster.units import Resources
from muster.world.fleet import Fleet


def find_fault(fleet: Fleet, item: NodeSeen, slot: int | None) -> Refused | None:
    """The first thing wrong with a report by a node whose address is that of `slot`, if anybody has it."""
    if not is_name(item.name):
        return refuse(Code.BAD_NAME, "node", len(item.name), 128, item.name[:40])
    return (
        _find_capacity_fault(item.capacity)
        or _refuse(find_trait_fault(item.traits))
        or _find_device_fault(item)
        or (None if slot is None else _find_clash(fleet, slot, item))
    )


def lack_of(fleet: Fleet, slot: int, item: NodeSeen) -> Lack:
    """What a report is short of what its node joined with. Devices without ids are known by their numbers."""
    whole, known = fleet.capacities[slot], fleet.device_ids.get(slot, ())
    if known and item.devices:
        here = frozenset(item.devices)
        devices = sum(1 << place for place, device in enumerate(known) if device not in here)
    else:
        devices = sum(1 << place for place in range(item.capacity.gpus, whole.gpus))
    short = {
        field: max(0, getattr(whole, field) - getattr(item.capacity, field))
        for field in ("cpu_milli", "memory_bytes", "disk_bytes", "network_mbps")
    }
    if not devices and not any(short.values()):
        return NO_LACK
    return Lack(devices, Resources(gpus=devices.bit_count(), **short))


def _find_capacity_fault(capacity: Resources) -> Refused | None:
    for field, most in CAPACITY_MAX.items():
        amount, least = getattr(capacity, field), int(field == "cpu_milli")
        if not least <= amount <= most:
            return refuse(Code.BAD_AMOUNT, f"capacity.{field}", amount, most, f"between {least} and {most}")
    return None


def _refuse(reason: Reason | None) -> Refused | None:
    return None if reason is None else Refused(reason)


def _find_device_fault(item: NodeSeen) -> Refused | None:
    """Ids come for every device or for none, and each once."""
    devices, gpus = item.devices, item.capacity.gpus
    if not devices:
        return None
    if len(devices) != gpus:
        return refuse(Code.BAD_SPEC, "devices", len(devices), gpus, f"{len(devices)} ids for {gpus} devices")
    for device in devices:
        if not is_name(device):
            return refuse(Code.BAD_NAME, "device", len(device), 128, device[:40])
    if len(dict.fromkeys(devices)) < len(devices):
        twice = next(device for device in devices if devices.count(device) > 1)
        return refuse(Code.BAD_SPEC, "devices", detail=f"{twice} comes twice")
    return None


def _find_clash(fleet: Fleet, slot: int, item: NodeSeen) -> Refused | None:
    """Two nodes whose addresses read alike though their names or places differ: the one that is known stays."""
    known, place = fleet.traits[slot].place, item.traits.place
    if (fleet.names[slot], known.region, known.cluster) == (item.name, place.region, place.cluster):
        return None
    return refuse(Code.NODE_TAKEN, "node", detail=fleet.addresses[slot])
