"""turns: an adviser for tiers that are shared by advice. It says what a completion of each live job costs at least, in
device-milliseconds, by what was learned of jobs like it: a Gittins index. Without data it is least attained service.
Where it is told so, some of those that were submitted together go ahead: what becomes of them is known before the
others are served.

It also says how much patience is fair: where everybody waits for weeks, nobody is owed a turn after a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from muster.learning.hazard import COARSE, Grid, Hazards
from muster.model import fact
from muster.model.advice import INDEX, Advice
from muster.model.event import Advise
from muster.model.phase import Running
from muster.model.spec import Spec
from muster.units import DAY_MS, MINUTE_MS, SECOND_MS
from muster.world.floors import takes_part
from muster.world.world import World

REFRESH_MS: Final = 30 * MINUTE_MS
"""How often everybody's index is computed anew, since classes learn all the time."""
CHANGE: Final = 0.03
"""What part of an index is not worth a word."""
PATIENCE: Final = 16
"""Nobody is owed anything who waits for less than so many times what jobs waited so far, on average."""
PATIENCE_STEP: Final = 0.1
"""What part of the patience is not worth a word."""
PAUSE_MS: Final = 10 * SECOND_MS
"""How long it says nothing after it spoke, unless somebody is new."""
STANDS_MS: Final = 30 * DAY_MS
INDEX_MAX: Final = 1 << 60


class TurnAdviser:
    """An Adviser: says where every live job stands that takes turns. `ahead` is what part of its index a job may have
    more than those of its likes that go ahead of it."""

    def __init__(self, grid: Grid = COARSE, ahead: float = 0.0) -> None:
        self.hazards = Hazards(grid)
        self._ahead = ahead
        self._weights: dict[int, float] = {}
        self._indexes: dict[int, int] = {}
        self._accepted = self._waiting = self._waited_ms = self._patience_ms = self._seen_at = 0
        self._version = 0
        self._spoke_at = -PAUSE_MS
        self._refreshed_at = 0
        self._has_new = False

    def observe(self, world: World, facts: Sequence[fact.Fact]) -> None:
        """Learn from an entry that the world holds already."""
        self._wait(world)
        for item in facts:
            if isinstance(item, fact.Accepted):
                self._accept(item.job, item.spec, world.now)
            elif isinstance(item, fact.Began):
                job = world.jobs.get(item.job)
                if job is not None and isinstance(job.phase, Running):
                    self.hazards.begin(item.job, job.served_ms, job.phase.since)
            elif isinstance(item, (fact.StopAsked, fact.Requeued)):
                self.hazards.pause(item.job, world.now)
            elif isinstance(item, fact.Ended):
                self._weights.pop(item.job, None)
                self._indexes.pop(item.job, None)
                self.hazards.end(item.job, world.now)

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        """Where everybody stands, if somebody waits and it is news."""
        if not world.queue.floors.waits or (not self._has_new and now < self._spoke_at + PAUSE_MS):
            return ()
        self.hazards.settle(now)
        if now >= self._refreshed_at + REFRESH_MS:
            self._refreshed_at = now
            self.hazards.stirred |= dict.fromkeys(self.hazards.live())
        if not self._reckon() and not self._has_new:
            return ()
        self._version += 1
        self._spoke_at, self._has_new = now, False
        columns = {"job": tuple(self._indexes), "index": tuple(self._indexes.values())}
        columns["patience_ms"] = (self._patience_ms,)
        return (Advise(INDEX, Advice(self._version, now + STANDS_MS, columns), cause="turns"),)

    def _accept(self, number: int, spec: Spec, now: int) -> None:
        if not takes_part(spec):
            return
        devices, owner = spec.ask.gpus * spec.gang, (spec.tenant, spec.name)
        classes = ((), ("size", devices), ("owner", owner), ("both", owner, devices))
        place = self.hazards.accept(number, classes, now, rows=2)
        self._weights[number] = devices * (1.0 + self._ahead * _scattered(place))
        self._indexes[number] = 0
        self._accepted += 1
        self._has_new = True

    def _wait(self, world: World) -> None:
        """Time went by for all who wait. Those who still do count too: the first to end are those who waited least."""
        self._waited_ms += self._waiting * (world.now - self._seen_at)
        self._waiting, self._seen_at = world.queue.floors.waits, world.now
        patience = PATIENCE * self._waited_ms // max(1, self._accepted, self._waiting)
        if abs(patience - self._patience_ms) > PATIENCE_STEP * self._patience_ms:
            self._patience_ms = patience

    def _reckon(self) -> bool:
        """Compute what is out of date; whether anything is worth a word."""
        is_news = False
        for number in self.hazards.stirred:
            known = self._indexes.get(number)
            if known is not None:
                index = min(int(self.hazards.cost_ms(number) * self._weights[number]), INDEX_MAX)
                if abs(index - known) > CHANGE * known:
                    self._indexes[number], is_news = index, True
        self.hazards.stirred.clear()
        return is_news


def _scattered(place: int) -> float:
    """A number from 0 to 1 for each place of a row, such as are far apart for neighbours: its bits in reverse."""
    return int(f"{place:b}"[::-1], 2) / (1 << place.bit_length()) if place else 0.0
