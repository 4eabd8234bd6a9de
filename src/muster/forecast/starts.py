"""When a job will likely start: the kernel is run ahead several times, each time with other luck, until it does.

The range is what all rollouts say; nine of them, so that it holds about four times in five. It is a guess about jobs
that are here now: nobody else comes, no node fails, and whoever nobody can say anything about runs for ever.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from muster.forecast.lengths import Lengths
from muster.forecast.rollout import Rollout
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.units import DAY_MS
from muster.world.world import World

ROLLOUTS: Final = 9
HORIZON_MS: Final = 7 * DAY_MS
BATCHES_MAX: Final = 3000
"""How many batches all rollouts of a question may take together; then it is given up."""
JOBS_MAX: Final = 5000
"""With more live jobs, no question is taken: it would keep readers waiting."""


class Outlook(NamedTuple):
    """From when to when a job starts, as far as it does within the horizon; and whose end it is likely to wait for."""

    earliest: int | None
    latest: int | None
    after: tuple[int, ...]
    rollouts: int


def foresee(world: World, job: int, now: int, lengths: Lengths) -> Outlook | None:
    """When a job that waits will start; None if there is too much to run ahead."""
    if len(world.jobs) > JOBS_MAX:
        return None
    found: list[tuple[int | None, tuple[int, ...]]] = []
    left = BATCHES_MAX
    for turn in range(ROLLOUTS):
        ahead = Rollout(world.fork(), now, _Luck(world, lengths, now, turn).lasts)
        if not ahead.run(now + HORIZON_MS, left, job):
            return None
        left -= ahead.batches
        found.append((ahead.starts.get(job), tuple(ahead.last_ended)))
    return _sum_up(found)


def _sum_up(found: list[tuple[int | None, tuple[int, ...]]]) -> Outlook:
    """The span of all; open at its end if it did not start in each."""
    starts = sorted(at for at, _ in found if at is not None)
    if not starts:
        return Outlook(None, None, (), len(found))
    middle = min(found, key=lambda each: (each[0] is None, abs((each[0] or 0) - starts[len(starts) // 2])))
    return Outlook(starts[0], starts[-1] if len(starts) == len(found) else None, middle[1], len(found))


class _Luck:
    """How long everybody lasts in one rollout."""

    def __init__(self, world: World, lengths: Lengths, now: int, turn: int) -> None:
        self._world = world
        self._lengths = lengths
        self._now = now
        self._turn = turn

    def lasts(self, job: int, spec: Spec, elapsed: int) -> int | None:
        """Tasks of an array are like those of it that are over; a gang is like other gangs."""
        if not spec.array:
            return self._lengths.draw(job, spec, elapsed, self._turn)
        counts = self._world.arrays[job].counts if job in self._world.arrays else None
        if counts is None or not counts[TaskPhase.SUCCEEDED]:
            return None
        spent = (self._now - self._world.jobs[job].accepted_at) * max(1, counts[TaskPhase.RUNNING])
        return max(1, spent // counts[TaskPhase.SUCCEEDED])
