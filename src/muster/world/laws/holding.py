"""What the leases on one node add up to, counted lease by lease: the checkers' own arithmetic, beside the arena's."""

from __future__ import annotations

from muster.model.node import NO_LACK, Lack
from muster.model.partition import devices_in, slots_in
from muster.units import Resources
from muster.world.arena import DEVICE


class Holding:
    """What the leases on one node add up to: amounts beside devices, and thousandths of each device."""

    __slots__ = ("amounts", "devices", "slots")

    def __init__(self) -> None:
        self.amounts = [0, 0, 0, 0]
        self.devices: dict[int, int] = {}
        self.slots: dict[int, int] = {}

    def add(self, ask: Resources, tasks: int, devices: int) -> bool:
        """Add one lease (with tasks below zero: take one away); False if a device would be given away twice."""
        self.amounts = [held + each * tasks for held, each in zip(self.amounts, plain(ask), strict=True)]
        named, slots, whole = devices_in(devices), slots_in(devices), True
        for device in range(named.bit_length()):
            if named >> device & 1:
                share = ask.gpu_milli * tasks if ask.gpu_milli else DEVICE if tasks > 0 else -DEVICE
                self.devices[device] = self.devices.get(device, 0) + share
                taken = self.slots.get(device, 0)
                whole = whole and taken & slots == (0 if tasks > 0 else slots)
                self.slots[device] = taken ^ slots
        return whole and all(0 <= share <= DEVICE for share in self.devices.values())

    def is_nothing(self) -> bool:
        """Whether nothing is held."""
        return not any(self.amounts) and not any(self.devices.values())

    def left_of(self, capacity: Resources, lack: Lack = NO_LACK) -> list[int]:
        """What a node has left beside devices; where it lacks more than is left, that is nothing."""
        left = [most - taken for most, taken in zip(plain(capacity), self.amounts, strict=True)]
        return left if lack == NO_LACK else [max(0, a - b) for a, b in zip(left, plain(lack.amount), strict=True)]

    def rests_of(self, capacity: Resources, lack: Lack = NO_LACK) -> list[int]:
        """Thousandths left of each device; one that is not there has nothing left."""
        rests = [DEVICE - self.devices.get(device, 0) for device in range(capacity.gpus)]
        return [0 if lack.devices >> device & 1 else rest for device, rest in enumerate(rests)]


def plain(amount: Resources) -> tuple[int, int, int, int]:
    """All but devices: CPU, memory, disk, network."""
    return amount.cpu_milli, amount.memory_bytes, amount.disk_bytes, amount.network_mbps
