"""The one door: `handle(batch, now)` takes events and gives facts, answers, instructions and the next wake-up.

It is pure: no clock, no randomness, no I/O, and the same world and batch give the same outcome. The body that calls it
journals the facts, and only then releases the answers and instructions. If the journal refuses, this world is ahead of
the truth and must be thrown away.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Final

import msgspec

from muster.kernel.afters import settle
from muster.kernel.bars import stop_range
from muster.kernel.budgets import has_overspent
from muster.kernel.mending import drop_closed, mend_all, refill_all
from muster.kernel.nodes import take_over
from muster.kernel.reactors import REACTORS
from muster.kernel.throttles import throttle_all
from muster.kernel.timers import find_wake, fire_timers, has_timers
from muster.kernel.turn import Turn
from muster.kernel.widths import grow_all, tell_leavers
from muster.kernel.windows import mend_windows
from muster.model import fact
from muster.model.errors import RejectedError
from muster.model.event import Event
from muster.model.instruction import Instruction
from muster.model.phase import TaskPhase
from muster.model.reason import Code, Done, Reason, Refused
from muster.scheduler import timeshare
from muster.scheduler.chances import find_next_chance, find_next_overdue
from muster.scheduler.claims import has_ready
from muster.scheduler.consolidation import PLANS_MAX, find_next_look, look_of, plan_moves
from muster.scheduler.cycle import run_cycle
from muster.scheduler.growing import find_chance
from muster.scheduler.taking.preemption import can_anybody_take, plan_takings
from muster.scheduler.yielding import find_next_way, find_next_yield, plan_yields
from muster.units import INSTANT_MAX
from muster.world.world import World

_HARMLESS: Final = (fact.Began, fact.Progressed, fact.TasksProgressed, fact.Metered, fact.RanksOver, fact.Retired)
"""What happened to a run that holds the same places as before, or to a job that is over: nobody can take more by it."""


_STILL: Final = (fact.Progressed, fact.TasksProgressed, fact.Metered, fact.Retired)
"""What makes nobody grow or give way, and gives nobody a spare."""


def _may_matter(item: fact.Fact) -> bool:
    """Whether somebody might take a place by a fact that could not before."""
    if isinstance(item, fact.TasksMoved):
        return item.phase != TaskPhase.RUNNING
    return not isinstance(item, _HARMLESS)


def rare_in(world: World) -> tuple[Container[Any], ...]:
    """All by which an event may matter to somebody whom it is not about, or time alone to anybody, beside lines that
    are awake: what waits for others, is kept for somebody, may change its width or has a time. None is ever replaced
    in a living world, so they are gathered once."""
    widths, timers = world.widths, world.timers
    about_others = (world.successors, world.claims, world.queue.shadowed, world.queue.floors.by_scope, world.fleet.said)
    about_widths = (widths.elastic, widths.mending, widths.spared, widths.lacking, widths.throttled)
    about_time = (timers.limits.minutes, timers.tasks.counts, timers.bars, world.bookings, world.advice)
    about_ends = (world.budgets.accounts, world.ends.yielding)
    return (*about_others, *about_widths, *about_time, *about_ends)


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What a batch led to: one answer per event. Without facts there is no entry, and `seq` is the last one's."""

    seq: int
    at: int
    facts: list[fact.Fact]
    answers: list[Done | Refused]
    instructions: list[Instruction]
    wake_at: int | None


