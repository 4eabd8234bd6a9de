"""Bugs planted in who is moved so that others fit, and in the account of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final
from unittest import mock

import msgspec

from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Lease
from muster.model.spec import Spec
from muster.scheduler import claims, clearing, consolidation, cycle, droves, moving, older, repair, stage
from muster.scheduler.clearing import Clearing
from muster.scheduler.consolidation import Plan
from muster.testing.planted.plant import Plant
from muster.units import MINUTE_MS
from muster.world import claiming
from muster.world import world as worlds
from muster.world.laws import queue as queue_law
from muster.world.runs import amounts_of
from muster.world.widths import width_of
from muster.world.world import World


@contextlib.contextmanager
def moved_to_nowhere() -> Iterator[None]:
    """Whoever is moved is told to stop, and its new place is kept for nobody."""
    honest = Plan.facts

    def facts(plan: Plan) -> Iterator[fact.Fact]:
        moved = {job.id for job, _ in plan.moves}
        return (item for item in honest(plan) if not (isinstance(item, fact.Claimed) and item.job in moved))

    with mock.patch.object(Plan, "facts", facts):
        yield


@contextlib.contextmanager
def moved_at_any_price() -> Iterator[None]:
    """A plan is taken whatever it costs."""
    with mock.patch.object(consolidation, "WORTH", Fraction(1, 1000)):
        yield


@contextlib.contextmanager
def lost_work_not_counted() -> Iterator[None]:
    """The account counts the restart, and not what was done since the last checkpoint."""

    def cost_of(world: World, job: Job, at: int) -> int:  # noqa: ARG001 - not looking at the time is the bug
        return amounts_of(job.spec.ask, width_of(job))[0] * MINUTE_MS

    with mock.patch.object(consolidation, "cost_of", cost_of):
        yield


@contextlib.contextmanager
def moved_again_and_again() -> Iterator[None]:
    """Nobody rests from being moved."""
    with (
        mock.patch.object(consolidation, "may_move", return_value=True),
        mock.patch.object(droves, "may_move", return_value=True),
    ):
        yield


@contextlib.contextmanager
def moved_as_new() -> Iterator[None]:
    """Whoever is moved counts from then on, behind all who came after it."""

    def claim_elsewhere(job: Job, leases: Sequence[Lease], now: int, grace_ms: int = 0) -> fact.Claimed:
        return msgspec.structs.replace(moving.claim_elsewhere(job, leases, now, grace_ms), ticket=0)

    with mock.patch.object(consolidation, "claim_elsewhere", claim_elsewhere):
        yield


@contextlib.contextmanager
def tasks_moved_as_one() -> Iterator[None]:
    """The account counts one task of each array that moves, and forgets the others."""
    honest = clearing.find_clearing

    def find_clearing(*args: Any) -> Clearing | None:
        found = honest(*args)
        if found is None:
            return None
        once = {each.job: each.cost for each, _ in found.moves}
        return found._replace(cost=sum(once.values()))

    with mock.patch.object(consolidation, "find_clearing", find_clearing):
        yield


@contextlib.contextmanager
def groups_moved_as_their_largest() -> Iterator[None]:
    """The account counts one group of a gang that moves, and forgets the others."""

    def cost_of(world: World, job: Job, at: int) -> int:
        whole, groups = amounts_of(*job.spec.whole)[0], job.spec.needs.groups
        largest = max((amounts_of(group.ask, group.tasks)[0] for group in groups), default=whole)
        return honest(world, job, at) * largest // whole

    honest = consolidation.cost_of
    with mock.patch.object(consolidation, "cost_of", cost_of):
        yield


@contextlib.contextmanager
def groups_claimed_alike() -> Iterator[None]:
    """What a gang of several groups claims counts as if every task asked for what its last one does."""

    def charge_claim(world: World, job: int, sign: int, leases: Sequence[Lease] | None = None) -> None:
        spec, claimed = world.jobs[job].spec, world.claims[job].leases if leases is None else leases
        for site, tasks in world.sites.spread(claimed):
            world.ledger.charge(spec.tenant, site, spec.parts(claimed)[-1][0], sign * tasks)

    with contextlib.ExitStack() as stack:
        for room in (claiming, claims, older, repair, stage, worlds):
            stack.enter_context(mock.patch.object(room, "charge_claim", charge_claim))
        yield


@contextlib.contextmanager
def groups_gain_alike() -> Iterator[None]:
    """What a gang of several groups gains counts as if every task asked for what its largest group does."""

    def devices_asked(spec: Spec) -> int:
        asks = [group.ask for group in spec.needs.groups] or [spec.ask]
        return max(amounts_of(ask, spec.gang)[0] for ask in asks)

    with mock.patch.object(consolidation, "devices_asked", devices_asked):
        yield


@contextlib.contextmanager
def tasks_gain_together() -> Iterator[None]:
    """What an array gains counts as if all of its tasks started by one place."""
    honest = consolidation.devices_asked

    def devices_asked(spec: Spec) -> int:
        return honest(spec) * max(1, spec.array)

    with mock.patch.object(consolidation, "devices_asked", devices_asked):
        yield


@contextlib.contextmanager
def mover_starts_elsewhere() -> Iterator[None]:
    """A task that moves and is gone from its old place takes the first one that it finds."""
    honest = claiming.spoken_for

    def spoken_for(world: World, job: int) -> int:
        return 0 if claiming.movers_of(world, job) else honest(world, job)

    with contextlib.ExitStack() as stack:
        for room in (claiming, cycle, queue_law, worlds):
            stack.enter_context(mock.patch.object(room, "spoken_for", spoken_for))
        stack.enter_context(mock.patch.object(cycle, "movers_of", return_value=()))
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    moved_to_nowhere,
    moved_at_any_price,
    lost_work_not_counted,
    moved_again_and_again,
    moved_as_new,
    tasks_moved_as_one,
    groups_moved_as_their_largest,
    groups_claimed_alike,
    groups_gain_alike,
    tasks_gain_together,
    mover_starts_elsewhere,
)
