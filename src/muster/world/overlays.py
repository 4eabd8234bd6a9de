"""Overlays: which nodes are behind which feed or uplink, and how much of each budget is taken.

Who is a member follows from what nodes are; what is taken follows from what is held on them: one is kept in step with
the other, and can always be counted anew. Nothing here refuses anything: a budget that was lowered below what runs is
passed until enough of it has ended, and whoever searches asks what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from muster.model.node import Flavor, Traits, fulfils
from muster.model.overlay import NETWORK, SCALE, Overlay
from muster.units import Resources
from muster.world.arena import DEVICE

if TYPE_CHECKING:  # a fleet has overlays
    from muster.world.fleet import Fleet
    from muster.world.world import World

Held: TypeAlias = tuple[int, int, int]
"""Thousandths of devices, thousandths of cores, Mbit/s of the network."""


class Overlays:
    """By name what they are and what is taken of each, in its finest amount; `by_address` are the names of those that
    list a node, and `by_slot` of all that it is in, sorted, of the nodes that are in any. `watts` are what one device
    and one core of a flavor take. `has_refused` is whether a search failed since somebody was last woken for what was
    given back: forgetting that costs a try and changes no decision."""

    __slots__ = ("by_address", "by_name", "by_slot", "has_refused", "used", "watts")

    def __init__(self) -> None:
        self.by_name: dict[str, Overlay] = {}
        self.by_address: dict[str, frozenset[str]] = {}
        self.by_slot: dict[int, tuple[str, ...]] = {}
        self.used: dict[str, int] = {}
        self.watts: dict[str, tuple[int, int]] = {}
        self.has_refused = False

    def draw(self, name: str, flavor: str, held: Held) -> int:
        """What something takes of an overlay on a node of this flavor."""
        if self.by_name[name].resource == NETWORK:
            return held[2]
        device, core = self.watts.get(flavor, (0, 0))
        return device * held[0] + core * held[1]

    def seat(self, slot: int, flavor: str, ask: Resources, tasks: int) -> None:
        """Tasks came to a node, or left it (below zero)."""
        for name in self.by_slot.get(slot, ()):
            self.used[name] += tasks * self.draw(name, flavor, of_ask(ask))

    def put(self, name: str, overlay: Overlay | None) -> None:
        """Say what an overlay is, or that there is none of this name."""
        before = self.by_name.pop(name, None)
        for address in () if before is None else before.nodes:
            self.by_address[address] = self.by_address[address] - {name}
        if overlay is not None:
            self.by_name[name] = overlay
        for address in () if overlay is None else overlay.nodes:
            self.by_address[address] = self.by_address.get(address, frozenset()) | {name}

    def settle(self, slot: int, address: str, traits: Traits) -> None:
        """Say of a node, which holds nothing, what it is in."""
        self.by_slot.pop(slot, None)
        names = tuple(
            name
            for name, overlay in sorted(self.by_name.items())
            if name in self.by_address.get(address, ()) or has_labels(overlay, traits)
        )
        if names:
            self.by_slot[slot] = names

    def recount(self, fleet: Fleet) -> dict[str, int]:
        """What is taken of each, from what is held on every node."""
        found = dict.fromkeys(self.by_name, 0)
        for slot, names in self.by_slot.items():
            if not fleet.is_idle(slot):
                milli, cpu, _, network = fleet.held(slot)
                for name in names:
                    found[name] += self.draw(name, fleet.flavor(slot), (milli, cpu, network))
        return found

    def fork(self) -> Overlays:
        """An independent copy."""
        twin = self.emptied()
        twin.by_slot, twin.used, twin.has_refused = self.by_slot.copy(), self.used.copy(), self.has_refused
        return twin

    def emptied(self) -> Overlays:
        """The same overlays with nobody on their nodes; they share who is in them."""
        twin = Overlays()
        twin.by_name, twin.by_address, twin.watts = self.by_name.copy(), self.by_address.copy(), self.watts.copy()
        twin.by_slot, twin.used = self.by_slot, dict.fromkeys(self.by_name, 0)
        return twin


def of_ask(ask: Resources) -> Held:
    """What one task holds of what budgets are about."""
    return DEVICE * ask.gpus + ask.gpu_milli, ask.cpu_milli, ask.network_mbps


def has_labels(overlay: Overlay, traits: Traits) -> bool:
    """Whether a node is in an overlay by its labels."""
    labels = dict(traits.labels)
    return bool(overlay.labels) and all(fulfils(labels, wish) for wish in overlay.labels)


def rooms_of(fleet: Fleet) -> dict[str, int]:
    """What is left of each overlay for whoever comes: what was freed for somebody is not. It is below zero if the
    budget is passed."""
    overlays = fleet.overlays
    left = {name: SCALE[each.resource] * each.budget - overlays.used[name] for name, each in overlays.by_name.items()}
    for slot in fleet.claimed:
        for name in overlays.by_slot.get(slot, ()):
            left[name] -= overlays.draw(name, fleet.flavor(slot), fleet.kept_back(slot))
    return left


def put_overlay(world: World, name: str, overlay: Overlay | None) -> None:
    """An overlay is this, or is no more: everybody is worth a try, and what could never start may."""
    fleet = world.fleet
    fleet.overlays.put(name, overlay)
    for slot in range(len(fleet)):
        fleet.overlays.settle(slot, fleet.addresses[slot], fleet.traits[slot])
    fleet.split_pools()
    world.quotas.forget_nodes()
    wake_for_budget(world)


def set_watts(world: World, name: str, flavor: Flavor) -> None:
    """What devices and cores of a flavor take from now on, those in use too."""
    fleet = world.fleet
    if fleet.overlays.watts.get(name, (0, 0)) != (flavor.watts, flavor.core_watts):
        fleet.overlays.watts[name] = (flavor.watts, flavor.core_watts)
        fleet.split_pools()
        if fleet.overlays.by_name:
            world.quotas.forget_nodes()
            wake_for_budget(world)


def wake_for_budget(world: World) -> None:
    """Something of a budget came back: whoever failed may fit anywhere behind it, and stand better there."""
    world.fleet.overlays.has_refused = False
    world.queue.wake_all()
    world.wake_outside()
