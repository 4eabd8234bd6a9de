"""hazard: how much longer jobs will run, from how long others like them ran; as an index for tiers that share by it.

Run times are cut into bins that grow by half octaves. Of each class of jobs (all, of its size, of its owner and name,
of both) it counts how many entered a bin and how many ended there: those that still run count as far as they got, so
long ones are not forgotten. A job's own hazard goes from the coarse class to the fine one, each correcting the one
before by as much as it has seen; then come its neighbours, those submitted right before and after it with the same
owner, name and size, for people submit sweeps. The index is what a completion costs at least, in device-milliseconds,
if the job is given the best stretch of time from here on (Gittins). Before any data it is least attained service.

It knows what the journal holds: asks, submits, ends and time. A run time is known when it is over and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from muster.model import fact
from muster.model.advice import INDEX, Advice
from muster.model.event import Advise
from muster.model.phase import Running
from muster.model.spec import Spec
from muster.units import DAY_MS, MINUTE_MS, SECOND_MS
from muster.world.compiled import compiled
from muster.world.floors import takes_part
from muster.world.world import World

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
else:
    Floats = Ints = Any

BINS: Final = 44
EDGES_MS: Final = (0, *(round(20 * SECOND_MS * 2 ** (step / 2)) for step in range(BINS)))
"""Where bins begin; the last one ends nowhere, for all that matters."""
WIDTHS: Final = np.array([EDGES_MS[at + 1] - EDGES_MS[at] for at in range(BINS)], dtype=np.float64)
SHRINK: Final = 10.0
"""How many jobs of a class weigh as much as all that is known of the coarser one."""
PRIOR: Final = 0.16
"""The hazard of a bin before any data: a heavy tail."""
REACH: Final = 10
HALF_LIFE: Final = 4.0
NEAR_SHRINK: Final = 0.5
REFRESH_MS: Final = 30 * MINUTE_MS
"""How often everybody's index is computed anew, since classes learn all the time."""
CHANGE: Final = 0.03
"""What part of an index is not worth a word."""
PAUSE_MS: Final = 10 * SECOND_MS
"""How long it says nothing after it spoke, unless somebody is new."""


@compiled
def _cost(ended: Floats, entered: Floats, chain: Ints, near: Floats, level: int, widths: Floats) -> float:
    """What a completion costs at least, from the beginning of a bin on. `near` has two rows: the weight of neighbours
    that entered a bin, and of those that ended in it."""
    spent, alive, best = 0.0, 1.0, 1e300
    for k in range(level, len(widths)):
        hazard = PRIOR
        for at in range(len(chain)):
            row = chain[at]
            hazard = (ended[row, k] + SHRINK * hazard) / (entered[row, k] + SHRINK)
        hazard = (near[1, k] + NEAR_SHRINK * hazard) / (near[0, k] + NEAR_SHRINK)
        spent += alive * widths[k] * (1.0 - hazard / 2.0)
        alive *= 1.0 - hazard
        if alive < 1.0 and spent / (1.0 - alive) < best:
            best = spent / (1.0 - alive)
    return best


@compiled
def _weigh(near: Floats, levels: Ints, first: int, here: int, end: int) -> int:
    """Fill `near` from the neighbours: a level is the bin that a job is in, or minus one minus the bin it ended in."""
    near[:, :] = 0.0
    for at in range(first, end):
        if at == here:
            continue
        weight = 2.0 ** (-(abs(at - here) - 1) / HALF_LIFE)
        level = levels[at]
        entered = level if level >= 0 else -level
        for k in range(entered):
            near[0, k] += weight
        if level < 0:
            near[1, -level - 1] += weight
    return 0


class _Sequence:
    """Jobs of one owner, name and size, in the order in which they came: the level of each."""

    __slots__ = ("count", "jobs", "levels")

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self.levels: Ints = np.zeros(16, dtype=np.int64)
        self.count = 0

    def add(self, job: int) -> int:
        """Somebody came; its place."""
        if self.count == len(self.levels):
            self.levels = np.concatenate((self.levels, np.zeros_like(self.levels)))
        self.jobs.append(job)
        self.count += 1
        return self.count - 1

    def around(self, place: int) -> tuple[int, int]:
        """The places that are near one."""
        return max(0, place - REACH), min(self.count, place + REACH + 1)


class _Learned:
    """What is kept of a job that is not over."""

    __slots__ = ("began", "chain", "devices", "index", "level", "place", "row", "served")

    def __init__(self, chain: Ints, row: _Sequence, place: int, devices: int) -> None:
        self.chain, self.row, self.place, self.devices = chain, row, place, devices
        self.level = 0
        self.served = 0
        self.began = -1
        self.index = 0


