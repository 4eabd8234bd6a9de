"""What an admin says of overlays: which nodes are behind what, and how much they may take of it together."""

from __future__ import annotations

from msgspec.structs import replace

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.overlay import BUDGET_MAX, MEMBERS_MAX, OVERLAYS_MAX, SCALE, Overlay
from muster.model.reason import DONE, Code, Done, Reason, Refused
from muster.model.spec import WISHES_MAX, is_name, is_wish
from muster.world.overlays import has_labels


def on_set_overlay(turn: Turn, item: event.SetOverlay) -> Done | Refused:
    """Say what an overlay is. Nobody who runs is stopped for it: a budget below what is taken stops starts alone."""
    fault = _find_fault(turn, item.name, item.overlay)
    if fault is not None:
        return fault
    known, fleet = turn.world.fleet.overlays.by_name.get(item.name), turn.world.fleet
    slots = [fleet.find_slot(node) for node in item.overlay.nodes]
    for slot in slots:
        if isinstance(slot, Reason):
            return Refused(slot)
    addresses = sorted({fleet.addresses[slot] for slot in slots if isinstance(slot, int)})
    overlay = replace(item.overlay, nodes=tuple(addresses), labels=tuple(sorted(set(item.overlay.labels))))
    if not addresses and not any(has_labels(overlay, traits) for traits in fleet.traits):
        return refuse(Code.EMPTY_OVERLAY, item.name, detail=" ".join(overlay.labels))
    if known != overlay:
        turn.emit(fact.OverlaySet(item.name, overlay, item.cause))
    return DONE


def on_drop_overlay(turn: Turn, item: event.DropOverlay) -> Done | Refused:
    """Remove an overlay."""
    if item.name not in turn.world.fleet.overlays.by_name:
        return refuse(Code.UNKNOWN_OVERLAY, "overlay", detail=item.name[:128])
    turn.emit(fact.OverlayDropped(item.name, item.cause))
    return DONE


def _find_fault(turn: Turn, name: str, overlay: Overlay) -> Refused | None:
    """What is wrong with an overlay by itself, or beside the others."""
    known = turn.world.fleet.overlays.by_name
    if not is_name(name):
        return refuse(Code.BAD_NAME, "overlay", len(name), 128, name[:40])
    if overlay.resource not in SCALE:
        return refuse(Code.UNKNOWN_RESOURCE, "resource", detail=overlay.resource[:40])
    if name in known and known[name].resource != overlay.resource:
        return refuse(Code.OVERLAY_TAKEN, name, detail=known[name].resource)
    if not 0 <= overlay.budget <= BUDGET_MAX:
        return refuse(Code.BAD_AMOUNT, "budget", overlay.budget, BUDGET_MAX, f"between 0 and {BUDGET_MAX}")
    for field, count, most in (
        ("overlays", len(known) + (name not in known), OVERLAYS_MAX),
        ("nodes", len(overlay.nodes), MEMBERS_MAX),
        ("labels", len(overlay.labels), WISHES_MAX),
    ):
        if count > most:
            return refuse(Code.TOO_LARGE, field, count, most)
    wrong = next((wish for wish in overlay.labels if not is_wish(wish)), None)
    return None if wrong is None else refuse(Code.BAD_NAME, "label", len(wrong), 128, wrong[:40])
