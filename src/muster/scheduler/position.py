"""position: who would go before a job that waits, if the order were walked to its end now.

In this walk nobody ends and nobody joins, everybody fits, and each start is charged what it would be charged now. So it
is the order as it stands, and no promise: whoever fits goes, and ends and new jobs change the shares. It is not walked
step by step. In a leaf the order is known; and of two children of a node, one goes before the other as long as its
share, with all that went before from it, is the smaller one. So whoever is ahead in a child is the beginning of its
list, and where that ends is found by its sums. It costs what waits, on read only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from heapq import nsmallest
from itertools import accumulate, chain
from typing import Final, NamedTuple, TypeAlias

import msgspec

from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.model.tenant import ROOT
from muster.units import Resources
from muster.world.queue import BandKey, Line, job_of
from muster.world.usage import WEIGHT_BITS, amount_of, paid_until
from muster.world.world import World

AHEAD_SHOWN: Final = 5

Leaves: TypeAlias = dict[str, list[Line]]


class Position(msgspec.Struct, frozen=True):
    """Where a job stands, the first few who are ahead of it, and what all of them ask for."""

    place: int
    ahead: list[int]
    ahead_total: Resources


class Turns(NamedTuple):
    """The jobs below a child of some node, in order; `totals` are its charges before each of them, and after all."""

    child: str
    weight: int
    jobs: list[int]
    totals: list[int]

    def count_before(self, share: int, child: str) -> int:
        """How many of these come before a turn of another child, which comes at a share."""
        bound = (share + (self.child < child)) * self.weight
        return bisect_left(self.totals, bound, hi=len(self.jobs))

    def first(self) -> Iterator[tuple[int, str, int, int]]:
        """The first few turns: share, child, place, job."""
        for place, job in enumerate(self.jobs[:AHEAD_SHOWN]):
            yield self.totals[place] // self.weight, self.child, place, job


def find_position(world: World, job: Job) -> Position | None:
    """Where a job stands that waits; None if nothing of it does."""
    line = world.queue.find_line(job.id)
    if line is None:
        return None
    world.walk.settle(world.now)
    mine, bands = _band_of(world, line), _leaves_by_band(world)
    charged: dict[str, int] = {}
    first: list[int] = []
    ahead: list[int] = []
    for band in sorted(band for band in bands if band <= mine):
        turns = _Band(world, band, bands[band], charged).turns_at(ROOT)
        if band == mine:
            turns = _cut(turns, job.id)
        first += [turn[-1] for turn in nsmallest(AHEAD_SHOWN - len(first), chain(*(each.first() for each in turns)))]
        ahead += chain(*(each.jobs for each in turns))
    return Position(len(ahead) + 1, first, _sum_waiting(world, ahead))


def _cut(turns: list[Turns], job: int) -> list[Turns]:
    """What comes before a job's turn."""
    own = next(each for each in turns if job in each.jobs)
    place = own.jobs.index(job)
    share = own.totals[place] // own.weight
    counts = [place if each is own else each.count_before(share, own.child) for each in turns]
    return [each._replace(jobs=each.jobs[:count]) for each, count in zip(turns, counts, strict=True)]


class _Band:
    """The turns of all who wait in one band; `charged` is what the bands before it were charged, by node."""

    def __init__(self, world: World, band: BandKey, leaves: Leaves, charged: dict[str, int]) -> None:
        self._world = world
        self._since = world.now - world.tiers[band[2]].longest_wait_ms
        self._leaves = leaves
        self._charged = charged
        self._children: dict[str, dict[str, int]] = {}
        self._tenant_at: dict[str, str] = {}
        for tenant in leaves:
            parent = ROOT
            for node, weight in world.walk.path(tenant):
                self._children.setdefault(parent, {})[node] = weight
                parent = node
            self._tenant_at[parent] = tenant

    def turns_at(self, node: str) -> list[Turns]:
        """The turns below each child of a node."""
        found: list[Turns] = []
        for child, weight in self._children[node].items():
            jobs, charges = self._jobs_at(child)
            before = self._charged.get(child, 0)
            totals = list(accumulate(charges, initial=self._world.walk.total(child) + before))
            self._charged[child] = before + totals[-1] - totals[0]
            found.append(Turns(child, weight, jobs, totals))
        return found

    def _jobs_at(self, node: str) -> tuple[list[int], list[int]]:
        """All below a node in order, and the charge of each."""
        tenant = self._tenant_at.get(node)
        if tenant is not None:
            return self._jobs_of(tenant)
        merged: list[tuple[int, str, int, int, int]] = []
        for each in self.turns_at(node):
            shares = [total // each.weight for total in each.totals]
            charges = [after - before for before, after in zip(each.totals, each.totals[1:], strict=False)]
            names = [each.child] * len(charges)
            merged += zip(shares, names, range(len(charges)), each.jobs, charges, strict=False)
        merged.sort()
        return [turn[3] for turn in merged], [turn[4] for turn in merged]

    def _jobs_of(self, tenant: str) -> tuple[list[int], list[int]]:
        lines, charges = self._leaves[tenant], dict[int, int]()
        jobs = [job_of(key) for key in sorted(chain(*(line.keys(self._since) for line in lines)))]
        for line in lines:
            charges |= self._charges_of(line)
        return jobs, list(map(charges.__getitem__, jobs))

    def _charges_of(self, line: Line) -> dict[int, int]:
        """What a start of all that waits of each job would be charged now, on plain devices."""
        world, until = self._world, paid_until(self._world.now)
        each = amount_of(line.shape.ask, line.shape.gang) << WEIGHT_BITS
        charges = dict.fromkeys(line.ids(), each * (until - world.now))
        for number in charges:
            spec = world.jobs[number].spec
            if spec.limit_ms is not None:
                charges[number] = each * max(until - world.now, spec.limit_ms)
            elif spec.array:
                charges[number] *= world.arrays[number].counts[TaskPhase.QUEUED]
        return charges


def _band_of(world: World, line: Line) -> BandKey:
    """Where a line stands now, not when it was last tried."""
    return (world.standing_of(line), *line.band[1:])


def _leaves_by_band(world: World) -> dict[BandKey, Leaves]:
    bands: dict[BandKey, Leaves] = {}
    for shape in world.queue.shapes.values():
        for line in shape.lines.values():
            bands.setdefault(_band_of(world, line), {}).setdefault(line.tenant, []).append(line)
    return bands


def _sum_waiting(world: World, jobs: list[int]) -> Resources:
    """What all that waits of some jobs asks for. Not checked: nobody holds it, so it may be more than any amount."""
    gpus = cpu = memory = 0
    counts = Counter(map(world.queue.line_of, jobs))
    tasks = {line: line.shape.gang * count for line, count in counts.items()}
    for number in jobs if world.arrays else ():
        array = world.arrays.get(number)
        if array is not None:
            tasks[world.queue.line_of(number)] += array.counts[TaskPhase.QUEUED] - 1
    for line, count in tasks.items():
        ask = line.shape.ask
        gpus, cpu, memory = gpus + ask.gpus * count, cpu + ask.cpu_milli * count, memory + ask.memory_bytes * count
    return Resources(gpus, cpu, memory)
