"""Quarantine: a device that two nodes claim counts once. The node that came second gets no work until one of them stops
claiming it: by reporting itself without it, or by being gone.

Whose a device is follows from what is: it is that of the live node which claims it and is not in quarantine for it.
"""

from __future__ import annotations

from muster.kernel.turn import Turn
from muster.model import fact
from muster.model.job import BAR_REASON_CHARS_MAX, MUSTER, Bar, BarKind, NodePhase
from muster.model.reason import Code, Reason
from muster.wire.words import put_in_words
from muster.world.sightings import devices_of, find_rival, is_quarantined


def judge_devices(turn: Turn, slot: int, cause: str) -> None:
    """A node reported itself: judge it, and then whoever waited for it to let go of something."""
    if turn.world.fleet.device_ids:
        _judge(turn, slot, cause)
        judge_others(turn, slot, cause)


def judge_others(turn: Turn, slot: int, cause: str) -> None:
    """What this node claims has changed: others may be free of suspicion now, the lowest slot first."""
    fleet = turn.world.fleet
    for other in sorted(fleet.bars) if fleet.device_ids else ():
        if other != slot and is_quarantined(fleet, other) and fleet.phase[other] != NodePhase.GONE:
            _judge(turn, other, cause)


def _judge(turn: Turn, slot: int, cause: str) -> None:
    fleet = turn.world.fleet
    rival = find_rival(fleet, slot) if devices_of(fleet, slot) else None
    if rival is None and is_quarantined(fleet, slot):
        turn.emit(fact.NodeUnbarred(slot, BarKind.QUARANTINE, MUSTER, cause))
    elif rival is not None and not is_quarantined(fleet, slot):
        device, other = rival
        words = put_in_words(Reason(Code.DEVICE_TAKEN, fleet.addresses[other], detail=device))
        reason = f"{Code.DEVICE_TAKEN.value}: {words.what}"[:BAR_REASON_CHARS_MAX]
        turn.emit(fact.NodeBarred(slot, Bar(BarKind.QUARANTINE, MUSTER, reason, turn.now), cause))
