"""Deadlines: the first of a run that is still running is found, whenever it was noted."""

from __future__ import annotations

import random

from muster.model.job import Job
from muster.model.phase import Queued, Run, Running
from muster.testing.rig import spec
from muster.units import MINUTE_MS
from muster.world.deadlines import Deadline, Deadlines


def running(number: int) -> Job:
    return Job(number, spec(), 0, Running(0, Run(1, ())), 1)


def test_the_first_is_found_in_whatever_order_they_were_noted() -> None:
    dice, deadlines, jobs = random.Random(1), Deadlines(), dict[int, Job]()
    left: list[Deadline] = []
    for number in range(400):
        left.append((dice.randrange(9 * MINUTE_MS), number, 1))
        deadlines.add(left[-1])
        jobs[number] = running(number)
        if number % 3:
            assert deadlines.find(jobs) == min(left)
            del jobs[min(left)[1]]
            left.remove(min(left))
    twin = deadlines.fork()
    for both, theirs in ((deadlines, jobs.copy()), (twin, jobs)):
        found = []
        while (first := both.find(theirs)) is not None:
            found.append(first)
            del theirs[first[1]]
        assert found == sorted(left)
        assert not both.minutes


def test_what_was_outlived_is_dropped() -> None:
    deadlines, jobs = Deadlines(), {number: running(number) for number in range(1, 5)}
    for deadline in ((5, 1, 0), (MINUTE_MS, 2, 1), (3 * MINUTE_MS, 3, 1), (MINUTE_MS, 9, 1)):
        deadlines.add(deadline)
    assert deadlines.find(jobs) == (MINUTE_MS, 2, 1)
    deadlines.add((MINUTE_MS - 1, 4, 1))
    assert deadlines.find(jobs) == (MINUTE_MS - 1, 4, 1)
    jobs[2] = Job(2, spec(), 0, Queued(0), 1)
    del jobs[4]
    assert deadlines.find(jobs) == (3 * MINUTE_MS, 3, 1)
    assert deadlines.find({}) is None
    assert not deadlines.minutes
