"""The auditor's books of moves: who was moved so that others fit, when, and by which account.

Kept from the facts alone. Whoever is moved has a place that is kept for it, was asked rarely enough, and the account
leaves nothing out that the books know of; how it was found is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from muster.model import fact
from muster.model.phase import TaskPhase, Why
from muster.model.tier import EVICTIONS_MAX, Tier
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS
from muster.world.books import JobBook
from muster.world.claim_books import ClaimBooks
from muster.world.goodput_books import GoodputBooks
from muster.world.law import require, require_same
from muster.world.world import World

WORTH: Final = 2
AHEAD_MS: Final = 4 * HOUR_MS
"""How many times its cost a plan gains at least, and over how long a gain is counted at most."""


class MoveBooks:
    """When each job was moved, the latest few."""

    def __init__(self, claims: ClaimBooks, goodput: GoodputBooks) -> None:
        self._claims = claims
        self._goodput = goodput
        self._moved: dict[int, tuple[int, ...]] = {}
        self._touched: dict[int, None] = {}

    def plan(self, item: fact.MovesPlanned, at: int, jobs: Mapping[int, JobBook], tiers: Mapping[str, Tier]) -> None:
        """Take one plan down."""
        claim = self._claims.claims.get(item.job)
        require(claim is not None and bool(item.moved), "moves are for one who gets a claim by it", f"job {item.job}")
        if claim is not None:
            self._claims.claims[item.job] = replace(claim, gain=item.gain, cost=item.cost)
        spec = jobs[item.job].spec
        asks = (1000 * spec.ask.gpus + spec.ask.gpu_milli) * spec.gang
        is_worth = asks == item.asks_milli and WORTH * item.cost < item.gain <= asks * AHEAD_MS
        require(is_worth, "a move is worth it", f"for job {item.job}: gain {item.gain}, cost {item.cost}")
        least = sum(self._check(number, at, jobs[number], tiers) for number in item.moved)
        require(item.cost >= least, "an account leaves nothing out", f"for job {item.job}: {item.cost} of {least}")

    def _check(self, number: int, at: int, book: JobBook, tiers: Mapping[str, Tier]) -> int:
        """Whether one may be moved, and what that costs at least."""
        spec, lately = book.spec, [when for when in self._moved.get(number, ()) if when > at - DAY_MS]
        moves = book.phase == TaskPhase.STOPPING and book.why == Why.MIGRATE and spec.evictable
        claim = self._claims.claims.get(number)
        has_place = claim is not None and claim.width == spec.places
        require(moves and has_place, "whoever is moved has a place that is kept for it", f"job {number}")
        rested = not lately or at // MINUTE_MS * MINUTE_MS >= lately[-1] + (HOUR_MS << (len(lately) - 1))
        may_move = rested and len(lately) < tiers[spec.tier].moves_max
        require(may_move, "nobody is moved more often than its tier allows", f"job {number}: {lately} and {at}")
        self._moved[number] = (*self._moved.get(number, ()), at)[-EVICTIONS_MAX:]
        self._touched[number] = None
        milli = (1000 * spec.ask.gpus + spec.ask.gpu_milli) * sum(tasks for _, tasks, _ in book.leases)
        return milli * (self._goodput.unsaved_ms(number, at // MINUTE_MS * MINUTE_MS) + spec.grace_ms + MINUTE_MS)

    def compare(self, world: World, jobs: Mapping[int, JobBook]) -> None:
        """Whether the world says the same of those who were moved just now; nobody needs to know of those who are
        gone."""
        for number in self._touched:
            require_same(world.jobs[number].moves, self._moved[number], "moves are what the facts say", f"job {number}")
        self._touched.clear()
        for number in [number for number in self._moved if number not in jobs]:
            del self._moved[number]
