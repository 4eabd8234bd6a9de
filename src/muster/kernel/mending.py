"""Mending: a run in place that lost ranks with their node goes on, and others take their places.

Whether it can, and where the others go, is decided in `muster.scheduler.repair`; here it comes true. Those who are left
are told how many there are, as when a run gets another width; who joins has the epoch of the run and a new rank.
"""

from __future__ import annotations

from typing import Final

from muster.kernel.turn import Turn
from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Why
from muster.scheduler.repair import INSTEAD, find_replacement, mends_until
from muster.world.widths import members_of

TOO_LATE: Final = "no place for what it lost"


def lose_in_place(turn: Turn, job: Job, first: int, count: int, cause: str) -> None:
    """Some ranks are lost, and fenced should they still be somewhere; the run goes on."""
    turn.emit(fact.RanksLost(job.id, first, count, cause))
    turn.stop(job, job.epoch, first, count, len(members_of(turn.world.ranks[job.id])))


def mend_all(turn: Turn) -> None:
    """Give runs that lost something other places, the lowest number first; those that waited too long are stopped."""
    for number in sorted(turn.world.widths.mending):
        job = turn.world.jobs[number]
        found = find_replacement(turn.world, job)
        if found is not None:
            columns = ([x.slot for x in found], [x.tasks for x in found], [x.devices for x in found])
            first = len(turn.world.ranks[number])
            turn.emit(fact.Grown(number, *columns, INSTEAD))
            turn.start_ranks(job, first, tuple(found))
        elif turn.now >= mends_until(turn.world, number):
            turn.emit(fact.StopAsked(number, Why.LOST, cause=TOO_LATE))
            turn.stop_run(job)
