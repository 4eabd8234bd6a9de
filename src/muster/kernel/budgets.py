"""A hard budget that is spent stops what spends from it: each run with its own grace, and once.

Asked wherever the answer may have become another one: at the instant that an account gives (`muster.kernel.timers`),
and when the tree or a booking changed. So after every batch whatever spends from a spent budget is stopping, or runs in
a booking. Starts are none of its business: the quota does not let any be.
"""

from __future__ import annotations

from muster.kernel.bars import stop_gang, stop_ranges
from muster.kernel.turn import Turn
from muster.model.phase import Why
from muster.model.ranges import ranges_of
from muster.world.spending import find_spenders
from muster.world.tasks import GOING_ON, spans_of
from muster.world.world import World


def stop_spenders(turn: Turn) -> None:
    """Tell whatever spends from a hard budget that is spent to stop; what is stopping already is left alone."""
    for account in turn.world.budgets.overspent(turn.now):
        cause = f"budget {account.budget.unit} of {account.tenant}"
        spenders = find_spenders(turn.world, account)
        for number in sorted(spenders):
            if turn.world.jobs[number].spec.array:
                _stop_tasks(turn, number, spenders[number], cause)
            else:
                stop_gang(turn, number, Why.BUDGET, cause)


def has_overspent(world: World, now: int) -> bool:
    """Whether a budget is spent that something spends from. Whoever made this world may have stopped nobody for it."""
    return bool(world.budgets.overspent(now))


def _stop_tasks(turn: Turn, number: int, slots: set[int], cause: str) -> None:
    """Stop the tasks of an array on the nodes where they spend."""
    tasks = turn.world.arrays[number]
    spans = spans_of(tasks.phase, GOING_ON, 0, len(tasks))
    spending = [task for first, count in spans for task in range(first, first + count) if tasks.slot[task] in slots]
    stop_ranges(turn, number, ranges_of(spending), Why.BUDGET, cause)
