"""The auditor's books of moves: who was moved so that others fit, when, and by which account.

Kept from the facts alone. Whoever is moved has a place that is kept for it, was asked rarely enough, and the account
leaves nothing out that the books know of; how it was found is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from muster.model import fact
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.model.tier import EVICTIONS_MAX, Tier
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS
from muster.world.audit.books import JobBook
from muster.world.audit.claim import ClaimBooks
from muster.world.audit.goodput import GoodputBooks
from muster.world.audit.group import asks_of
from muster.world.laws.law import require, require_same
from muster.world.world import World

WORTH: Final = 2
AHEAD_MS: Final = 4 * HOUR_MS
"""How many times its cost a plan gains at least, and over how long a gain is counted at most."""


class MoveBooks:
    """When each gang was moved, and each task of an array: the latest few."""

    def __init__(self, claims: ClaimBooks, goodput: GoodputBooks) -> None:
        self._claims = claims
        self._goodput = goodput
        self._moved: dict[tuple[int, int], tuple[int, ...]] = {}
        self._touched: dict[tuple[int, int], None] = {}

    def plan(self, item: fact.MovesPlanned, at: int, jobs: Mapping[int, JobBook], tiers: Mapping[str, Tier]) -> None:
        """Take one plan down."""
        claim = self._claims.claims.get(item.job)
        require(claim is not None and bool(item.moved), "moves are for one who gets a claim by it", f"job {item.job}")
        if claim is not None:
            self._claims.claims[item.job] = replace(claim, gain=item.gain, cost=item.cost)
        spec = jobs[item.job].spec
        asks = _devices_of(spec, spec.gang)
        is_worth = asks == item.asks_milli and WORTH * item.cost < item.gain <= asks * AHEAD_MS
        require(is_worth, "a move is worth it", f"for job {item.job}: gain {item.gain}, cost {item.cost}")
        least = sum(self._check(mover, at, jobs[mover[0]], tiers) for mover in item.movers)
        require(item.cost >= least, "an account leaves nothing out", f"for job {item.job}: {item.cost} of {least}")

    def _check(self, mover: tuple[int, int], at: int, book: JobBook, tiers: Mapping[str, Tier]) -> int:
        """Whether one may be moved, and what that costs at least."""
        (number, task), spec = mover, book.spec
        lately = [when for when in self._moved.get(mover, ()) if when > at - DAY_MS]
        has_place = self._has_task_place(number, task, book) if spec.array else self._has_place(number, book)
        law = "whoever is moved has a place that is kept for it"
        require(has_place and spec.evictable, law, f"job {number}, task {task}")
        rested = not lately or at // MINUTE_MS * MINUTE_MS >= lately[-1] + (HOUR_MS << (len(lately) - 1))
        may_move = rested and len(lately) < tiers[spec.tier].moves_max
        require(may_move, "nobody is moved more often than its tier allows", f"job {number}: {lately} and {at}")
        self._moved[mover] = (*self._moved.get(mover, ()), at)[-EVICTIONS_MAX:]
        self._touched[mover] = None
        width = 1 if spec.array else sum(tasks for _, tasks, _ in book.leases)
        unsaved_ms = self._goodput.unsaved_ms(number, at // MINUTE_MS * MINUTE_MS, task)
        return _devices_of(spec, width) * (unsaved_ms + spec.grace_ms + MINUTE_MS)

    def _has_place(self, number: int, book: JobBook) -> bool:
        """Whether a gang was told to go on elsewhere, where there is a place for all of it."""
        claim = self._claims.claims.get(number)
        return book.is_moving and claim is not None and claim.width == book.spec.places

    def _has_task_place(self, number: int, task: int, book: JobBook) -> bool:
        """The same of a task of an array."""
        claim, is_told = self._claims.claims.get(number), book.phases[task] == TaskPhase.STOPPING
        return is_told and book.are_moving((task,)) and claim is not None and task in claim.movers

    def compare(self, world: World, jobs: Mapping[int, JobBook]) -> None:
        """Whether the world says the same of those who were moved just now; nobody needs to know of those who are
        gone."""
        for number, task in self._touched:
            kept = world.jobs[number].moves if task == fact.WHOLE else world.arrays[number].moved[task]
            require_same(kept, self._moved[number, task], "moves are what the facts say", f"job {number}, {task}")
        self._touched.clear()
        for mover in [mover for mover in self._moved if mover[0] not in jobs]:
            del self._moved[mover]


def _devices_of(spec: Spec, width: int) -> int:
    """Thousandths of devices that so many tasks have; of several groups, all that they have together."""
    parts = asks_of(spec) if spec.needs.groups else [(spec.ask, width)]
    return sum((1000 * ask.gpus + ask.gpu_milli) * tasks for ask, tasks in parts)
