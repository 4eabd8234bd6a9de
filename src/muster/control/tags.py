"""Tags: a short hash of how a tenant, tier, flavor, overlay or profile is defined now, so that a change can say what it
is a change of.

The follower shows the tag with the thing; the leader compares it in the moment before the kernel sees the change. What
was never set is what it is by default, or absent. What a thing holds or spends is no part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from muster.model.event import DropOverlay, DropTenant, Event, SetFlavor, SetOverlay, SetProfile, SetTenant, SetTier
from muster.model.reason import Code, Reason
from muster.model.record import Record
from muster.world.world import World

ABSENT: Final = "none"
_TAG_BYTES: Final = 8
_encoder: Final = msgspec.msgpack.Encoder()


def tag_of(thing: Record | None) -> str:
    """The tag of a definition."""
    return ABSENT if thing is None else hashlib.blake2b(_encoder.encode(thing), digest_size=_TAG_BYTES).hexdigest()


def find_mismatch(world: World, event: Event, wanted: str) -> Reason | None:
    """Why a change is not one of what there is; None if it is, or if nothing is said of that."""
    look = _LOOKS.get(type(event))
    if not wanted or look is None or tag_of(look(world, event)) == wanted:
        return None
    return Reason(Code.CHANGED_MEANWHILE, event.name, detail=wanted[:40])  # type: ignore[union-attr]  # as _LOOKS says


_LOOKS: Final[dict[type, Callable[[World, Any], Record | None]]] = {
    SetTenant: lambda world, event: world.tenants.get(event.name),
    DropTenant: lambda world, event: world.tenants.get(event.name),
    SetFlavor: lambda world, event: world.flavors.get(event.name),
    SetTier: lambda world, event: world.tiers.get(event.name),
    SetOverlay: lambda world, event: world.fleet.overlays.by_name.get(event.name),
    DropOverlay: lambda world, event: world.fleet.overlays.by_name.get(event.name),
    SetProfile: lambda world, event: world.profiles.get(event.name),
}
