"""What an admin says of tiers: who goes first, and how long a job may wait."""

from __future__ import annotations

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.spec import is_name
from muster.model.tier import EVICTIONS_MAX, RANK_MAX, SHADOWS_MAX, TIERS_MAX
from muster.units import AMOUNT_MAX


def on_set_tier(turn: Turn, item: event.SetTier) -> Done | Refused:
    """Say what a tier is. Work that waits in it is ordered anew; what runs is left alone."""
    fault = _find_fault(turn, item)
    if fault is not None:
        return fault
    if turn.world.tiers.get(item.name) != item.tier:
        turn.emit(fact.TierSet(item.name, item.tier, item.cause))
    return DONE


def _find_fault(turn: Turn, item: event.SetTier) -> Refused | None:
    tiers = turn.world.tiers
    if not is_name(item.name):
        return refuse(Code.BAD_NAME, "tier", len(item.name), 128, item.name[:40])
    for field, value, least, most in (
        ("rank", item.tier.rank, 0, RANK_MAX),
        ("longest_wait_ms", item.tier.longest_wait_ms, 0, AMOUNT_MAX),
        ("shadows", item.tier.shadows, 0, SHADOWS_MAX),
        ("min_run_ms", item.tier.min_run_ms, 0, AMOUNT_MAX),
        ("evictions_max", item.tier.evictions_max or 0, 0, EVICTIONS_MAX),
    ):
        if not least <= value <= most:
            return refuse(Code.BAD_AMOUNT, field, value, most, f"between {least} and {most}")
    if item.name not in tiers and len(tiers) >= TIERS_MAX:
        return refuse(Code.TOO_LARGE, "tiers", len(tiers) + 1, TIERS_MAX)
    return None
