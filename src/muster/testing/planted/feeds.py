"""Bugs planted in overlays: budgets that leak, that bind nobody, and that wake nobody."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final
from unittest import mock

from muster.scheduler.placing.rations import Rations
from muster.testing.planted.plant import Plant
from muster.units import Resources
from muster.world import world as worlds
from muster.world.overlays import Overlays


@contextlib.contextmanager
def feed_leak() -> Iterator[None]:
    """Whoever ends gives nothing back of what it took behind a feed."""
    honest = Overlays.seat

    def seat(overlays: Overlays, slot: int, flavor: str, ask: Resources, tasks: int) -> None:
        honest(overlays, slot, flavor, ask, max(0, tasks))

    with mock.patch.object(Overlays, "seat", seat):
        yield


@contextlib.contextmanager
def feed_ignored() -> Iterator[None]:
    """Nobody is kept off a feed that has nothing left."""
    with mock.patch.object(Rations, "keep", lambda _, parts, pools: pools):  # noqa: ARG005 - its signature
        yield


@contextlib.contextmanager
def feed_wakes_nobody() -> Iterator[None]:
    """What is given back behind a feed wakes only who fits where it came free."""
    with mock.patch.object(worlds, "wake_for_budget", return_value=None):
        yield


PLANTS: Final[tuple[Plant, ...]] = (feed_leak, feed_ignored, feed_wakes_nobody)
