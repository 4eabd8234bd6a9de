"""Bugs planted in the accounts: time that is in two buckets, lost work that passes for useful, a meter that forgets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest import mock

from muster.model.job import Meter
from muster.testing.planted.plant import Plant
from muster.world.goodput import LOST, STOPPING, Goodput


@contextlib.contextmanager
def bucket_counted_twice() -> Iterator[None]:
    """The time in which a run stops is lost, too."""
    honest = Goodput._book

    def book(goodput: Goodput, key: tuple[str, str], kind: int, time: int) -> None:
        honest(goodput, key, kind, time)
        if kind == STOPPING:
            honest(goodput, key, LOST, time)

    with mock.patch.object(Goodput, "_book", book):
        yield


@contextlib.contextmanager
def lost_work_is_useful() -> Iterator[None]:
    """Whatever ran was of use."""
    gang, tasks = _generous(Goodput.close), _generous(Goodput.close_tasks)
    with mock.patch.object(Goodput, "close", gang), mock.patch.object(Goodput, "close_tasks", tasks):
        yield


def _generous(honest: Callable[..., None]) -> Callable[..., None]:
    def close(*about: Any, is_useful: bool) -> None:  # noqa: ARG001 - not looking is the bug
        honest(*about, is_useful=True)

    return close


@contextlib.contextmanager
def idle_while_held() -> Iterator[None]:
    """Devices that an array takes go on being idle."""
    honest = Goodput.take

    def take(goodput: Goodput, ask: Any, leases: Any, at: int) -> None:
        if not isinstance(leases, list):
            honest(goodput, ask, leases, at)

    with mock.patch.object(Goodput, "take", take):
        yield


@contextlib.contextmanager
def meter_forgets() -> Iterator[None]:
    """What a job used is what its last tasks used."""
    with mock.patch.object(Meter, "add", lambda _, cpu_ms, rss_bytes: Meter(cpu_ms, rss_bytes)):
        yield


PLANTS: Final[tuple[Plant, ...]] = (bucket_counted_twice, lost_work_is_useful, idle_while_held, meter_forgets)
