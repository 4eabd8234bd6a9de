"""Overlays as a reader sees them: what each is about, who is behind it, what is left of its budget. Built on read."""

from __future__ import annotations

from muster.model.overlay import SCALE, UNITS
from muster.wire.views import OverlayView
from muster.world.fleet import Fleet
from muster.world.overlays import rooms_of
from muster.world.world import World


def view_overlays(world: World) -> list[OverlayView]:
    """Every overlay, by name."""
    fleet, rooms = world.fleet, rooms_of(world.fleet)
    return [_view(fleet, name, rooms[name]) for name in sorted(fleet.overlays.by_name)]


def _view(fleet: Fleet, name: str, room: int) -> OverlayView:
    """A part of a unit counts as taken: what is left can be asked for."""
    overlay = fleet.overlays.by_name[name]
    scale, shown = SCALE[overlay.resource], fleet.shown()
    members = [shown[slot] for slot, names in sorted(fleet.overlays.by_slot.items()) if name in names]
    taken = -(-fleet.overlays.used[name] // scale)
    return OverlayView(
        name=name,
        resource=overlay.resource,
        unit=UNITS[overlay.resource],
        budget=overlay.budget,
        taken=taken,
        left=max(0, room // scale),
        over=max(0, taken - overlay.budget),
        nodes=members,
        named=list(overlay.nodes),
        labels=list(overlay.labels),
    )
