"""The policies that play for completion time, each a Profile of the production kernel: a tier, and who advises.

fifo       arrival, nobody is stopped; whoever fits goes                                        knows nothing
sjf        the shortest first, nobody is stopped                                                oracle
srtf       shortest remaining time first                                                        oracle
srsf       shortest remaining service first: time x devices (Gu et al., Tiresias, NSDI 2019)    oracle
tiresias   two queues by attained service, the line at an hour of a device, arrival in each     knows nothing
blind      Muster without any learning: attained service by powers of ten of a device-hour,
           and of equals the one with fewer devices                                             knows nothing
muster     Muster's default: hazards learned from what ended so far, a guard for who is owed    learns
tuned      the same without the guard: months of overload leave nothing to guard                learns
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.leagues.oracles import run_time
from muster.learning.turns import TurnAdviser
from muster.model.sharing import ADVISED, ARRIVAL, ATTAINED, NARROW, REMAINING, SERVICE, Sharing
from muster.model.tier import Tier
from muster.ports.adviser import Adviser
from muster.simulator.traces.record import Record
from muster.units import HOUR_MS, INSTANT_MAX, MINUTE_MS


class Policy(NamedTuple):
    """How the tier is shared, who advises, and whether that one knows the future."""

    sharing: Sharing
    adviser: Callable[[Sequence[Record]], Adviser] | None = None
    is_oracle: bool = False

    @property
    def tier(self) -> Tier:
        """The tier of a league: nobody is due in it, for turns are the guard."""
        return Tier(200, INSTANT_MAX, 0, sharing=self.sharing)


def _learn(records: Sequence[Record]) -> Adviser:  # noqa: ARG001 - it is not told: it learns
    return TurnAdviser()


QUANTUM_MS: Final = 2 * MINUTE_MS
POLICIES: Final[dict[str, Policy]] = {
    "fifo": Policy(Sharing(ARRIVAL)),
    "sjf": Policy(Sharing(ADVISED), run_time, is_oracle=True),
    "srtf": Policy(Sharing(REMAINING, 0, 1000, 1000), run_time, is_oracle=True),
    "srsf": Policy(Sharing(SERVICE, 0, 1000, 1000), run_time, is_oracle=True),
    "tiresias": Policy(Sharing(ATTAINED, QUANTUM_MS, 1000, 1000, steps=(HOUR_MS,))),
    "blind": Policy(Sharing(NARROW, QUANTUM_MS, 1000, 1000)),
    "muster": Policy(Sharing(ADVISED, QUANTUM_MS, 500, 900, (), 22 * HOUR_MS, 30, 150), _learn),
    "tuned": Policy(Sharing(ADVISED, QUANTUM_MS, 500, 1000), _learn),
}
