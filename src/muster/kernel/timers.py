"""What time alone brings about: a run or a task past its limit is told to stop, a bar ends, a claim is given up, advice
is over, a budget's next period begins, a hard one is spent, windows of bookings open and close, jobs long over retire
to history."""

from __future__ import annotations

from typing import Final

from muster.kernel.advice import drop_outlived
from muster.kernel.bars import stop_ranges
from muster.kernel.budgets import stop_spenders
from muster.kernel.turn import Turn
from muster.kernel.windows import find_window_wake, fire_windows
from muster.lifecycle.gang import retired_by, retires_at
from muster.model import fact
from muster.model.phase import Why
from muster.scheduler.repair import mends_until
from muster.world.world import World

RETIRED_AT_ONCE: Final = 1000


def fire_timers(turn: Turn) -> None:
    """Do all that is due at this turn's time, within the limit of one batch."""
    world, now = turn.world, turn.now
    while (limit := world.timers.find_limit(world.jobs)) is not None and limit[0] <= now:
        job = world.jobs[limit[1]]
        turn.emit(fact.StopAsked(job.id, Why.LIMIT, cause="time limit"))
        turn.stop_run(job)
    while (over := world.timers.tasks.find()) is not None and over[0] <= now:
        since = now - (world.jobs[over[1]].spec.limit_ms or 0)
        stop_ranges(turn, over[1], world.arrays[over[1]].find_older(since), Why.LIMIT, "time limit")
    while (end := world.timers.find_bar(world.fleet.bars)) is not None and end[0] <= now:
        turn.emit(fact.NodeUnbarred(*end[1:], cause="until"))
    for number in sorted(world.claims):
        if world.claims[number].until <= now:
            turn.emit(fact.ClaimDropped(number, cause="until"))
    drop_outlived(turn)
    if world.bookings:
        fire_windows(turn)
    for account in world.budgets.due(now):
        budget = account.budget
        turned = fact.BudgetTurned(account.tenant, budget.unit, budget.soft, budget.starts_at(now), cause="period")
        turn.emit(turned)
    stop_spenders(turn)
    old = world.timers.take_ended(world.jobs, retired_by(now), RETIRED_AT_ONCE)
    if old:
        turn.emit(fact.Retired(old, cause="retention"))


def has_timers(world: World) -> bool:
    """Whether anything but the oldest end may have a time."""
    timers = world.timers
    has_any = timers.limits.minutes or timers.bars or world.claims or world.advice or world.bookings
    return bool(has_any or world.widths.mending or timers.tasks) or world.budgets.is_used


def find_wake(world: World, now: int) -> int | None:
    """When time alone will next bring something about."""
    timers, jobs = world.timers, world.jobs
    limit = timers.find_limit(jobs)
    bar = timers.find_bar(world.fleet.bars)
    ended = timers.find_ended(jobs)
    instants: list[int] = []
    if world.budgets.is_used:
        instants += [at for at in (world.budgets.find_turn(), world.budgets.find_end(now)) if at is not None]
    instants += [first[0] for first in (limit, timers.tasks.find(), bar) if first is not None]
    instants += [claim.until for claim in world.claims.values()]
    instants += [advice.expires_at for advice in world.advice.values()]
    if world.bookings and (window := find_window_wake(world)) is not None:
        instants.append(window)
    instants += [mends_until(world, number) for number in world.widths.mending]
    if ended is not None:
        instants.append(retires_at(ended[0]))
    return min(instants, default=None)
