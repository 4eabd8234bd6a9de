"""Errands: what a keeper has podman or docker do about containers, beside the tasks. Each is a process of ours; one
that fails is sent again, a limited number of times, since a container that begins or ends is busy for a moment.

It knows command lines and nothing of tasks.
"""

from __future__ import annotations

import heapq
import logging
import os
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

AGAIN_S: Final = 0.25
TRIES_MAX: Final = 40

_log = logging.getLogger(__name__)


class Errand(NamedTuple):
    """A command line, and how often it may still be sent; as long as it is `wanted`."""

    words: list[str]
    is_wanted: Callable[[], bool]
    tries: int = TRIES_MAX


class Errands:
    """Those that are under way, by the process that does them, and those that wait to be sent again."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = own
        self._under_way: dict[int, Errand] = {}
        self._waiting: list[tuple[float, int, Errand]] = []

    def __contains__(self, pid: int) -> bool:
        return pid in self._under_way

    @property
    def look_at(self) -> float | None:
        """When the next one is to be sent again."""
        return self._waiting[0][0] if self._waiting else None

    def send(self, errand: Errand) -> None:
        """Have it done. What cannot even be begun is given up: no errand is worth a keeper with its tasks."""
        try:
            pid = self.spawn(errand.words)
        except OSError as error:
            _log.error("cannot run %s: %s", errand.words[0], error)
        else:
            self._under_way[pid] = errand._replace(tries=errand.tries - 1)

    def spawn(self, words: list[str]) -> int:
        """A process that does it, in a session of its own, and says nothing."""
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        return os.posix_spawn(words[0], words, dict(self._own), file_actions=nowhere, setsid=True)

    def end(self, pid: int, status: int, now: float) -> None:
        """A child of ours ended; it may have been one of these."""
        errand = self._under_way.pop(pid, None)
        if errand is not None and status and errand.tries:
            heapq.heappush(self._waiting, (now + AGAIN_S, pid, errand))

    def look(self, now: float) -> None:
        """Send again what is due and still wanted."""
        while self._waiting and self._waiting[0][0] <= now:
            _, _, errand = heapq.heappop(self._waiting)
            if errand.is_wanted():
                self.send(errand)
