"""Bugs planted in how many tasks a gang has: what is given back, what is kept, and how far it shrinks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final
from unittest import mock

from msgspec.structs import replace

from muster.kernel import attempts, mending
from muster.model import fact
from muster.model.job import Job
from muster.model.phase import Run, Why
from muster.scheduler import repair
from muster.scheduler.taking.extras import Shrink
from muster.testing.planted.plant import Plant
from muster.units import DAY_MS
from muster.world import apply, goodput
from muster.world.goodput import Goodput
from muster.world.ledger import Ledger
from muster.world.widths import Widths
from muster.world.world import World


@contextlib.contextmanager
def shrink_keeps_quota() -> Iterator[None]:
    """What a run gives back goes on counting in the quota."""
    honest = apply.APPLY[fact.Shrunk]

    def shrink(world: World, item: fact.Shrunk, at: int) -> None:
        with mock.patch.object(Ledger, "charge", return_value=None):
            honest(world, item, at)

    with mock.patch.dict(apply.APPLY, {fact.Shrunk: shrink}):
        yield


@contextlib.contextmanager
def shrunk_below_least() -> Iterator[None]:
    """A run in place gives one task more than it may."""
    honest = Shrink.fact

    def to_fact(shrink: Shrink, cause: str) -> fact.Fact:
        return honest(shrink._replace(width=max(1, shrink.width - 1)) if shrink.width else shrink, cause)

    with mock.patch.object(Shrink, "fact", to_fact):
        yield


@contextlib.contextmanager
def younger_by_width() -> Iterator[None]:
    """A run that is begun anew with another width is the newest of all."""
    honest = repair.plan_repair

    def plan(world: World, job: Job, why: Why, now: int) -> fact.Claimed | None:
        claim = honest(world, job, why, now)
        return None if claim is None else replace(claim, ticket=0)

    with mock.patch.object(attempts, "plan_repair", plan):
        yield


@contextlib.contextmanager
def least_not_kept() -> Iterator[None]:
    """A run that is begun anew with another width keeps nothing meanwhile."""
    honest = repair.plan_repair

    def plan(world: World, job: Job, why: Why, now: int) -> fact.Claimed | None:
        return honest(world, job, why, now) if why == Why.LOST else None

    with mock.patch.object(attempts, "plan_repair", plan):
        yield


@contextlib.contextmanager
def width_counted_from_the_start() -> Iterator[None]:
    """Who joins a run counts in the account as if it had been there all the time."""
    with mock.patch.object(Goodput, "carry", return_value=None):
        yield


@contextlib.contextmanager
def mends_for_ever() -> Iterator[None]:
    """A run that lost places goes on with too few until there are others, however long that takes."""
    with mock.patch.object(repair, "MEND_MS", 3 * DAY_MS):
        yield


@contextlib.contextmanager
def lost_place_still_counts() -> Iterator[None]:
    """The quota counts what a run in place had on a node that is lost."""
    honest = apply.APPLY[fact.RanksLost]

    def lose(world: World, item: fact.RanksLost, at: int) -> None:
        with mock.patch.object(Ledger, "charge", return_value=None):
            honest(world, item, at)

    with mock.patch.dict(apply.APPLY, {fact.RanksLost: lose}):
        yield


@contextlib.contextmanager
def never_wider_again() -> Iterator[None]:
    """Whoever got another width is not known to have less than it may."""
    honest = Widths.keep

    def keep(widths: Widths, job: Job, run: Run) -> None:
        honest(widths, job, run)
        widths.narrow.get((job.spec.ask, job.spec.needs), {}).pop(job.id, None)

    with mock.patch.object(Widths, "keep", keep):
        yield


@contextlib.contextmanager
def spare_counts_as_work() -> Iterator[None]:
    """The time of spares is booked as that of a start, as if something came up there."""
    with mock.patch.object(goodput, "SPARE", goodput.STARTING):
        yield


@contextlib.contextmanager
def spare_on_a_closed_node() -> Iterator[None]:
    """A gang keeps spares on nodes where nothing could start."""
    with mock.patch.object(mending, "plan_drop", return_value=None):
        yield


@contextlib.contextmanager
def spares_given_up_with_a_node() -> Iterator[None]:
    """A broken gang keeps what is left of its ranks' places, and not its spares."""
    with mock.patch.object(repair, "spares_of", return_value=()):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    shrink_keeps_quota,
    shrunk_below_least,
    younger_by_width,
    least_not_kept,
    width_counted_from_the_start,
    mends_for_ever,
    lost_place_still_counts,
    never_wider_again,
    spare_counts_as_work,
    spare_on_a_closed_node,
    spares_given_up_with_a_node,
)