class Kernel:
    """The door to one world. `_timer` is when time alone will bring something about, and `_is_timed` whether that may
    be anything but the oldest end; from `_look_at` on it is worth a look who may take from whom, and from `_grow_at` on
    who may have more; `_moved_at` is when it was last looked who may be moved, and from `_yield_at` on it is worth a
    look who gives way, and from `_serve_at` on whether a claim can be served: none could when there were as many facts
    of this batch as `_served`. While all of `rare` is empty, most events decide nothing about anybody else."""

    __slots__ = (
        "_grow_at",
        "_is_timed",
        "_latest",
        "_look_at",
        "_moved_at",
        "_serve_at",
        "_served",
        "_timer",
        "_yield_at",
        "rare",
        "world",
    )

    def __init__(self, world: World) -> None:
        self.world = world
        self.rare = rare_in(world)
        self._latest = world.now
        self._timer = world.now if has_overspent(world, world.now) else find_wake(world, world.now)
        self._is_timed = has_timers(world)
        self._look_at = 0
        self._grow_at = 0
        self._moved_at = self._served = -1
        self._yield_at = self._serve_at = 0

    def handle(self, batch: Sequence[Event], now: int) -> Outcome:
        """Take a batch: timers first, then each event in order, who lost something or waited for others, then at
        most one cycle."""
        if now < self._latest:
            raise RejectedError(Reason(Code.TIME_WENT_BACK, "now", needed=self._latest, available=now))
        self._latest = now
        world = self.world
        queue, turn = world.queue, Turn(world, now)
        world.budgets.now = now
        if world.fleet.losses.by_slot:
            world.fleet.settle_risks(now)  # whoever looks for a place, in a cycle or not
        has_fired = self._timer is not None and self._timer <= now
        if has_fired:
            fire_timers(turn)
        answers: list[Done | Refused] = []
        for event in batch:
            answers.append(REACTORS[type(event)](turn, event))  # noqa: PERF401 - a comprehension is one more frame
        is_rare = any(self.rare) or world.varied or world.moves_most or world.quotas.has_owners()
        self._served = -1
        if is_rare:
            self._decide(turn)
        else:  # all are alike: nobody may take from anybody, or have more than others
            self._look_at = self._grow_at = INSTANT_MAX
            is_rare = self._start(turn) if queue.awake else False
        if len(turn.facts) != self._served:
            self._serve_at = 0
        if turn.facts:
            world.seq += 1
            world.now = now
        timer = self._timer
        if is_rare or has_fired or timer is None or self._is_timed:
            self._timer = timer = self._find_timer(turn, has_fired, is_rare)
        # else it is the oldest end's, which only its own firing changes
        wake_at = now if queue.awake else timer
        if is_rare:
            wake_at = self._find_sooner(turn, wake_at)
        return Outcome(world.seq, now, turn.facts, answers, turn.instructions, wake_at)

    def _decide(self, turn: Turn) -> None:
        """What the events mean for everybody else: first who lost something or waited for others, then at most one
        cycle, then who has to give and who may have more."""
        world, queue, widths = turn.world, turn.world.queue, turn.world.widths
        if widths.spared:
            drop_closed(turn)
        if world.fleet.said:
            take_over(turn)
        if world.successors or world.bookings or widths.mending or widths.throttled:
            self._settle(turn)
        if queue.awake or queue.shadowed or world.claims or queue.floors.waits:
            self._cycle(turn)
        self._balance(turn)

    def _start(self, turn: Turn) -> bool:
        """A cycle among those who are all alike; and whether somebody is not, who started in it."""
        self._cycle(turn)
        is_rare = any(self.rare)
        if is_rare:
            self._balance(turn)
        return is_rare

    def _find_timer(self, turn: Turn, has_fired: bool, is_rare: object) -> int | None:
        """When time alone will bring something about: what was known, unless that was now or something happened."""
        world, has_first = turn.world, self._timer is None and turn.world.timers.ended
        if has_fired or (turn.facts and (self._is_timed or has_first or (is_rare and has_timers(world)))):
            self._is_timed = has_timers(world)
            return find_wake(world, turn.now)
        return self._timer

    def _balance(self, turn: Turn) -> None:
        """Who has to give after a cycle, and who may have more."""
        world, widths = turn.world, turn.world.widths
        if world.ends.yielding and world.queue.shapes:
            self._yield(turn)
        known = len(turn.facts)
        if world.varied or widths.has_any or world.moves_most or world.quotas.has_owners():
            self._share_out(turn)
        else:
            self._look_at = self._grow_at = INSTANT_MAX
        if len(turn.facts) > known:
            self._yield_at = turn.now  # what is decided here may let somebody give way

    def _find_sooner(self, turn: Turn, wake_at: int | None) -> int | None:
        """When there is something to do, if not before: a claim to serve, the next look, or the next turn."""
        instants, now = [] if wake_at is None else [wake_at], turn.now
        if self.world.claims and len(turn.facts) != self._served and has_ready(self.world, now):
            instants.append(now)
        if self._look_at != INSTANT_MAX:
            instants.append(max(now, self._look_at))
        if self._grow_at != INSTANT_MAX:
            instants.append(self._grow_at)
        if self.world.moves_most and self.world.queue.shapes:
            instants.append(find_next_look(now))
        if self.world.ends.yielding and (yields_at := find_next_yield(self.world, now)) is not None:
            instants.append(yields_at)
        if self.world.queue.shadowed and (told := self.world.ends.find_told(now)) is not None:
            instants.append(told)  # who was kept back for it may be freed if it goes on
        change = timeshare.find_wake(self.world, now)
        return min(instants if change is None else [*instants, change], default=None)

    def _settle(self, turn: Turn) -> None:
        """What the events mean for whoever lost something or waits for others, and for nodes that are booked."""
        if turn.world.widths.mending:
            mend_all(turn)
        if turn.world.successors:
            settle(turn, 0)
        if turn.world.widths.throttled:
            throttle_all(turn)
        if turn.world.bookings:
            mend_windows(turn)

    def _keep_spares(self, turn: Turn) -> None:
        """Spares on nodes that were booked meanwhile are let go; and gangs get those that they lack, if something
        happened."""
        if turn.world.bookings:
            drop_closed(turn)
            take_over(turn)
        if turn.world.widths.lacking and any(not isinstance(item, _STILL) for item in turn.facts):
            refill_all(turn)

    def _cycle(self, turn: Turn) -> None:
        """What starts now; and in tiers that are shared in time, who gives way to those whose turn it is."""
        world, decided, shares = turn.world, len(turn.facts), None
        if world.queue.floors.waits:
            shares = timeshare.Shares(world, turn.now, looks=timeshare.is_look(world, turn.facts, turn.now))
            if shares.is_idle:
                return
        serves = turn.now >= self._serve_at or any(not isinstance(item, _STILL) for item in turn.facts)
        for item in run_cycle(world, turn.now, f"cycle {world.seq + 1}", shares=shares, serves=serves):
            turn.facts.append(item)
            if isinstance(item, fact.Placed):
                turn.start_placed(item)
            elif isinstance(item, fact.TasksPlaced):
                turn.start_tasks(world.jobs[item.job], item.first, item.slots, item.counts, item.devices)
        if len(turn.facts) == decided:  # else one claim may have been in the way of another
            self._served = decided
            self._serve_at = find_next_overdue(world, turn.now) if serves and world.claims else self._serve_at
        if world.successors:
            settle(turn, decided)
        if shares is not None:
            self._give_way(turn, shares.takings())

    def _share_out(self, turn: Turn) -> None:
        """What is taken from some for those who still wait, and given to those who lack spares, or may have more than
        they need; then who is moved so that somebody fits."""
        world = turn.world
        if world.widths.spared or world.widths.lacking:
            self._keep_spares(turn)
        if world.queue.shapes and can_anybody_take(world):
            self._take(turn)
        else:
            self._look_at = INSTANT_MAX
        if world.widths.elastic:
            self._grow(turn)
        else:
            self._grow_at = INSTANT_MAX
        if world.moves_most:
            self._move(turn)

    def _take(self, turn: Turn) -> None:
        """Places are taken from some for others: what is told to stop keeps its own until it is gone. Who looked in
        vain looks again when something happened that could matter, or when time alone may have changed the answer; and
        who took something looks again at once, for there is a limit to what one look takes."""
        if not (turn.now >= self._look_at or any(map(_may_matter, turn.facts))):
            return
        taken = plan_takings(turn.world, turn.now)
        self._give_way(turn, taken)
        self._look_at = turn.now if taken else find_next_chance(turn.world, turn.now)

    def _yield(self, turn: Turn) -> None:
        """Who is past its expected end gives way to who is due. Who looked in vain looks again when something happened
        that could matter, or when time alone may have changed the answer."""
        if turn.now < self._yield_at and all(isinstance(item, _STILL) for item in turn.facts):
            return
        facts = plan_yields(turn.world, turn.now)
        self._give_way(turn, facts)
        self._yield_at = turn.now if facts else find_next_way(turn.world, turn.now)

    def _grow(self, turn: Turn) -> None:
        """What is left over is given to those who may have more: if something happened, or time alone lets them. What
        is given may be taken back, so those who wait look again."""
        if turn.now >= self._grow_at or any(not isinstance(item, _STILL) for item in turn.facts):
            known = len(turn.facts)
            grow_all(turn)
            self._grow_at = find_chance(turn.world, turn.now)
            if len(turn.facts) > known and turn.world.queue.shapes:
                self._look_at = turn.now

    def _move(self, turn: Turn) -> None:
        """Runs are moved so that somebody fits who still waits: looked at once in a while, by the first who come in it.
        Who looked in vain need not look again before anything happened."""
        at = look_of(turn.now)
        if not turn.world.queue.shapes or turn.world.now >= at or (self._moved_at == at and not turn.facts):
            return
        self._moved_at = at
        for _ in range(PLANS_MAX):
            facts = plan_moves(turn.world, at, turn.now)
            self._give_way(turn, facts)
            if not facts:
                return
            self._look_at = turn.now

    def _give_way(self, turn: Turn, facts: list[fact.Fact]) -> None:
        """Who is told to stop keeps its places until it is gone; then they are whose claim it is."""
        for item in facts:
            turn.emit(item)
            if isinstance(item, fact.StopAsked):
                job = turn.world.jobs[item.job]
                turn.stop_run(job)
            elif isinstance(item, fact.ShrinkAsked):
                tell_leavers(turn, turn.world.jobs[item.job], item.width, item.cause)
            elif isinstance(item, fact.TasksMoved):
                for span in item.spans:
                    stop_range(turn, item.job, *span)
