"""The policies that play for completion time, each a Profile of the production kernel: a tier, and who advises.

fifo          arrival, nobody is stopped; whoever fits goes (backfilling without a promise)     knows nothing
easy          arrival; the first who finds no room casts a shadow, and who would be gone by
              then may overtake it (Lifka, JSSPP 1995; Mu'alem and Feitelson, TPDS 2001)        oracle
conservative  the same, and everybody who waits casts one (Mu'alem and Feitelson, TPDS 2001), as
              many as a tier has, but for those who could only follow another shadow            oracle
sjf           the shortest first, nobody is stopped (Smith, Naval Research Logistics 1956)      oracle
srtf          shortest remaining time first (Schrage, Operations Research 1968)                 oracle
srsf          shortest remaining service first: time x devices (Gu et al., Tiresias, NSDI 2019) oracle
themis        finish-time fairness, a lease at a time (Mahajan et al., NSDI 2020)               oracle
tiresias      three queues by attained service, in each whoever runs before those who wait, by
              arrival (Gu et al., NSDI 2019; lines as in the simulator of Muri, SIGCOMM 2022)   knows nothing
blind         Muster without any learning: attained service by powers of ten of a device-hour,
              and of equals the one with fewer devices                                          knows nothing
muster        Muster's default: hazards learned from what ended so far (the index is that of
              Gittins, JRSS B 1979), run times of neighbours on a fine grid, some of a sweep
              ahead of the others, a guard for who is owed                                      learns
tuned         the same without the guard, for months of overload leave nothing to guard, and
              nobody is kept for having been stopped before                                     learns

Those who cast shadows are told each job's run time as its limit: the trace has no limits of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.leagues.fairness import LEASE_MS, finish_time_fairness
from bench.leagues.oracles import run_time
from muster.learning.hazard import FINE
from muster.learning.turns import TurnAdviser
from muster.model.sharing import ADVISED, ARRIVAL, ATTAINED, NARROW, REMAINING, SERVICE, Sharing
from muster.model.tier import SHADOWS_MAX, Tier
from muster.ports.adviser import Adviser
from muster.simulator.traces.record import Record
from muster.units import HOUR_MS, INSTANT_MAX, MINUTE_MS, SECOND_MS


class Policy(NamedTuple):
    """How the tier is shared, who advises, and whether the future is known. Without a sharing nobody is stopped, and so
    many of those who wait cast shadows."""

    sharing: Sharing | None = None
    adviser: Callable[[Sequence[Record]], Adviser] | None = None
    is_oracle: bool = False
    shadows: int = 0

    @property
    def tier(self) -> Tier:
        """The tier of a league: nobody is due in it if turns are the guard, and everybody at once if shadows are."""
        return Tier(200, 0 if self.shadows else INSTANT_MAX, self.shadows, sharing=self.sharing)

    @property
    def stops(self) -> bool:
        """Whether anybody is stopped for others."""
        return self.sharing is not None and self.sharing.quantum_ms is not None


def _learn(records: Sequence[Record]) -> Adviser:  # noqa: ARG001 - it is not told: it learns
    return TurnAdviser(FINE, AHEAD)


AHEAD: Final = 0.3
QUANTUM_MS: Final = 2 * MINUTE_MS
POLICIES: Final[dict[str, Policy]] = {
    "fifo": Policy(Sharing(ARRIVAL)),
    "easy": Policy(shadows=1, is_oracle=True),
    "conservative": Policy(shadows=SHADOWS_MAX, is_oracle=True),
    "sjf": Policy(Sharing(ADVISED), run_time, is_oracle=True),
    "srtf": Policy(Sharing(REMAINING, 0, 1000, 1000), run_time, is_oracle=True),
    "srsf": Policy(Sharing(SERVICE, 0, 1000, 1000), run_time, is_oracle=True),
    "themis": Policy(Sharing(ADVISED, LEASE_MS, 1000, 1000), finish_time_fairness, is_oracle=True),
    "tiresias": Policy(Sharing(ATTAINED, 0, 999, 1000, steps=(3250 * SECOND_MS, 2 * HOUR_MS))),
    "blind": Policy(Sharing(NARROW, QUANTUM_MS, 1000, 1000)),
    "muster": Policy(Sharing(ADVISED, QUANTUM_MS, 700, 900, (), 24 * HOUR_MS, 27, 150), _learn),
    "tuned": Policy(Sharing(ADVISED, QUANTUM_MS, 700, 1000), _learn),
}
