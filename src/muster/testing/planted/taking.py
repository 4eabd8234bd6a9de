"""Bugs planted in who is stopped for whom, and in what becomes of the places: rights, claims, evictions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final
from unittest import mock

import msgspec

from muster.kernel import attempts
from muster.model import fact
from muster.model.job import Job
from muster.model.node import Lack
from muster.model.phase import TAKEN, Why
from muster.policy.taking import Kin, Party
from muster.scheduler import claims, repair
from muster.scheduler.taking import preemption, rights
from muster.testing.planted.plant import Plant
from muster.units import DAY_MS
from muster.world import apply, snapshot
from muster.world.fleet import Fleet
from muster.world.ledger import Ledger
from muster.world.runs import Runs, class_of
from muster.world.world import World

_replace = msgspec.structs.replace


@contextlib.contextmanager
def claim_not_kept() -> Iterator[None]:
    """What is freed for one is given to whoever comes first."""

    def set_claimed(fleet: Fleet, slot: int, claimed: Lack) -> None:
        if claimed.devices:
            fleet.claimed[slot] = claimed
        else:
            fleet.claimed.pop(slot, None)

    with mock.patch.object(Fleet, "set_claimed", set_claimed):
        yield


@contextlib.contextmanager
def quota_kept_after_eviction() -> Iterator[None]:
    """Whoever is stopped for others goes on counting in the quota."""
    honest = apply.APPLY[fact.Requeued]

    def requeue(world: World, item: fact.Requeued, at: int) -> None:
        if item.why not in TAKEN:
            honest(world, item, at)
            return
        with mock.patch.object(Ledger, "charge", return_value=None):
            honest(world, item, at)

    with mock.patch.dict(apply.APPLY, {fact.Requeued: requeue}):
        yield


@contextlib.contextmanager
def claim_forgotten_by_restore() -> Iterator[None]:
    """After a restart what is claimed does not count in the quota."""
    honest = snapshot._rebuild

    def rebuild(content: snapshot.Snapshot) -> World:
        return honest(_replace(content, claims=[]))

    with mock.patch.object(snapshot, "_rebuild", rebuild):
        yield


@contextlib.contextmanager
def moved_before_it_is_gone() -> Iterator[None]:
    """Whoever moves starts in its new place while it still sits in the old one."""
    with mock.patch.object(claims, "is_moving", return_value=False):
        yield


@contextlib.contextmanager
def evicted_for_good() -> Iterator[None]:
    """Whoever is stopped for others is over, as if it had been cancelled."""
    with mock.patch.object(attempts, "_SENT_BACK", (Why.LOST, Why.DRAIN, Why.REQUEUE, Why.MIGRATE)):
        yield


@contextlib.contextmanager
def the_weaker_takes() -> Iterator[None]:
    """Anybody takes from anybody of another tier or tenant: places go round in a circle."""

    def find_right(claimant: Party, victim: Party, kin: Kin, *, owed: bool = False) -> Why | None:  # noqa: ARG001 - not looking at the right is the bug
        return Why.PREEMPT if victim.evictable else None

    with mock.patch.object(rights, "find_right", find_right):
        yield


@contextlib.contextmanager
def broken_gang_keeps_nothing() -> Iterator[None]:
    """What is left of a gang that lost a node is anybody's."""
    with mock.patch.object(attempts, "plan_repair", return_value=None):
        yield


@contextlib.contextmanager
def broken_gangs_wait_for_ever() -> Iterator[None]:
    """Two gangs that lost a node keep what is left of them until one of them has the other's: for ever."""
    with mock.patch.object(repair, "REPAIR_MS", 365 * DAY_MS):
        yield


@contextlib.contextmanager
def flapping_job_never_backs_off() -> Iterator[None]:
    """A job whose nodes fail again and again stops others again and again."""
    with mock.patch.object(preemption, "may_take", return_value=True):
        yield


@contextlib.contextmanager
def served_as_new() -> Iterator[None]:
    """Whoever is served counts from then on, behind all who came while it waited for its places."""
    with mock.patch.object(claims, "_age_of", return_value=0):
        yield


@contextlib.contextmanager
def still_of_its_class() -> Iterator[None]:
    """Whoever gave all back is counted among those of its tenant and tier for ever."""
    honest = Runs.remove

    def remove(runs: Runs, job: Job) -> None:
        honest(runs, job)
        runs.count(class_of(job), 1)

    with mock.patch.object(Runs, "remove", remove):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    still_of_its_class,
    claim_not_kept,
    quota_kept_after_eviction,
    claim_forgotten_by_restore,
    moved_before_it_is_gone,
    evicted_for_good,
    the_weaker_takes,
    broken_gang_keeps_nothing,
    broken_gangs_wait_for_ever,
    flapping_job_never_backs_off,
    served_as_new,
)
