"""Bugs planted in what is known of the future: who must not be delayed, and by whom."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final
from unittest import mock

from muster.scheduler import shadows
from muster.testing.planted.plant import Plant


@contextlib.contextmanager
def limit_not_looked_at() -> Iterator[None]:
    """Whoever has a limit overtakes a shadow, whenever it will end."""
    with mock.patch.object(shadows, "may_overtake", return_value=True):
        yield


@contextlib.contextmanager
def shadow_stays() -> Iterator[None]:
    """What a shadow closed is not opened again when the cycle ends."""
    with mock.patch.object(shadows.Shadows, "__exit__", return_value=None):
        yield


PLANTS: Final[tuple[Plant, ...]] = (limit_not_looked_at, shadow_stays)
