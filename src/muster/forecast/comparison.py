"""What a change would do in a day: the kernel is run ahead twice from one world, without it and with it, and compared.

Both see the same: who is here now, and who came in the last day comes again a day later, for as long as they ran. What
differs comes of the change. It is a guess: tomorrow is not yesterday, and no node fails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from muster.forecast.lengths import Lengths
from muster.forecast.rollout import Arrival, Rollout, in_order
from muster.model.event import Event
from muster.model.goodput import HELD
from muster.units import DAY_MS
from muster.world.accounting import read_account
from muster.world.world import World

HORIZON_MS: Final = DAY_MS
BATCHES_MAX: Final = 4000
JOBS_MAX: Final = 5000
"""With more live jobs or comers than this, it is not tried: it would keep readers waiting."""


class Day(NamedTuple):
    """A tenant's day, without the change and with it, of those who waited at its beginning or came: how many they are,
    how many started, and how long all of them waited."""

    tenant: str
    jobs: int
    started: tuple[int, int]
    waited_ms: tuple[int, int]


class Compared(NamedTuple):
    """Both days: tenants by name, how often somebody was stopped for others, and thousandths of device time held."""

    days: list[Day]
    taken: tuple[int, int]
    held_milli: tuple[int, int]
    comers: int


def compare(world: World, change: Event, now: int, lengths: Lengths, comers: Sequence[Arrival]) -> Compared | None:
    """Run a day ahead twice; None if that is too much."""
    now = max(now, world.now)
    if len(world.jobs) + len(comers) > JOBS_MAX:
        return None
    days = [_run(world.fork(), now, lengths, comers, first) for first in ([], [change])]
    if None in days:
        return None
    before, after = (day for day in days if day is not None)
    found = [
        Day(
            tenant,
            max(len(before.waits[tenant]), len(after.waits[tenant])),
            (sum(before.started[tenant]), sum(after.started[tenant])),
            (sum(before.waits[tenant]), sum(after.waits[tenant])),
        )
        for tenant in sorted({*before.waits, *after.waits})
    ]
    return Compared(found, (before.taken, after.taken), (before.held_milli, after.held_milli), len(comers))


class _Lived(NamedTuple):
    """One of the two days: by tenant, how long each job waited and whether it started."""

    waits: defaultdict[str, list[int]]
    started: defaultdict[str, list[bool]]
    taken: int
    held_milli: int


def _run(world: World, now: int, lengths: Lengths, comers: Sequence[Arrival], first: Sequence[Event]) -> _Lived | None:
    """A day that begins with these events: what they do at once is part of it."""
    end = now + HORIZON_MS
    asked = {number: (job.spec.tenant, now) for number, job in world.jobs.items() if world.is_waiting(job)}
    times = _times(world, now)
    ahead = Rollout(world, now, lambda job, spec, elapsed: lengths.draw(job, spec, elapsed, 0), in_order(comers), first)
    if not ahead.run(end, BATCHES_MAX):
        return None
    day = _Lived(defaultdict(list), defaultdict(list), ahead.taken, _held_milli(times, _times(world, end)))
    for number, (tenant, came) in (asked | ahead.came).items():
        day.waits[tenant].append(ahead.starts.get(number, end) - came)
        day.started[tenant].append(number in ahead.starts)
    return day


def _times(world: World, at: int) -> tuple[int, int]:
    """Device time that somebody held, and all there was."""
    account = read_account(world, at).values()
    held = sum(times.get(bucket, 0) for times in account for bucket in HELD)
    return held, sum(sum(times.values()) for times in account)


def _held_milli(begin: tuple[int, int], end: tuple[int, int]) -> int:
    held, total = end[0] - begin[0], end[1] - begin[1]
    return held * 1000 // total if total else 0