class HazardAdviser:
    """An Adviser: says where every live job stands that takes turns."""

    def __init__(self) -> None:
        self._rows: dict[tuple[object, ...], int] = {}
        self._entered: Floats = np.zeros((64, BINS))
        self._ended: Floats = np.zeros((64, BINS))
        self._sequences: dict[tuple[object, ...], _Sequence] = {}
        self._live: dict[int, _Learned] = {}
        self._dirty: dict[int, None] = {}
        self._crossings: list[tuple[int, int, int]] = []
        self._near: Floats = np.zeros((2, BINS))
        self._version = 0
        self._spoke_at = -PAUSE_MS
        self._refreshed_at = 0
        self._has_new = False

    def observe(self, world: World, facts: Sequence[fact.Fact]) -> None:
        """Learn from an entry that the world holds already."""
        for item in facts:
            if isinstance(item, fact.Accepted):
                self._accept(item.job, item.spec)
            elif isinstance(item, fact.Began):
                self._begin(world, item.job)
            elif isinstance(item, (fact.StopAsked, fact.Requeued)):
                self._pause(world, item.job)
            elif isinstance(item, fact.Ended):
                self._end(item.job, world.now)

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        """Where everybody stands, if somebody waits and it is news."""
        if not world.queue.floors.waits:
            return ()
        if not self._has_new and now < self._spoke_at + PAUSE_MS:
            return ()
        self._cross(now)
        if now >= self._refreshed_at + REFRESH_MS:
            self._refreshed_at = now
            self._dirty = dict.fromkeys(self._live)
        if not self._reckon() and not self._has_new:
            return ()
        self._version += 1
        self._spoke_at, self._has_new = now, False
        columns = {"job": tuple(self._live), "index": tuple(each.index for each in self._live.values())}
        return (Advise(INDEX, Advice(self._version, now + 30 * DAY_MS, columns), cause="hazard"),)

    def explain(self, number: int) -> str:
        """From what a job's index came, in words."""
        job = self._live[number]
        like = int(self._entered[job.chain[-1], 0])
        return f"from {like} jobs like it and {job.row.count - 1} of its own row; it ran into bin {job.level}"

    def _accept(self, number: int, spec: Spec) -> None:
        if not takes_part(spec):
            return
        devices, owner = spec.ask.gpus * spec.gang, (spec.tenant, spec.name)
        keys: list[tuple[object, ...]] = [(), ("size", devices), ("owner", owner), ("both", owner, devices)]
        chain = np.array([self._row_of(key) for key in keys], dtype=np.int64)
        row = self._sequences.setdefault((owner, devices), _Sequence())
        self._live[number] = _Learned(chain, row, row.add(number), devices)
        self._dirty[number] = None
        self._has_new = True

    def _begin(self, world: World, number: int) -> None:
        job, record = self._live.get(number), world.jobs.get(number)
        if job is not None and record is not None and isinstance(record.phase, Running) and job.began < 0:
            job.served, job.began = record.served_ms, record.phase.since
            self._expect(number, job)

    def _pause(self, world: World, number: int) -> None:
        job = self._live.get(number)
        if job is not None and job.began >= 0:
            self._cross(world.now)
            job.served, job.began = job.served + world.now - job.began, -1

    def _end(self, number: int, now: int) -> None:
        job = self._live.get(number)
        if job is None:
            return
        self._cross(now)
        if job.began >= 0 or job.served:
            for row in job.chain:
                self._entered[row, job.level] += 1
                self._ended[row, job.level] += 1
            job.row.levels[job.place] = -job.level - 1
            self._stir(job)
        del self._live[number]

    def _cross(self, now: int) -> None:
        """Whoever passed the end of its bin meanwhile did not end in it."""
        while self._crossings and self._crossings[0][0] <= now:
            _, number, level = heappop(self._crossings)
            job = self._live.get(number)
            if job is None or job.began < 0 or job.level != level or job.level + 1 >= BINS:
                continue
            for row in job.chain:
                self._entered[row, level] += 1
            job.level += 1
            job.row.levels[job.place] = job.level
            self._stir(job)
            self._expect(number, job)

    def _expect(self, number: int, job: _Learned) -> None:
        heappush(self._crossings, (job.began + EDGES_MS[job.level + 1] - job.served, number, job.level))

    def _stir(self, job: _Learned) -> None:
        """The neighbours of a job, and itself, stand elsewhere now."""
        first, end = job.row.around(job.place)
        for number in job.row.jobs[first:end]:
            if number in self._live:
                self._dirty[number] = None

    def _reckon(self) -> bool:
        """Compute what is out of date; whether anything is worth a word."""
        is_news = False
        for number in self._dirty:
            job = self._live.get(number)
            if job is None:
                continue
            first, end = job.row.around(job.place)
            _weigh(self._near, job.row.levels, first, job.place, end)
            cost = _cost(self._ended, self._entered, job.chain, self._near, job.level, WIDTHS)
            index = min(int(cost * job.devices), 1 << 60)
            if abs(index - job.index) > CHANGE * job.index:
                job.index, is_news = index, True
        self._dirty = {}
        return is_news

    def _row_of(self, key: tuple[object, ...]) -> int:
        row = self._rows.setdefault(key, len(self._rows))
        if row == len(self._entered):
            self._entered = np.concatenate((self._entered, np.zeros_like(self._entered)))
            self._ended = np.concatenate((self._ended, np.zeros_like(self._ended)))
        return row
