"""Bugs planted in what advisers say: it outlives its time, or a restart."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final
from unittest import mock

from msgspec.structs import replace

from muster.kernel import timers
from muster.testing.planted.plant import Plant
from muster.world import snapshot
from muster.world.world import World


@contextlib.contextmanager
def advice_never_ends() -> Iterator[None]:
    """Advice is gone by past its time."""
    with mock.patch.object(timers, "drop_outlived"):
        yield


@contextlib.contextmanager
def advice_forgotten_by_restore() -> Iterator[None]:
    """After a restart nobody knows what the advisers said."""
    honest = snapshot._rebuild

    def rebuild(content: snapshot.Snapshot) -> World:
        return honest(replace(content, advice={}))

    with mock.patch.object(snapshot, "_rebuild", rebuild):
        yield


PLANTS: Final[tuple[Plant, ...]] = (advice_never_ends, advice_forgotten_by_restore)
