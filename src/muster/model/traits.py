"""The one check of what a node says of itself besides amounts. It knows the traits alone, and nobody else's."""

from __future__ import annotations

from math import prod

import msgspec

from muster.model.node import LABELS_MAX, TAINTS_MAX, TORUS_SPOTS_MAX, Spot, Traits
from muster.model.reason import Code, Reason
from muster.model.spec import is_name


def find_trait_fault(traits: Traits) -> Reason | None:
    """Names are names, there are not too many, labels come sorted, each key once; a `/` only parts places."""
    keys, place = [key for key, _ in traits.labels], traits.place
    for field, count, most in (("labels", len(keys), LABELS_MAX), ("taints", len(traits.taints), TAINTS_MAX)):
        if count > most:
            return Reason(Code.TOO_LARGE, field, count, most)
    names = [("flavor", traits.flavor), *msgspec.structs.asdict(place).items()]
    names += [("label", name) for pair in traits.labels for name in pair] + [("taint", name) for name in traits.taints]
    for field, name in names:
        if (name and not is_name(name)) or ("/" in name and field in ("region", "cluster")):
            return Reason(Code.BAD_NAME, field, len(name), 128, name[:40])
    if keys != sorted(dict.fromkeys(keys)) or list(traits.taints) != sorted(dict.fromkeys(traits.taints)):
        return Reason(Code.BAD_SPEC, "traits", detail="labels and taints come sorted, each once")
    return None if traits.spot is None else _find_spot_fault(traits.spot)


def _find_spot_fault(spot: Spot) -> Reason | None:
    if not is_name(spot.torus):
        return Reason(Code.BAD_NAME, "torus", len(spot.torus), 128, spot.torus[:40])
    if min(spot.size) < 1 or prod(spot.size) > TORUS_SPOTS_MAX:
        detail = "each side is at least 1"
        return Reason(Code.BAD_AMOUNT, "torus size", prod(spot.size), TORUS_SPOTS_MAX, detail)
    for at, size in zip(spot.at, spot.size, strict=True):
        if not 0 <= at < size:
            return Reason(Code.BAD_AMOUNT, "spot", at, size - 1, f"from 0 to {size - 1} along this side of the torus")
    return None
