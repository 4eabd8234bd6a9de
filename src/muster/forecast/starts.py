"""When a job will likely start: the kernel is run ahead several times, each time with other luck, until it does.

The range is what all rollouts say; nine of them, so that it holds about four times in five. It is a guess about jobs
that are here now: nobody else comes, no node fails, and whoever nobody can say anything about runs for ever.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from muster.forecast.comers import NOBODY, Comers
from muster.forecast.lengths import Lengths
from muster.forecast.rollout import Rollout
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.units import DAY_MS
from muster.world.world import World

ROLLOUTS: Final = 9
HORIZON_MS: Final = 7 * DAY_MS
BATCHES_MAX: Final = 10_000
BATCHES_LEAST: Final = 3000
"""How many batches all rollouts of a question may take together, where few jobs live and where many do; then it is
given up."""
STEPS_MAX: Final = 2_000_000
"""Batches times live jobs, between these two."""
JOBS_MAX: Final = 5000
"""With more live jobs, no question is taken: it would keep readers waiting."""


class Outlook(NamedTuple):
    """From when to when a job starts, as far as it does within the horizon; and whose end it is likely to wait for. It
    may be `endless`, because nobody can say how long somebody runs."""

    earliest: int | None
    latest: int | None
    after: tuple[int, ...]
    rollouts: int
    is_endless: bool = False


def foresee(world: World, job: int, now: int, lengths: Lengths, comers: Comers = NOBODY) -> Outlook | None:
    """When a job that waits will start; None if there is too much to run ahead. Behind somebody who may run for ever,
    or a closed door, others come without end, and that is not why it does not start."""
    if len(world.jobs) > JOBS_MAX:
        return None
    ran: list[Rollout] = []
    left = max(BATCHES_LEAST, min(BATCHES_MAX, STEPS_MAX // max(1, len(world.jobs))))
    for turn in range(ROLLOUTS):
        ahead = Rollout(world.fork(), now, _Luck(world, lengths, now, turn).lasts, comers.draw(now, turn))
        is_done = ahead.run(now + HORIZON_MS, left // (ROLLOUTS - turn), job)
        if not (is_done or ahead.is_endless or any(job in one.starts for one in ran)):
            return _look_alone(world, job, now, lengths, left)
        left -= ahead.batches
        ran.append(ahead)
    return _sum_up(ran, job)


def _look_alone(world: World, job: int, now: int, lengths: Lengths, batches_max: int) -> Outlook | None:
    """The outlook of a job that would not start either if nobody came; None if it might."""
    alone = Rollout(world.fork(), now, _Luck(world, lengths, now, 0).lasts)
    return _sum_up([alone], job) if alone.run(now + HORIZON_MS, batches_max, job) and job not in alone.starts else None


def _sum_up(ran: list[Rollout], job: int) -> Outlook:
    """The span of all; open at its end if it did not start in each."""
    found = sorted((ahead.starts[job], at) for at, ahead in enumerate(ran) if job in ahead.starts)
    is_endless = any(ahead.is_endless for ahead in ran)
    if not found:
        return Outlook(None, None, (), len(ran), is_endless)
    middle = ran[found[len(found) // 2][1]]
    latest = found[-1][0] if len(found) == len(ran) else None
    return Outlook(found[0][0], latest, tuple(middle.last_ended), len(ran), is_endless)


class _Luck:
    """How long everybody lasts in one rollout."""

    def __init__(self, world: World, lengths: Lengths, now: int, turn: int) -> None:
        self._world = world
        self._lengths = lengths
        self._now = now
        self._turn = turn

    def lasts(self, job: int, spec: Spec, elapsed: int) -> int | None:
        """Tasks of an array are like those of it that are over, and else run up to their limit; a gang is like other
        gangs."""
        if not spec.array:
            return self._lengths.draw(job, spec, elapsed, self._turn)
        counts = self._world.arrays[job].counts if job in self._world.arrays else None
        if counts is None or not counts[TaskPhase.SUCCEEDED]:
            return spec.limit_ms
        spent = (self._now - self._world.jobs[job].accepted_at) * max(1, counts[TaskPhase.RUNNING])
        lasts = max(1, spent // counts[TaskPhase.SUCCEEDED])
        return lasts if spec.limit_ms is None else min(lasts, spec.limit_ms)
