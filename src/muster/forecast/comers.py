"""Who comes while a job waits: such as came in the last day, as often as they came, each time by other luck.

Whoever comes later may go first: of another tenant that has had less, or simply because it fits. A rollout without them
foretells starts that are too early.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from muster.forecast.rollout import Arrival, in_order
from muster.units import DAY_MS, HOUR_MS, SECOND_MS

WINDOW_LEAST_MS: Final = HOUR_MS
"""What came in a shorter time than this is taken for all of an hour: a first few say nothing of a rate."""
GRAIN_MS: Final = 30 * SECOND_MS
"""Who comes within this comes at once: it is one batch."""


class Comers(NamedTuple):
    """Those who came of late, and how far apart they were on the average."""

    seen: Sequence[Arrival]
    gap_ms: int

    def draw(self, now: int, turn: int) -> Iterator[Arrival]:
        """Those who come from now on, in order, without an end."""
        dice = random.Random(turn)  # noqa: S311 - no secret rests on it
        at = float(now)
        while self.seen:
            at += dice.expovariate(1 / self.gap_ms)
            yield dice.choice(self.seen)._replace(at=-(-int(at) // GRAIN_MS) * GRAIN_MS)


NOBODY: Final = Comers((), HOUR_MS)


def gather(came: Sequence[Arrival], now: int) -> Comers:
    """Those of the last day, out of whoever came."""
    seen = in_order(each for each in came if now - DAY_MS < each.at <= now)
    if not seen:
        return NOBODY
    window = max(WINDOW_LEAST_MS, now - seen[0].at)
    return Comers(seen, max(1, window // len(seen)))
