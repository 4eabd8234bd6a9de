"""History: what is kept of jobs that are over, and what they used, by hour. Values only.

All of it follows from the journal's facts and can be made from them again; no decision depends on it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from muster.model.phase import Why
from muster.model.record import Record
from muster.units import Limit, Resources

AMOUNTS: Final = (
    *("useful", "lost", "starting", "restarting", "stopping"),
    *("cpu_ms", "cost_micros", "cost_rest", "jobs"),
    *("spare", "checkpointing"),
)
"""What is added up: device time by what it was spent on, in thousandths of a device times milliseconds; CPU time, cost,
and jobs that ended. Cost is in millionths of the currency, and a rest of so many parts of one."""
CPU_MS, COST_MICROS, COST_REST, JOBS = range(5, 9)
SPENT: Final = (0, 1, 2, 3, 4, 9, 10)
"""Where device time stands among the amounts, in the order of the goodput account."""
COST_PARTS: Final = 1000 * 3_600_000
"""How many parts of a millionth there are: a price is for one device and one hour."""


class Use(Record, frozen=True):
    """What a job used in one hour of one flavor; `hour` counts from the epoch. CPU time is of no flavor."""

    job: int
    tenant: str
    flavor: str
    hour: int
    amounts: tuple[int, ...]


class Finished(Record, frozen=True):
    """A job that is over: what it is found by, and the rest of it as bytes. `phase` is that of a task."""

    job: int
    tenant: str
    phase: int
    ended_at: int
    key: str
    data: bytes


class Ending(Record, frozen=True):
    """The rest: what its owner asked for, and how it went. `started_at` is when its last run got its places, 0 if none
    did or if it is an array; for `served_ms` runs of it were up. The counts are those of an array's tasks."""

    name: str
    tier: str
    tasks: int
    ask: Resources
    accepted_at: int
    started_at: int
    why: Why
    code: int
    epoch: int
    failures: int
    served_ms: int
    cpu_ms: int
    rss_bytes: int
    counts: tuple[int, ...] = ()
    limit_ms: Limit = None


class Chapter(Record, frozen=True):
    """What one batch adds to history. `owners` are who submitted jobs, unless it was the owner of the home."""

    owners: tuple[tuple[int, str], ...] = ()
    finished: tuple[Finished, ...] = ()
    uses: tuple[Use, ...] = ()


BLANK: Final = Chapter()


class Remembered(NamedTuple):
    """A job that is over, as history has it: who submitted it, and all that it used. An empty `user` is the home's
    owner."""

    finished: Finished
    user: str
    amounts: tuple[int, ...]


class Used(NamedTuple):
    """A sum of use: of whom, of which flavor, and in which hour; without one, in all that were asked for."""

    tenant: str
    user: str
    flavor: str
    hour: int | None
    amounts: tuple[int, ...]
