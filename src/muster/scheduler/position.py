"""position: who would go before a job that waits, if the order were walked to its end now.

In this walk nobody ends and nobody joins, everybody fits, and each start is charged what it would be charged now. So it
is the order as it stands, and no promise: whoever fits goes, and ends and new jobs change the shares. It is not walked
step by step. In a leaf the order is known; and of two children of a node, one goes before the other as long as its
share, with all that went before from it, is the smaller one. So whoever is ahead in a child is the beginning of its
list, and where that ends is found by its sums. Jobs that only their numbers tell apart make one block, and none is
looked into but the one in which a list ends. It costs what waits, on read only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from heapq import merge, nsmallest
from itertools import accumulate, chain, islice
from typing import Final, NamedTuple, TypeAlias

import msgspec

from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.model.tenant import ROOT
from muster.units import Resources
from muster.world.decay import WEIGHT_BITS
from muster.world.line import BandKey, Line
from muster.world.queue import INSIDE
from muster.world.usage import paid_until
from muster.world.world import World

AHEAD_SHOWN: Final = 5

Leaves: TypeAlias = dict[str, list[Line]]
Stretch: TypeAlias = tuple[Line, Collection[int]]
"""Jobs of one line that only their numbers tell apart."""


class Position(msgspec.Struct, frozen=True):
    """Where a job stands, the first few who are ahead of it, and what all of them ask for."""

    place: int
    ahead: list[int]
    ahead_total: Resources


class Block(NamedTuple):
    """Jobs of one tenant that go one after the other, by their numbers, and what their starts are charged in all."""

    stretches: list[Stretch]
    width: int
    charge: int

    def jobs(self) -> list[int]:
        """All of them, in order."""
        return sorted(chain(*(jobs for _, jobs in self.stretches)))

    def lines(self) -> dict[int, Line]:
        """The line of each of them."""
        return {job: line for line, jobs in self.stretches for job in jobs}


class Turns(NamedTuple):
    """The jobs below a child of some node, in order, as blocks; `totals` are its charges before each, and after all."""

    child: str
    weight: int
    blocks: list[Block]
    totals: list[int]

    def share(self, total: int) -> int:
        """The child's share when it was charged so much."""
        return total // self.weight

    def begin(self) -> tuple[int, str]:
        """Share and child, before the first of them: the lower one goes first."""
        return self.share(self.totals[0]), self.child

    def has_any(self) -> bool:
        """Whether there is anybody."""
        return any(block.width for block in self.blocks)


def find_position(world: World, job: Job) -> Position | None:
    """Where a job stands that waits; None if nothing of it does."""
    line = world.queue.find_line(job)
    if line is None:
        return None
    world.walk.settle(world.now)
    mine, bands = (world.standing_of(line), *line.band[1:]), _leaves_by_band(world)
    desk = _Desk(world)
    first: list[int] = []
    ahead: list[Block] = []
    for band in sorted(band for band in bands if band <= mine):
        turns = _Band(world, band, bands[band], desk).turns_at(ROOT)
        if band == mine:
            turns = desk.cut(turns, job)
        if len(first) < AHEAD_SHOWN:
            soonest = nsmallest(AHEAD_SHOWN, filter(Turns.has_any, turns), key=Turns.begin)
            few = islice(merge(*map(desk.first, soonest)), AHEAD_SHOWN - len(first))
            first += [number for _, _, _, number in few]
        ahead += chain(*(each.blocks for each in turns))
    return Position(1 + sum(block.width for block in ahead), first, _sum_waiting(world, ahead))


