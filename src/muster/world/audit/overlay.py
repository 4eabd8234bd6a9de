"""The auditor's books of overlays: who is behind which, and what the leases there take of it, counted node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from muster.model import fact
from muster.model.node import Flavor, address_of
from muster.model.overlay import NETWORK, SCALE, Overlay
from muster.units import Resources
from muster.world.audit.books import NodeBook
from muster.world.laws.law import require, require_same
from muster.world.overlays import has_labels
from muster.world.world import World

OverlayFact: TypeAlias = fact.OverlaySet | fact.OverlayDropped


class OverlayBooks:
    """What the facts say of overlays, with flavors as they are settled."""

    def __init__(self, flavors: Mapping[str, Flavor]) -> None:
        self._flavors = flavors
        self._overlays: dict[str, Overlay] = {}

    def book(self, item: OverlayFact) -> None:
        """Take one fact down."""
        if isinstance(item, fact.OverlaySet):
            self._overlays[item.name] = item.overlay
        else:
            require(item.name in self._overlays, "only an overlay that is there is removed", item.name)
            del self._overlays[item.name]

    def check_seat(self, number: int, ask: Resources, slot: int, nodes: Sequence[NodeBook]) -> None:
        """Somebody has started on a node: of whatever it takes something there, no more is taken than the budget."""
        node = nodes[slot]
        for name, overlay in self._overlays.items():
            own = (1000 * ask.gpus + ask.gpu_milli, ask.cpu_milli, ask.network_mbps)
            if _is_in(overlay, node) and self._draw(overlay, node, *own):
                taken, most = self._taken(overlay, nodes), SCALE[overlay.resource] * overlay.budget
                evidence = f"job {number} on {node.name}: {name} has {taken} of {most} taken"
                require(taken <= most, "a start stays within every overlay's budget", evidence)

    def compare(self, world: World, nodes: Sequence[NodeBook]) -> None:
        """Whether the world says the same."""
        kept = world.fleet.overlays
        require_same(kept.by_name, self._overlays, "overlays are what the facts say")
        taken = {name: self._taken(overlay, nodes) for name, overlay in self._overlays.items()}
        require_same(kept.used, taken, "what is taken of an overlay is the sum over its leases")

    def _taken(self, overlay: Overlay, nodes: Sequence[NodeBook]) -> int:
        total = 0
        for node in nodes:
            if _is_in(overlay, node):
                cpu_milli, _, _, network = node.held.amounts
                total += self._draw(overlay, node, sum(node.held.devices.values()), cpu_milli, network)
        return total

    def _draw(self, overlay: Overlay, node: NodeBook, gpu_milli: int, cpu_milli: int, network: int) -> int:
        flavor = self._flavors.get(node.flavor(), Flavor(""))
        return network if overlay.resource == NETWORK else flavor.watts * gpu_milli + flavor.core_watts * cpu_milli


def _is_in(overlay: Overlay, node: NodeBook) -> bool:
    return address_of(node.name, node.traits.place) in overlay.nodes or has_labels(overlay, node.traits)
