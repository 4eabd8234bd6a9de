"""The words of the goodput account: what every moment of every accelerator was spent on."""

from __future__ import annotations

import enum
from typing import Final

from muster.model.record import Record


class Bucket(enum.StrEnum):
    """What a moment was spent on: while somebody held the device, and while nobody did."""

    USEFUL = "useful"
    PROVISIONAL = "provisional"
    LOST = "lost"
    STARTING = "starting"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    SPARE = "spare"
    CLAIMED = "claimed"
    BOOKED_IDLE = "booked_idle"
    BLOCKED = "blocked"
    FRAGMENTED = "fragmented"
    NO_DEMAND = "no_demand"
    BARRED = "barred"
    GONE = "gone"


HELD: Final = (
    Bucket.USEFUL,
    Bucket.PROVISIONAL,
    Bucket.LOST,
    Bucket.STARTING,
    Bucket.RESTARTING,
    Bucket.STOPPING,
    Bucket.SPARE,
)
"""The buckets of what is held, which are some tenant's; the others are the fleet's."""


class Mark(Record, frozen=True):
    """How far a run says it is: its step, and the step and the instant of its last checkpoint, 0 if it has none."""

    step: int
    saved_step: int = 0
    saved_at: int = 0
