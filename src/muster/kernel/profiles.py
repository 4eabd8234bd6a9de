"""What an admin says of profiles: how the score terms are weighed, and by which profile the fleet is scored."""

from __future__ import annotations

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.profile import PROFILES_MAX, TERM_WEIGHT_MAX, TERMS, WORTH_TERMS, WORTH_WEIGHT_MAX
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.spec import is_name


def on_set_profile(turn: Turn, item: event.SetProfile) -> Done | Refused:
    """Store a profile. What runs is left alone; if it is in use, the next placements are scored by it."""
    fault = _find_fault(turn, item)
    if fault is not None:
        return fault
    known = turn.world.profiles.get(item.name)
    version = 0 if known is None else known.version
    if known is not None and known.profile == item.profile:
        return DONE
    if item.of_version is not None and item.of_version != version:
        return refuse(Code.PROFILE_CHANGED, "version", item.of_version, version, item.name)
    turn.emit(fact.ProfileSet(item.name, item.profile, version + 1, item.cause))
    return DONE


def on_use_profile(turn: Turn, item: event.UseProfile) -> Done | Refused:
    """Score the fleet by another profile."""
    if item.name not in turn.world.profiles:
        return refuse(Code.UNKNOWN_PROFILE, "profile", detail=item.name[:128])
    if turn.world.profile_used != item.name:
        turn.emit(fact.ProfileUsed(item.name, item.cause))
    return DONE


def _find_fault(turn: Turn, item: event.SetProfile) -> Refused | None:
    profiles = turn.world.profiles
    if not is_name(item.name):
        return refuse(Code.BAD_NAME, "profile", len(item.name), 128, item.name[:40])
    for term in TERMS:
        weight = getattr(item.profile, term)
        most = WORTH_WEIGHT_MAX if term in WORTH_TERMS else TERM_WEIGHT_MAX
        if not 0 <= weight <= most:
            return refuse(Code.BAD_AMOUNT, term, weight, most, f"between 0 and {most}")
    if item.name not in profiles and len(profiles) >= PROFILES_MAX:
        return refuse(Code.TOO_LARGE, "profiles", len(profiles) + 1, PROFILES_MAX)
    return None
