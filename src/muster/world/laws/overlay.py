"""The law of overlays: who is in which follows from what nodes are, and what is taken from what is held there."""

from __future__ import annotations

from muster.model.node import fulfils
from muster.world.laws.law import require_same
from muster.world.world import World


def check_overlays(world: World) -> None:
    """Members and what is taken are those of a rebuild."""
    fleet, overlays = world.fleet, world.fleet.overlays
    members: dict[int, tuple[str, ...]] = {}
    for slot, traits in enumerate(fleet.traits):
        labels, names = dict(traits.labels), []
        for name, overlay in sorted(overlays.by_name.items()):
            by_labels = overlay.labels and all(fulfils(labels, wish) for wish in overlay.labels)
            if by_labels or fleet.addresses[slot] in overlay.nodes:
                names.append(name)
        if names:
            members[slot] = tuple(names)
    require_same(overlays.by_slot, members, "a node is in the overlays that it says")
    require_same(overlays.used, overlays.recount(fleet), "what is taken of an overlay is the sum over its leases")
    watts = {name: (flavor.watts, flavor.core_watts) for name, flavor in world.flavors.items()}
    known = {name: overlays.watts.get(name, (0, 0)) for name in watts}
    require_same(known, watts, "a flavor takes the watts that it says")
