"""Bugs planted in tiers that are shared in time: whose turn it is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final
from unittest import mock

from muster.testing.planted.plant import Plant
from muster.world.floors import Floors


@contextlib.contextmanager
def turn_kept_after_the_end() -> Iterator[None]:
    """Who gave its places back still counts as running."""
    with mock.patch.object(Floors, "unseat", return_value=None):
        yield


PLANTS: Final[tuple[Plant, ...]] = (turn_kept_after_the_end,)
