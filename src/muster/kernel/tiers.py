"""What an admin says of tiers: who goes first, and how long a job may wait."""

from __future__ import annotations

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.sharing import INDEXES, MILLI, STEPS_MAX, Sharing
from muster.model.spec import is_name
from muster.model.tier import EVICTIONS_MAX, RANK_MAX, SHADOWS_MAX, TIERS_MAX, WINDOW_MAX_MS
from muster.units import AMOUNT_MAX, MINUTE_MS
from muster.world.promises import count_promised, promisable


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
        ("moves_max", item.tier.moves_max, 0, EVICTIONS_MAX),
    ):
        if not least <= value <= most:
            return refuse(Code.BAD_AMOUNT, field, value, most, f"between {least} and {most}")
    if item.tier.promise is not None and (fault := _find_promise_fault(turn, item)) is not None:
        return fault
    if item.tier.sharing is not None and item.tier.moves_max:
        return refuse(Code.TURNS_NOT_MOVED, item.name, item.tier.moves_max)
    if item.tier.sharing is not None and (fault := _find_sharing_fault(item.tier.sharing)) is not None:
        return fault
    if item.name not in tiers and len(tiers) >= TIERS_MAX:
        return refuse(Code.TOO_LARGE, "tiers", len(tiers) + 1, TIERS_MAX)
    return None


def _find_promise_fault(turn: Turn, item: event.SetTier) -> Refused | None:
    """What is wrong with what a tier is to promise: it has to fit for those who are here."""
    promise, world = item.tier.promise, turn.world
    if promise is None:
        return None
    for field, value, least, most in (
        ("share_milli", promise.share_milli, 1, MILLI),
        ("window_ms", promise.window_ms, MINUTE_MS, WINDOW_MAX_MS),
    ):
        if not least <= value <= most:
            return refuse(Code.BAD_AMOUNT, f"promise.{field}", value, most, f"between {least} and {most}")
    needed, available = count_promised(world, item.name, item.tier), promisable(world)
    if needed > world.promised and needed > available:
        return refuse(Code.PROMISES_FULL, item.name, needed, available)
    return None


def _find_sharing_fault(sharing: Sharing) -> Refused | None:
    """What is wrong with how a tier is to be shared."""
    if sharing.index not in INDEXES:
        return refuse(
            Code.BAD_SPEC, "sharing.index", detail=f"{sharing.index[:40]!r} is not one of {', '.join(INDEXES)}"
        )
    for field, value, least, most in (
        ("quantum_ms", sharing.quantum_ms or 0, 0, AMOUNT_MAX),
        ("keep_milli", sharing.keep_milli, 1, MILLI),
        ("tire_milli", sharing.tire_milli, 1, MILLI),
        ("steps", len(sharing.steps), 0, STEPS_MAX),
        ("owed_after_ms", sharing.owed_after_ms or 0, 0, AMOUNT_MAX),
        ("owed_times", sharing.owed_times, 1, MILLI),
        ("owed_milli", sharing.owed_milli, 0, MILLI),
        ("credit_ms", sharing.credit_ms, 0, AMOUNT_MAX),
    ):
        if not least <= value <= most:
            return refuse(Code.BAD_AMOUNT, f"sharing.{field}", value, most, f"between {least} and {most}")
    if any(not 0 < step <= AMOUNT_MAX for step in sharing.steps) or sorted(sharing.steps) != list(sharing.steps):
        return refuse(Code.BAD_AMOUNT, "sharing.steps", detail="amounts of service that rise")
    return None
