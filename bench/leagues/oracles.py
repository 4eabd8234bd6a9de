"""Oracles: advisers that know how long every job runs. They play beside Muster to show what knowing would be worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muster.model import fact
from muster.model.advice import INDEX, Advice
from muster.model.event import Advise
from muster.ports.adviser import Adviser
from muster.simulator.traces.record import Record
from muster.units import DAY_MS
from muster.world.world import World


class Oracle:
    """Says of every live job how long it runs in all; `index` may make something else of it."""

    def __init__(self, records: Sequence[Record], index: Callable[[Record], int]) -> None:
        self._records = records
        self._index = index
        self._accepted = 0
        self._live: dict[int, int] = {}
        self._version = 0
        self._is_news = False

    def observe(self, world: World, facts: Sequence[fact.Fact]) -> None:  # noqa: ARG002 - the port's signature
        """Keep the live jobs."""
        for item in facts:
            if isinstance(item, fact.Accepted):
                self._live[item.job] = self._index(self._records[self._accepted])
                self._accepted += 1
                self._is_news = True
            elif isinstance(item, fact.Ended):
                del self._live[item.job]

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        """All that it knows, if somebody is new and waits."""
        if not self._is_news or not world.queue.floors.waits:
            return ()
        self._is_news = False
        self._version += 1
        columns = {"job": tuple(self._live), "index": tuple(self._live.values())}
        return (Advise(INDEX, Advice(self._version, now + 1000 * DAY_MS, columns), cause="oracle"),)


def run_time(records: Sequence[Record]) -> Adviser:
    """The truth of run times."""
    return Oracle(records, lambda record: record.duration_ms)


def arrival(records: Sequence[Record]) -> Adviser:
    """Who came first."""
    return Oracle(records, lambda record: record.submit_ms)
