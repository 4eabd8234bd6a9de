"""ranges: which range of run times is said of a job, by how likely it is over at which instant.

Four in five of all that is said should hold, and most of it should say something: a range of more than so many typical
run times is long, and fewer than half are to be. So length has a price, and to be long has another beside it. A job
gets the range that holds most likely for what it costs: a short one where it can be foretold, and a long one where
short ones would hold too rarely. Four in five hold over all jobs, not in each class, yet seldom less than `LEAST`.

Both prices are found by what comes of them, whatever the load, so they stay right when it drifts. That of length falls
with every miss and rises a little with every hit (adaptive conformal levels). That of being long rises with every long
range and falls with every short one. Where run times differ so much that not both goals can be reached, misses count
more: the more of them, the more ranges may be long.
"""

from __future__ import annotations

from math import exp
from typing import Final

import numpy as np

from muster.learning.hazard import COARSE, FINE, Floats
from muster.units import HOUR_MS, SECOND_MS

HOLDS: Final = 0.8
"""How often a range should hold."""
LONG: Final = 1.3
"""A range is long from so many typical run times on: then it costs half of what one costs that says nothing."""
LONGS: Final = 0.46
"""What part of the ranges may be long."""
LONGS_PACE: Final = 0.01
"""How much one range changes what being long costs."""
LONGS_MAX: Final = 2.5
"""What costs so much is chosen by nobody."""
MISSED: Final = 0.23
"""Where more than this part of the ranges miss, more may be long."""
MISSED_WEIGHT: Final = 10.0
"""How many more, for the square of what there is above it."""
MISSED_PACE: Final = 0.01
"""How much one range says of that."""
PACE: Final = 0.005
"""By how many powers of e one range changes what length costs, in the long run."""
PACE_MAX: Final = 0.05
"""The first ones change it by as much as this, and then by one over the root of their number."""
REACH_MAX: Final = 6.0
"""How many powers of e that may be away from what it was at first."""
LEAST: Final = 0.6
"""How likely a range should hold at least, by what is known."""
LEAST_COST: Final = 3.0
"""How much more it counts what is missing to that."""
ENDLESS: Final = 0.001
"""What each typical run time adds to the cost, so that a range ends where nearly nothing is left."""
COLD_MS: Final = HOUR_MS
"""What is typical before anything ended."""
FADES: Final = 5e-5
"""How much each end takes from what those before it say of what is typical."""
LATELY_PACE: Final = 0.005
"""By how many powers of e an end changes what is typical of the latest; the first ones change it more."""
OTHER: Final = 6.0
"""Where the latest run for so many times as long as all did, or for such a part of it, what is typical has changed, and
what was before is forgotten."""
FIRST, LAST = np.triu_indices(COARSE.bins + 2, 1)
"""Where ranges begin and end, by the edges of bins, and by what is left at the limit as the last bin."""
_EDGES: Final = np.array(FINE.edges_ms, dtype=np.float64)


class Ranges:
    """What length costs, by what was said so far and what came of it."""

    def __init__(self) -> None:
        self._cheap = self._long_price = 0.0
        self._judged = self._ended = 0
        self._lately_ms = float(COLD_MS)
        self._missed = 1.0 - HOLDS
        self._lengths: Floats = np.zeros(len(_EDGES) - 1)

    def choose(self, edges: Floats, over: Floats) -> tuple[float, float]:
        """The range that holds most likely for what it costs, by how likely the job is over at each edge. Beside those
        from edge to edge there are those that are just not long."""
        typical = self._typical_ms()
        lows = np.concatenate((edges[FIRST], edges))
        highs = np.concatenate((edges[LAST], np.minimum(edges + LONG * typical, edges[-1])))
        holds = np.concatenate((over[LAST] - over[FIRST], np.interp(highs[len(LAST) :], edges, over) - over))
        times = (highs - lows) / typical
        are_long = times > LONG * (1.0 + 1e-9)
        costs = times**2 / (times**2 + LONG**2) + ENDLESS * times
        price = exp(-self._cheap)
        lacks = LEAST_COST * max(1.0, price) * np.maximum(0.0, LEAST - holds)
        best = int(np.argmax(holds - lacks - price * costs - self._long_price * are_long))
        self._count_long(is_long=bool(are_long[best]))
        return float(lows[best]), float(highs[best])

    def judge(self, *, is_missed: bool) -> None:
        """One more range did not hold, or did."""
        self._judged += 1
        self._missed += max(MISSED_PACE, 1.0 / (self._judged + 5)) * (is_missed - self._missed)
        step = max(PACE, min(PACE_MAX, self._judged**-0.5)) * (is_missed - (1.0 - HOLDS))
        self._cheap = min(REACH_MAX, max(-REACH_MAX, self._cheap + step))

    def learn(self, ran_ms: int) -> None:
        """A job ran for so long."""
        typical = self._typical_ms()
        self._lengths *= 1.0 - FADES if typical / OTHER < self._lately_ms < typical * OTHER else 0.0
        step = max(LATELY_PACE, 1.0 / (1 + self._ended))
        self._ended += 1
        self._lately_ms = max(float(SECOND_MS), self._lately_ms * exp(step if ran_ms > self._lately_ms else -step))
        self._lengths[min(len(self._lengths) - 1, int(np.searchsorted(_EDGES[1:], ran_ms)))] += 1.0

    def _count_long(self, *, is_long: bool) -> None:
        allowed = LONGS + MISSED_WEIGHT * max(0.0, self._missed - MISSED) ** 2
        self._long_price = min(LONGS_MAX, max(0.0, self._long_price + LONGS_PACE * (is_long - allowed)))

    def _typical_ms(self) -> float:
        """What half of the jobs ran for at most, of all that ended since it last changed."""
        total = np.concatenate((np.zeros(1), np.cumsum(self._lengths)))
        return max(float(SECOND_MS), float(np.interp(total[-1] / 2, total, _EDGES))) if total[-1] else float(COLD_MS)
