"""Finish-time fairness (Themis, Mahajan et al., NSDI 2020), as an adviser that is told run times.

How unfair a job fares is how long it takes here, over how long it would take on its own part of the places, one of as
many as there are jobs. Every lease, each job is given the part of the time that makes the worst of them fare as well as
can be (so does Gavel, OSDI 2020); and those go first who had the least time for the part they are given. The published
comparison on Muri's traces (SIGCOMM 2022) says the same and does something else: `bench.proving_ground` tells what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from bench.leagues.oracles import Oracle
from muster.model.advice import INDEX, Advice
from muster.model.event import Advise
from muster.model.phase import Running
from muster.ports.adviser import Adviser
from muster.simulator.traces.record import Record
from muster.units import DAY_MS, MINUTE_MS
from muster.world.floors import devices_of
from muster.world.world import World

LEASE_MS: Final = 20 * MINUTE_MS
"""For how long places are given, as published."""
HALVINGS: Final = 40
INDEX_MAX: Final = 1 << 60

_Floats = npt.NDArray[np.float64]


class Fairness(Oracle):
    """An oracle that makes finish-time fairness of what it knows. `_alone` is how long each would have run by now, on a
    part of its own, for what it did; `_done` is what it had done when that was reckoned last, and `_rate` how fast it
    would have been from then on."""

    def __init__(self, records: Sequence[Record]) -> None:
        super().__init__(records, lambda record: record.duration_ms)
        self._alone: dict[int, float] = {}
        self._done: dict[int, int] = {}
        self._rate: dict[int, float] = {}
        self._spoke_at = -LEASE_MS

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        """Where everybody stands, once in a lease, if somebody waits."""
        if now < self._spoke_at + LEASE_MS or not world.queue.floors.waits:
            return ()
        self._spoke_at = now
        self._version += 1
        numbers = tuple(self._live)
        columns = {"job": numbers, "index": self._indexes(world, numbers, now)}
        return (Advise(INDEX, Advice(self._version, now + 1000 * DAY_MS, columns), cause="fairness"),)

    def _indexes(self, world: World, numbers: Sequence[int], now: int) -> tuple[int, ...]:
        places = sum(world.fleet.capacity(slot).gpus for slot in range(len(world.fleet)))
        done = [_done_ms(world, number, now) for number in numbers]
        devices = [devices_of(world.jobs[number].spec) for number in numbers]
        own = -(-places // len(numbers))
        left, alone = list[int](), list[float]()
        for number, did, width in zip(numbers, done, devices, strict=True):
            gained = did - self._done.get(number, 0)
            self._alone[number] = self._alone.get(number, 0.0) + gained / self._rate.get(number, 1.0)
            self._done[number], self._rate[number] = did, min(1.0, own / width)
            left.append(max(1, self._live[number] - did))
            alone.append(self._alone[number] + left[-1] / self._rate[number])
        waited = [now - world.jobs[number].accepted_at for number in numbers]
        parts = share_out(places, *(np.array(each, dtype=np.float64) for each in (waited, left, alone, devices)))
        return tuple(min(INDEX_MAX, int(max(1, did) / part)) for did, part in zip(done, parts, strict=True))


def share_out(places: int, waited: _Floats, left: _Floats, alone: _Floats, devices: _Floats) -> _Floats:
    """The part of the time of each job with which the worst off fares as well as can be: (waited + left / part) / alone
    is the same for all but for those who have all of their time."""

    def parts_at(ratio: float) -> _Floats:
        rest = ratio * alone - waited
        parts = np.divide(left, rest, out=np.ones_like(left), where=rest > left)
        return np.asarray(parts, dtype=np.float64)

    least, most = 0.0, 1.0
    while float(np.sum(devices * parts_at(most))) > places:
        least, most = most, 2 * most
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        least, most = (least, middle) if float(np.sum(devices * parts_at(middle))) <= places else (middle, most)
    return parts_at(most)


def _done_ms(world: World, number: int, now: int) -> int:
    job = world.jobs[number]
    return job.served_ms + (now - job.phase.since if isinstance(job.phase, Running) else 0)


def finish_time_fairness(records: Sequence[Record]) -> Adviser:
    """The adviser of finish-time fairness."""
    return Fairness(records)
