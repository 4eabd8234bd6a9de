"""The diary: what there is to remember of what was used and of what ended, gathered while facts are applied.

Whoever keeps history hangs one into a world, and takes out after each entry what has come together. It is no content
of the world: a snapshot has none and no decision looks at it. Use is split at the full hours, exactly; what a device
costs is asked for while its price is still that of the job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from muster.model.fact import Ended
from muster.model.history import AMOUNTS, COST_MICROS, COST_PARTS, COST_REST, CPU_MS, JOBS, SPENT
from muster.model.job import Job, Meter
from muster.units import HOUR_MS

PROVISIONAL: Final = len(AMOUNTS)
"""After the amounts that are kept: the place of what may yet be of use or lost."""
_PLACES: Final = (*SPENT, PROVISIONAL)
NO_FLAVOR: Final = ""

Key: TypeAlias = tuple[int, str, str, int]
"""Job, tenant, flavor, hour."""


class End(NamedTuple):
    """A job as it was just before it ended, how it did, and what was known of it then."""

    job: Job
    item: Ended
    at: int
    meter: Meter
    counts: tuple[int, ...]


class Diary:
    """What has come together since it was last taken; `price_of` says what a job pays for a flavor."""

    __slots__ = ("_ends", "_price_of", "_uses")

    def __init__(self, price_of: Callable[[int, str], int]) -> None:
        self._price_of = price_of
        self._uses: dict[Key, list[int]] = {}
        self._ends: list[End] = []

    def spend(self, job: Job, flavor: str, amount: int, span: tuple[int, int, int]) -> None:
        """A job held so many thousandths of devices, for this."""
        kind, begin, end = span
        price, place = self._price_of(job.id, flavor), _PLACES[kind]
        while begin < end:
            hour = begin // HOUR_MS
            until = min(end, (hour + 1) * HOUR_MS)
            row, time = self._row(job, flavor, hour), amount * (until - begin)
            row[place] += time
            if price:
                row[COST_REST] += time * price
            begin = until

    def meter(self, job: Job, cpu_ms: int, at: int) -> None:
        """Tasks of a job that ended used this much CPU time."""
        self._row(job, NO_FLAVOR, at // HOUR_MS)[CPU_MS] += cpu_ms

    def end(self, job: Job, item: Ended, at: int, meter: Meter, counts: tuple[int, ...]) -> None:
        """A job ended."""
        self._row(job, NO_FLAVOR, at // HOUR_MS)[JOBS] += 1
        self._ends.append(End(job, item, at, meter, counts))

    def take(self) -> tuple[dict[Key, list[int]], list[End]]:
        """All that has come together, and begin anew."""
        uses, ends = self._uses, self._ends
        self._uses, self._ends = {}, []
        for row in uses.values():
            micros, row[COST_REST] = divmod(row[COST_REST], COST_PARTS)
            row[COST_MICROS] += micros
        return uses, ends

    def _row(self, job: Job, flavor: str, hour: int) -> list[int]:
        key = (job.id, job.spec.tenant, flavor, hour)
        row = self._uses.get(key)
        if row is None:
            row = self._uses[key] = [0] * (PROVISIONAL + 1)
        return row
