"""Tiers: the ordered classes of service that a job names. An admin sets them; three are there from the beginning.

A tier says who goes before whom, whoever they belong to, and how long a job may wait before it is due. Nothing else is
compared across tenants: `priority` orders the jobs of one tenant among each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from muster.model.record import Record
from muster.model.sharing import MILLI, Sharing
from muster.units import DAY_MS, HOUR_MS, Limit

TIERS_MAX: Final = 64
RANK_MAX: Final = 1_000_000
SHADOWS_MAX: Final = 64
PRIORITY_MAX: Final = 1000
EVICTIONS_MAX: Final = 32
"""The most evictions in a day that are counted, and the most moves."""
WINDOW_MAX_MS: Final = 366 * DAY_MS
"""Over how long a tier may promise a share."""
STANDARD: Final = "standard"


class Promise(Record, frozen=True):
    """What a tier promises each of its gangs: to be up for so many thousandths of every window since it came."""

    share_milli: int
    window_ms: int

    @property
    def owed_ms(self) -> int:
        """For how long a gang is to be up in its window; a part of a millisecond counts as one."""
        return -(-self.share_milli * self.window_ms // MILLI)


class Tier(Record, frozen=True):
    """A class of service: a lower rank goes first; of two with one rank, the name that sorts first.

    Whoever has waited for `longest_wait_ms` is due, and goes first among the jobs of its tenant in this tier. The first
    `shadows` of those who are due and find no room keep later ones from delaying them. What runs inside its guarantee
    is not stopped for others before `min_run_ms`, nor more than `evictions_max` times in a day. An `emergency` tier
    takes from whatever tier is below it, whoever owns what. With a `sharing`, its jobs go by an index and take turns.
    With a `promise`, its gangs are to be up for a share of a window, and are taken in only while all promises fit. Its
    runs may be moved up to `moves_max` times in a day so that others fit; 0 is never.
    """

    rank: int
    longest_wait_ms: int
    shadows: int = 1
    min_run_ms: int = 0
    evictions_max: Limit = None
    emergency: bool = False
    sharing: Sharing | None = None
    promise: Promise | None = None
    moves_max: int = 0


TIERS: Final = {
    "critical": Tier(100, 4 * HOUR_MS),
    STANDARD: Tier(200, DAY_MS),
    "opportunistic": Tier(300, 7 * DAY_MS),
}
"""The tiers of a world in which nobody set any."""


def moves_of(tiers: Mapping[str, Tier]) -> int:
    """How often in a day runs of some tier may be moved at most; 0 if those of none may."""
    return max(tier.moves_max for tier in tiers.values())
