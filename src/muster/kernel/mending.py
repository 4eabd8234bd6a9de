"""Mending: a run in place that lost ranks with their node goes on, and others take their places.

Whether it can, and where the others go, is decided in `muster.scheduler.repair`; here it comes true. Those who are left
are told how many there are, as when a run gets another width; who joins has the epoch of the run and a new rank. Spares
are the first places that are used, and are let go and made up for here.
"""

from __future__ import annotations

from typing import Final

from muster.kernel.turn import Turn
from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Why, columns_of
from muster.scheduler.repair import INSTEAD, count_usable, find_replacement, mends_until
from muster.scheduler.sparing import plan_drop, plan_refills
from muster.world.widths import members_of, spares_of, split_leases

TOO_LATE: Final = "no place for what it lost"
_CLOSING: Final = (
    fact.NodeBarred,
    fact.NodeLacks,
    fact.NodePhased,
    fact.Booked,
    fact.WindowMoved,
    fact.WindowClosed,
    fact.Placed,
)
"""What may leave a spare on a node that nothing new may go to: also, to be placed as a guest on one that is booked."""


def lose_in_place(turn: Turn, job: Job, first: int, count: int, cause: str) -> None:
    """Some ranks are lost, and fenced should they still be somewhere; the run goes on."""
    turn.emit(fact.RanksLost(job.id, first, count, cause))
    turn.stop(job, job.epoch, first, count, len(members_of(turn.world.ranks[job.id])))


def mend_all(turn: Turn) -> None:
    """Give runs that lost something other places, the lowest number first; those that waited too long are stopped."""
    for number in sorted(turn.world.widths.mending):
        _use_spares(turn, turn.world.jobs[number])
        if number not in turn.world.widths.mending:
            continue
        job = turn.world.jobs[number]
        found = find_replacement(turn.world, job)
        if found is not None:
            columns = columns_of(found)
            first = len(turn.world.ranks[number])
            turn.emit(fact.Grown(number, *columns, INSTEAD))
            turn.start_ranks(job, first, tuple(found))
        elif turn.now >= mends_until(turn.world, number):
            turn.emit(fact.StopAsked(number, Why.LOST, cause=TOO_LATE))
            turn.stop_run(job)


def drop_closed(turn: Turn) -> None:
    """Let go of spares on nodes that have closed, which nobody could use; what they lack is made up for later."""
    if any(isinstance(item, _CLOSING) for item in turn.facts):
        for number in sorted(turn.world.widths.spared):
            dropped = plan_drop(turn.world, turn.world.jobs[number])
            if dropped is not None:
                turn.emit(dropped)


def refill_all(turn: Turn) -> None:
    """Give gangs the spares that they lack, of what nobody else wants. No engine hears of it: nothing runs there."""
    for item in plan_refills(turn.world):
        turn.emit(item)


def _use_spares(turn: Turn, job: Job) -> None:
    """Spares become the places of new ranks, at once and as far as they go."""
    count = count_usable(job)
    if count:
        leases = split_leases(spares_of(job), count, job.spec.ask)[0]
        first = len(turn.world.ranks[job.id])
        turn.emit(fact.SparesUsed(job.id, count, INSTEAD))
        turn.start_ranks(job, first, tuple(leases))