class _Desk:
    """Where blocks are charged and cut; `charged` is what the bands that went before were charged, by node. A job is
    charged for all that waits of it as if it started now, on plain devices."""

    def __init__(self, world: World) -> None:
        self.charged: dict[str, int] = {}
        self._world = world
        self._least_ms = paid_until(world.now) - world.now

    def make_block(self, stretches: list[Stretch]) -> Block:
        """These jobs, charged: nearly all of a line alike."""
        width = charge = 0
        for line, jobs in stretches:
            each = line.shape.size << WEIGHT_BITS
            width += len(jobs)
            charge += each * self._least_ms * len(jobs)
            if line.uneven:
                charge += sum(each * self._extra_ms(job) for job in line.uneven if job in jobs)
        return Block(stretches, width, charge)

    def single_out(self, block: Block) -> list[Block]:
        """The jobs of a block one by one, in order."""
        if block.width == 1:
            return [block]
        lines = block.lines()
        return [self.make_block([(lines[job], [job])]) for job in block.jobs()]

    def first(self, turns: Turns) -> Iterator[tuple[int, str, int, int]]:
        """The first few turns of a child: share, child, place, job."""
        total = turns.totals[0]
        for place, job in enumerate(islice(chain(*(block.jobs() for block in turns.blocks)), AHEAD_SHOWN)):
            yield turns.share(total), turns.child, place, job
            total += self.make_block([(self._world.queue.line_of(self._world.jobs[job]), [job])]).charge

    def cut(self, turns: list[Turns], job: Job) -> list[Turns]:
        """What comes before a job's turn."""
        top = self._world.walk.path(job.spec.tenant)[0][0]
        own = next(each for each in turns if each.child == top)
        at = next(at for at, block in enumerate(own.blocks) if any(job.id in jobs for _, jobs in block.stretches))
        before = self._head_of(own.blocks[at], own.blocks[at].jobs().index(job.id))
        share = own.share(own.totals[at] + before.charge)
        cut = [own._replace(blocks=[*own.blocks[:at], before])]
        return cut + [self._cut_at(each, share, own.child) for each in turns if each is not own]

    def _cut_at(self, turns: Turns, share: int, child: str) -> Turns:
        """Those that come before a turn of another child, which comes at a share: of equal shares the name decides."""
        bound = (share + (turns.child < child)) * turns.weight
        count = bisect_left(turns.totals, bound, hi=len(turns.blocks))
        if not count:
            return turns._replace(blocks=[])
        last, left = turns.blocks[count - 1], bound - turns.totals[count - 1]
        return turns._replace(blocks=[*turns.blocks[: count - 1], self._cut_block(last, left)])

    def _cut_block(self, block: Block, left: int) -> Block:
        """Those that come before a block is charged so much: counted, if all of it are charged alike."""
        if left > block.charge:
            return block
        sizes = {line.shape.size for line, _ in block.stretches}
        if len(sizes) == 1 and not any(line.uneven for line, _ in block.stretches):
            return self._head_of(block, -(-left * block.width // block.charge))
        singles = self.single_out(block)
        totals = list(accumulate((single.charge for single in singles), initial=0))
        return self._head_of(block, bisect_left(totals, left, hi=len(singles)))

    def _head_of(self, block: Block, count: int) -> Block:
        """The first few of a block."""
        if not 0 < count < block.width:
            return block if count else self.make_block([])
        last = block.jobs()[count - 1]
        heads = ((line, [job for job in jobs if job <= last]) for line, jobs in block.stretches)
        return self.make_block([(line, jobs) for line, jobs in heads if jobs])

    def _extra_ms(self, number: int) -> int:
        """For how much longer than others this one is charged."""
        spec = self._world.jobs[number].spec
        if spec.array:
            return self._least_ms * (self._world.arrays[number].counts[TaskPhase.QUEUED] - 1)
        return 0 if spec.limit_ms is None else max(0, spec.limit_ms - self._least_ms)


class _Band:
    """The turns of all who wait in one band."""

    def __init__(self, world: World, band: BandKey, leaves: Leaves, desk: _Desk) -> None:
        self._world = world
        self._since = world.now - world.tiers[band[2]].longest_wait_ms
        self._leaves = leaves
        self._desk = desk
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
        charged = self._desk.charged
        for child, weight in self._children[node].items():
            blocks, before = self._blocks_at(child), charged.get(child, 0)
            start = self._world.walk.total(child) + before
            totals = list(accumulate((block.charge for block in blocks), initial=start))
            charged[child] = before + totals[-1] - start
            found.append(Turns(child, weight, blocks, totals))
        return found

    def _blocks_at(self, node: str) -> list[Block]:
        """All below a node in order: those of several children take turns job by job."""
        tenant = self._tenant_at.get(node)
        if tenant is not None:
            return self._blocks_of(tenant)
        merged: list[tuple[int, str, int, Block]] = []
        for each in self.turns_at(node):
            singles = list(chain(*(self._desk.single_out(block) for block in each.blocks)))
            totals = accumulate((single.charge for single in singles), initial=each.totals[0])
            for place, (single, total) in enumerate(zip(singles, totals, strict=False)):
                merged.append((each.share(total), each.child, place, single))
        return [single for _, _, _, single in sorted(merged)]

    def _blocks_of(self, tenant: str) -> list[Block]:
        ranks: dict[int, list[Stretch]] = {}
        for line in self._leaves[tenant]:
            rank = line.find_rank(self._since)
            if rank is not None:
                ranks.setdefault(rank, []).append((line, line.jobs()))
                continue
            for rank, jobs in line.by_rank(self._since):
                ranks.setdefault(rank, []).append((line, jobs))
        return [self._desk.make_block(stretches) for _, stretches in sorted(ranks.items())]


def _leaves_by_band(world: World) -> dict[BandKey, Leaves]:
    """Everybody's lines, where they stand now and not when they were last tried: whom no line of a quota is about, and
    no budget, stands inside."""
    bands: dict[BandKey, Leaves] = {}
    bound = {name: world.quotas.is_bound(name) for name in world.walk.waiting()}
    for shape in world.queue.shapes.values():
        sites = world.sites.inhabited(shape.ask)
        for line in shape.peek():
            standing, tenant, band = INSIDE, line.tenant, line.band
            if bound[tenant]:
                standing = world.standing_among(sites, line)
            if standing != band[0]:
                band = (standing, *band[1:])
            bands.setdefault(band, {}).setdefault(tenant, []).append(line)
    return bands


def _sum_waiting(world: World, blocks: list[Block]) -> Resources:
    """What all that waits of some jobs asks for. Not checked: nobody holds it, so it may be more than any amount."""
    gpus = cpu = memory = 0
    for line, jobs in chain(*(block.stretches for block in blocks)):
        ask, count = line.shape.ask, line.shape.gang * len(jobs)
        if line.uneven:
            arrays = [world.arrays[job] for job in line.uneven if job in jobs and job in world.arrays]
            count += sum(array.counts[TaskPhase.QUEUED] - 1 for array in arrays)
        gpus, cpu, memory = gpus + ask.gpus * count, cpu + ask.cpu_milli * count, memory + ask.memory_bytes * count
    return Resources(gpus, cpu, memory)
