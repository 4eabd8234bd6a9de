"""Bugs planted in what is known of the future: who must not be delayed, and by whom."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock

from muster.kernel import kernel, windows
from muster.model import fact
from muster.model.booking import Keeping
from muster.model.job import Job
from muster.model.spec import Spec
from muster.scheduler import booked, reserving, shadows, yielding
from muster.testing.planted.plant import Plant
from muster.units import INSTANT_MAX
from muster.world.fleet import Fleet
from muster.world.world import World


@contextlib.contextmanager
def limit_not_looked_at() -> Iterator[None]:
    """Whoever has a limit overtakes a shadow, whenever it will end."""
    with mock.patch.object(shadows, "may_overtake", return_value=True):
        yield


@contextlib.contextmanager
def tasks_have_no_end() -> Iterator[None]:
    """Tasks of an array with a limit are in no calendar: who waits for their places thinks them taken for ever."""
    honest = World.hold_tasks

    def hold_tasks(world: World, job: Job, *about: Any) -> None:
        honest(world, job, *about)
        world.ends.spread.pop(job.id, None)

    with mock.patch.object(World, "hold_tasks", hold_tasks):
        yield


@contextlib.contextmanager
def shadow_stays() -> Iterator[None]:
    """What a shadow closed is not opened again when the cycle ends."""
    with mock.patch.object(shadows.Shadows, "__exit__", return_value=None):
        yield


@contextlib.contextmanager
def guest_stays() -> Iterator[None]:
    """Anybody may be on a booked node until its window opens, however long it stays."""

    def may_be_guest(spec: Spec, keeping: Keeping, now: int) -> bool:
        return not keeping.is_open and now + spec.grace_ms < keeping.until

    with mock.patch.object(booked, "may_be_guest", may_be_guest):
        yield


@contextlib.contextmanager
def window_open_to_all() -> Iterator[None]:
    """A booked node is found by everybody, whatever its window says."""
    with mock.patch.object(Fleet, "is_listed", Fleet.is_open):
        yield


@contextlib.contextmanager
def nobody_told_to_leave() -> Iterator[None]:
    """Whoever is on a booked node is left alone when its window opens."""
    with mock.patch.object(windows, "stop_seats", return_value=None), mock.patch.object(windows, "leaves_at", _never):
        yield


@contextlib.contextmanager
def booked_twice() -> Iterator[None]:
    """A window does not look at who else has its nodes meanwhile."""
    with mock.patch.object(reserving, "overlap", return_value=False):
        yield


@contextlib.contextmanager
def yields_too_early() -> Iterator[None]:
    """Whoever yields gives way as soon as somebody is due, however long it expects to run."""
    honest = yielding.plan_yields

    def plan_yields(world: World, now: int) -> list[fact.Fact]:
        twin = world.fork()
        twin.ends.yielding |= dict.fromkeys(twin.ends.yielding, now)
        return honest(twin, now)

    with mock.patch.object(kernel, "plan_yields", plan_yields):
        yield


def _never(job: Job, keeping: Keeping) -> int:  # noqa: ARG001 - not looking at them is the bug
    return INSTANT_MAX


PLANTS: Final[tuple[Plant, ...]] = (
    limit_not_looked_at,
    tasks_have_no_end,
    shadow_stays,
    guest_stays,
    window_open_to_all,
    nobody_told_to_leave,
    booked_twice,
    yields_too_early,
)
