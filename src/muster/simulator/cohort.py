"""Cohorts: tasks of one run that sit on one simulated node and share one life, from start to being forgotten.

A cohort is what a node remembers of them. It may be cut when an instruction speaks of a part of it. Nothing here knows
time or messages; `muster.simulator.engine` moves cohorts through their states.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from muster.model.node import Traits, address_of
from muster.units import Limit, Resources


class State(enum.IntEnum):
    """Where a cohort stands. LOST died with its node before anybody could say so."""

    STARTING = 0
    RUNNING = 1
    EXITED = 2
    LOST = 3


LIVE = (State.STARTING, State.RUNNING)


def _nothing(*_: object) -> None:
    """What happens to a cohort that was never launched."""


class Cohort:
    """Tasks [first, first + count) of (job, epoch) on one node. `plan` is what happens to it next, and when; `turn`
    changes whenever that is void. It takes `stop_ms` to stop, if that is known; one that was told to has left by the
    instant `leaves_at`, however often it is told again."""

    __slots__ = (
        *("code", "count", "devices", "epoch", "first", "gpus", "job", "leaves_at", "node", "plan", "state"),
        *("stop_ms", "turn"),
    )

    def __init__(self, job: int, epoch: int, first: int, count: int, node: str, gpus: int, devices: int) -> None:
        self.job = job
        self.epoch = epoch
        self.first = first
        self.count = count
        self.node = node
        self.gpus = gpus
        self.devices = devices
        self.state = State.STARTING
        self.code = 0
        self.turn = 0
        self.stop_ms: Limit = None
        self.leaves_at: Limit = None
        self.plan: tuple[int, Callable[..., None], tuple[Any, ...]] = (0, _nothing, ())

    @property
    def end(self) -> int:
        """One past the last task."""
        return self.first + self.count

    @property
    def is_live(self) -> bool:
        """Whether its processes are there."""
        return self.state in LIVE

    def overlaps(self, first: int, count: int) -> bool:
        """Whether a range speaks of any of its tasks."""
        return first < self.end and self.first < first + count

    def cut(self, first: int, count: int) -> tuple[Cohort, list[Cohort]]:
        """The part inside a range, and the parts outside it; the cohort itself is void afterwards."""
        begin, end = max(first, self.first), min(first + count, self.end)
        inside = self._part(begin, end - begin)
        outside = [
            self._part(at, width) for at, width in ((self.first, begin - self.first), (end, self.end - end)) if width
        ]
        self.turn += 1
        return inside, outside

    def _part(self, first: int, count: int) -> Cohort:
        devices = part_of_devices(self.devices, self.gpus, first - self.first, count)
        part = Cohort(self.job, self.epoch, first, count, self.node, self.gpus, devices)
        part.state, part.code = self.state, self.code
        part.stop_ms, part.leaves_at = self.stop_ms, self.leaves_at
        return part


class SimulatedNode:
    """One machine: what it remembers, which devices are busy, and whether anybody can reach it.

    `ids` are what it calls its devices, by number, if it names them; `missing` are those that fell off the bus, a bit
    each, and `known_missing` those of them that no start may speak of any more. What is on its way when it is fenced
    never reaches it: it is deaf until that is over.
    """

    __slots__ = (
        "address",
        "boot",
        "busy_devices",
        "capacity",
        "cohorts",
        "deaf_until",
        "ids",
        "is_alive",
        "is_reachable",
        "known_missing",
        "missing",
        "name",
        "traits",
        "trouble",
    )

    def __init__(self, name: str, capacity: Resources, traits: Traits, ids: tuple[str, ...] = ()) -> None:
        self.name = name
        self.address = address_of(name, traits.place)
        self.capacity = capacity
        self.traits = traits
        self.ids = ids
        self.missing = 0
        self.known_missing = 0
        self.cohorts: dict[tuple[int, int], list[Cohort]] = {}
        self.busy_devices = 0
        self.is_alive = True
        self.is_reachable = True
        self.boot = 0
        self.deaf_until = -1
        self.trouble = 0

    def report(self) -> tuple[Resources, tuple[str, ...]]:
        """What it has to offer and what it calls its devices, without those that are missing."""
        gone = self.missing
        capacity = msgspec.structs.replace(self.capacity, gpus=self.capacity.gpus - gone.bit_count())
        return capacity, tuple(name for place, name in enumerate(self.ids) if not gone >> place & 1)

    def numbers(self, devices: int, ids: tuple[str, ...]) -> int:
        """The machine's own numbers of devices that somebody names, as bits; without names they are the numbers."""
        return sum(1 << self.ids.index(name) for name in ids if name in self.ids) if ids else devices

    def known(self, job: int, epoch: int) -> list[Cohort]:
        """What it remembers of one run."""
        return self.cohorts.get((job, epoch), [])

    def everyone(self) -> Iterator[Cohort]:
        """All that it remembers, in order of start."""
        for cohorts in list(self.cohorts.values()):
            yield from list(cohorts)

    def add(self, cohort: Cohort) -> None:
        """Remember a cohort."""
        self.cohorts.setdefault((cohort.job, cohort.epoch), []).append(cohort)

    def drop(self, cohort: Cohort) -> None:
        """Forget a cohort."""
        cohorts = self.cohorts[(cohort.job, cohort.epoch)]
        cohorts.remove(cohort)
        if not cohorts:
            del self.cohorts[(cohort.job, cohort.epoch)]


def part_of_devices(devices: int, gpus: int, skip: int, count: int) -> int:
    """The devices of `count` tasks after the first `skip`, dealt lowest bits first."""
    part = 0
    for index in range(gpus * (skip + count)):
        low = devices & -devices
        if index >= gpus * skip:
            part |= low
        devices ^= low
    return part


def gaps(first: int, count: int, covered: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The runs of [first, first + count) that no (first, count) of `covered` covers."""
    end = first + count
    for begin, width in sorted(covered):
        if begin > first:
            yield first, min(begin, end) - first
        first = max(first, begin + width)
        if first >= end:
            return
    if first < end:
        yield first, end - first
