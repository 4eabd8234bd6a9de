"""The queue: who waits, sorted so that a cycle costs what changed and not what exists.

Jobs that are equal in ask, gang size, needs and whether they may be evicted have one *shape*; within it each tenant has
a *line* per tier, by priority, due time and id. The lines of a shape stand in *bands*: those inside their guarantee,
those that would borrow and those that are over their quota, each by tier. A shape that did not fit sleeps until
something it could use comes free; a line that could not start inside its guarantee stands *outside* it, until it may
stand better. Sleeping and standing outside are memories of failed tries, true until woken, so forgetting them (as a
restore does) costs a try and changes no decision. A shape that fits but would delay somebody who is due is *shadowed*:
time alone may change that, so it is worth a try in every cycle, and there is one in every batch. The queue knows no
limits, no nodes and no shares: callers say what woke whom, and choose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from muster.model.errors import InvariantError
from muster.model.group import least_of
from muster.model.job import Job
from muster.model.spec import Needs, Spec
from muster.model.tier import Tier
from muster.units import AMOUNT_MAX, Resources
from muster.world.fleet import FreeVector
from muster.world.floors import Floors, takes_part
from muster.world.line import BandKey, Leaf, Line, undated_of
from muster.world.promises import due_of
from muster.world.quota import Standing
from muster.world.usage import amount_of
from muster.world.walk import Walk

ShapeKey: TypeAlias = tuple[Resources, int, Needs, bool]
INSIDE: Final = int(Standing.INSIDE)  # plain ints: enum members are slow to compare
BORROWING: Final = int(Standing.BORROWING)
OVER: Final = int(Standing.OVER)


def key_of(spec: Spec) -> ShapeKey:
    """What decides with whom a job has one shape."""
    needs = spec.needs
    if needs.groups:
        return *spec.whole, needs, spec.evictable
    return spec.ask, spec.gang + spec.spares, needs, spec.evictable  # its places: asked for as often as somebody moves


class Band:
    """The lines of a shape with one standing and tier, by tenant; `nodes` counts them under each node of the tree, if
    there are others than tenants right below the root. `met` is every node on the way from the root to a line."""

    __slots__ = ("lines", "met", "nodes")

    def __init__(self, *, is_flat: bool) -> None:
        self.lines: dict[str, Line] = {}
        self.nodes: dict[str, int] = {}
        self.met: Collection[str] = self.lines if is_flat else self.nodes

    def add(self, line: Line, walk: Walk) -> None:
        """A line stands here."""
        self.lines[line.tenant] = line
        if not walk.is_flat:
            for node, _ in walk.path(line.tenant):
                self.nodes[node] = self.nodes.get(node, 0) + 1

    def remove(self, line: Line, walk: Walk) -> None:
        """A line stands here no longer."""
        del self.lines[line.tenant]
        for node, _ in () if walk.is_flat else walk.path(line.tenant):
            left = self.nodes[node] - 1
            if left:
                self.nodes[node] = left
            else:
                del self.nodes[node]


class Shape:
    """All lines that are equal for placement and quota, by (tenant, tier), and the same by how they stand.

    `did_not_fit` is true from a try that failed until it is woken. What failed once can only fit if a task of it goes
    to a slot where something came free since: so one that `tries_freed` was woken for those that the queue knows, and
    any other may fit anywhere. A gang that failed may be `short` of room for so many tasks at least, and sleeps until
    that much came free. No task of it asks for less than `least`. A gang of several groups is one of all that they ask
    for together.

    A fork has the same lines as the original, which are `_kept` as they are then; each has its own as soon as it asks
    for them. So a fork costs what it looks at, and may be used in another thread.
    """

    __slots__ = (
        "_bands",
        "_kept",
        "_lines",
        "ask",
        "did_not_fit",
        "evictable",
        "gang",
        "key",
        "least",
        "needs",
        "short",
        "size",
        "tries_freed",
        "undated",
    )

    def __init__(self, key: ShapeKey) -> None:
        self.key = key
        self.ask, self.gang, self.needs, self.evictable = key
        self.least, self.size, self.undated = _measure(self.ask, self.gang, self.needs)
        self.did_not_fit = False
        self.tries_freed = False
        self.short = 0
        self._lines: dict[tuple[str, str], Line] = {}
        self._bands: dict[BandKey, Band] = {}
        self._kept: tuple[Mapping[tuple[str, str], Line], Mapping[BandKey, Band]] | None = None

    @property
    def lines(self) -> dict[tuple[str, str], Line]:
        """Its own lines, by tenant and tier."""
        if self._kept is not None:
            self._unshare(*self._kept)
        return self._lines

    @property
    def bands(self) -> dict[BandKey, Band]:
        """The same by how they stand."""
        if self._kept is not None:
            self._unshare(*self._kept)
        return self._bands

    def peek(self) -> Collection[Line]:
        """Its lines for whoever only reads: they may be those of a fork too."""
        return (self._lines if self._kept is None else self._kept[0]).values()

    def stand(self, line: Line, walk: Walk) -> None:
        """Put a line into its band."""
        bands = self.bands
        band = bands.get(line.band)
        if band is None:
            band = bands[line.band] = Band(is_flat=walk.is_flat)
        band.add(line, walk)

    def leave(self, line: Line, walk: Walk) -> None:
        """Take a line out of its band."""
        bands = self.bands
        band = bands[line.band]
        if len(band.lines) == 1:
            del bands[line.band]
        else:
            band.remove(line, walk)

    def fork(self) -> Shape:
        """An independent copy."""
        twin = Shape(self.key)
        twin.did_not_fit, twin.tries_freed, twin.short = self.did_not_fit, self.tries_freed, self.short
        if self._kept is None:
            self._kept = self._lines, self._bands
        twin._kept = self._kept
        return twin

    def regrow(self, walk: Walk) -> None:
        """Its lines stand in another tree."""
        lines, self._bands = self.lines, {}
        for line in lines.values():
            self.stand(line, walk)

    def _unshare(self, lines: Mapping[tuple[str, str], Line], bands: Mapping[BandKey, Band]) -> None:
        """Have lines of its own from now on, that are like some others."""
        self._lines = {name: line.fork(self) for name, line in lines.items()}
        self._bands = {}
        for key, band in bands.items():
            other = self._bands[key] = Band(is_flat=not band.nodes)
            other.lines.update((tenant, self._lines[(tenant, key[2])]) for tenant in band.lines)
            other.nodes.update(band.nodes)
        self._kept = None


@lru_cache(maxsize=4096)
def _measure(ask: Resources, gang: int, needs: Needs) -> tuple[Resources, int, int]:
    """The least that a task asks for, the size of all together, and where such a job stands that has no due time. A
    shape goes with its last job and comes with the next, so the answer is kept."""
    size = amount_of(ask, gang)
    return least_of(needs.groups) if needs.groups else ask, size, undated_of(size)


class Queue:
    """Every shape that somebody waits with, which of them are worth a try, and which lines stand outside. Nobody is due
    before `due_at`. On `floors` is who waits in tiers that are shared in time. `freed` are the slots on which something
    came free since nobody was awake, and `_by_least` the shapes by what a task of them needs there. `_leaves` are the
    lines of each tenant in each band, whatever their shape: kept from the first question on, as most forks are never
    asked."""

    __slots__ = (
        "_by_least",
        "_count",
        "_leaves",
        "_walk",
        "awake",
        "due_at",
        "floors",
        "freed",
        "outside",
        "shadowed",
        "shapes",
    )

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self.shapes: dict[ShapeKey, Shape] = {}
        self.awake: dict[Shape, None] = {}
        self.shadowed: dict[Shape, None] = {}
        self.freed: dict[int, None] = {}
        self._by_least: dict[Resources, dict[Shape, None]] = {}
        self.due_at = AMOUNT_MAX
        self.floors = Floors()
        self.outside: dict[str, dict[tuple[ShapeKey, str], Shape]] = {}
        self._leaves: dict[BandKey, dict[str, Leaf]] | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: Job, tier: Tier) -> None:
        """A job waits, in this tier. Its shape wakes for a new line, unless it is known not to fit."""
        spec = job.spec
        key = key_of(spec)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self._open(Shape(key))
        lines, name = shape.lines, (spec.tenant, spec.tier)
        line, due_at = lines.get(name), spec.due_at if tier.promise is None else due_of(job, tier)
        if line is None:
            line = lines[name] = Line(spec.tenant, (INSIDE, tier.rank, spec.tier), shape)
            line.add(job, due_at)
            self._stand(line)
            self._walk.join(spec.tenant)
            if not shape.did_not_fit:
                self.awake[shape] = None
        else:
            line.add(job, due_at)
        self._count += 1
        if tier.sharing is not None and takes_part(spec):
            self.floors.add(job, tier.sharing)
        latest = job.accepted_at + tier.longest_wait_ms
        if latest < self.due_at:
            self.due_at = latest

    def remove(self, job: Job) -> None:
        """A job waits no longer."""
        line = self.find_line(job)
        if line is None:
            raise _not_waiting(job)
        self.leave(line, job)

    def leave(self, line: Line, job: Job) -> None:
        """The same for whoever has its line at hand."""
        line.remove(job.id)
        self._count -= 1
        if self.floors.waits:
            self.floors.remove(job)
        if not line.heap:
            self._close(line)

    def line_of(self, job: Job) -> Line:
        """The line that a job waits in, which does."""
        line = self.find_line(job)
        if line is None:
            raise _not_waiting(job)
        return line

    def find_line(self, job: Job) -> Line | None:
        """The line that a job waits in, if it does: what it asks for says where to look."""
        spec = job.spec
        shape = self.shapes.get(key_of(spec))
        line = None if shape is None else shape.lines.get((spec.tenant, spec.tier))
        return line if line is not None and job.id in line.jobs() else None

    def leaves(self, band: BandKey) -> Mapping[str, Leaf]:
        """The lines of each tenant in a band, in order."""
        if self._leaves is None:
            self._leaves = {}
            for shape in self.shapes.values():
                for line in shape.lines.values():
                    self._join_leaf(self._leaves, line)
        return self._leaves.get(band, {})

    def sleep(self, shape: Shape, short: int = 0) -> None:
        """A shape did not fit: it sleeps until something that it could use comes free, or as much as it is short of."""
        shape.did_not_fit, shape.short = True, short
        del self.awake[shape]

    def wake(self, shape: Shape) -> None:
        """A shape is worth a try, wherever."""
        shape.did_not_fit = shape.tries_freed = False
        shape.short = 0
        self.awake[shape] = None

    def shade(self, shape: Shape) -> None:
        """A shape fits and yet may not start: it is tried again in every cycle."""
        shape.tries_freed = False
        self.shadowed[shape] = None

    def wake_shaded(self) -> None:
        """A cycle begins."""
        self.awake |= self.shadowed
        self.shadowed.clear()

    def sleep_all(self) -> None:
        """Nobody who is worth a try may start: they sleep until somebody stands better."""
        for shape in self.awake:
            shape.tries_freed = False
        self.awake.clear()

    def restand(self, line: Line, standing: int) -> None:
        """How a line stands to its quota has changed."""
        band, key = line.band, (line.shape.key, line.band[2])
        self._move(line, (int(standing), band[1], band[2]))
        if standing == INSIDE:
            self._forget_outside(line)
        else:
            self.outside.setdefault(line.tenant, {})[key] = line.shape

    def rerank(self, name: str, tier: Tier, jobs: Mapping[int, Job]) -> None:
        """A tier is another one now: who is due in it is not known."""
        self.due_at = 0
        waiting: list[int] = []
        for shape in self.shapes.values():
            for line in [line for line in shape.lines.values() if line.band[2] == name]:
                self._move(line, (line.band[0], tier.rank, name))
                if tier.promise is not None or line.dated:
                    line.date({number: due_of(jobs[number], tier) for number in line.jobs()}, jobs)
                waiting += line.jobs()
        self.floors.reset(name, tier.sharing, jobs.values(), waiting)

    def wake_for_room(self, slot: int, free: FreeVector) -> None:
        """A node has this free now: wake the shapes that a task of fits in it."""
        gpus, cpu, memory = free
        if not self.awake:
            self.freed.clear()
        self.freed[slot] = None
        for ask, shapes in self._by_least.items():
            if ask.gpus > gpus or ask.cpu_milli > cpu or ask.memory_bytes > memory:
                continue
            for shape in shapes:
                if shape.short:
                    shape.short -= gpus // ask.gpus
                    if shape.short <= 0:
                        self.wake(shape)
                elif shape.did_not_fit:
                    shape.did_not_fit, shape.tries_freed = False, True
                    self.awake[shape] = None

    def wake_all(self) -> None:
        """The fleet changed: every shape is worth a try."""
        for shape in self.shapes.values():
            self.wake(shape)

    def wake_company(self) -> None:
        """Somebody came or went whom others mind: they are worth a try, wherever."""
        for shape in self.shapes.values():
            if shape.needs.has_company:
                self.wake(shape)

    def regrow(self) -> None:
        """The tree of tenants is another one."""
        self._walk.reset()
        for shape in self.shapes.values():
            shape.regrow(self._walk)

    def wake_for_quota(self, tenant: str, standing_of: Callable[[Line], int]) -> None:
        """A tenant may hold more now: let those of its lines that stand better than they did stand so."""
        for line in [shape.lines[(tenant, tier)] for (_, tier), shape in self.outside.get(tenant, {}).items()]:
            standing = standing_of(line)
            if standing < line.band[0]:
                self.restand(line, standing)
                if not line.shape.did_not_fit:
                    self.awake[line.shape] = None

    def waiting(self) -> list[int]:
        """Every job that waits, by id."""
        return sorted(job for shape in self.shapes.values() for line in shape.peek() for job in line.jobs())

    def fork(self, walk: Walk) -> Queue:
        """An independent copy, that tells another walk who waits."""
        twin = Queue(walk)
        for shape in self.shapes.values():
            twin._open(shape.fork())
        twin.awake = {twin.shapes[shape.key]: None for shape in self.awake}
        twin.shadowed = {twin.shapes[shape.key]: None for shape in self.shadowed}
        twin.freed, twin.due_at, twin.floors = self.freed.copy(), self.due_at, self.floors.fork()
        for tenant, lines in self.outside.items():
            twin.outside[tenant] = {key: twin.shapes[key[0]] for key in lines}
        twin._count = self._count
        self._leaves = None  # each has lines of its own from now on
        walk.follow(self._walk)
        return twin

    def _open(self, shape: Shape) -> Shape:
        """The first one waits with a shape."""
        self.shapes[shape.key] = shape
        self._by_least.setdefault(shape.least, {})[shape] = None
        return shape

    def _forget_least(self, shape: Shape) -> None:
        alike = self._by_least[shape.least]
        del alike[shape]
        if not alike:
            del self._by_least[shape.least]

    def _close(self, line: Line) -> None:
        """The last one has left a line."""
        shape = line.shape
        lines = shape.lines
        if self.outside:
            self._forget_outside(line)
        self._unstand(line)
        self._walk.leave(line.tenant)
        del lines[(line.tenant, line.band[2])]
        if not lines:
            del self.shapes[shape.key]
            self._forget_least(shape)
            self.awake.pop(shape, None)
            self.shadowed.pop(shape, None)

    def _move(self, line: Line, band: BandKey) -> None:
        self._unstand(line)
        line.band = band
        self._stand(line)

    def _stand(self, line: Line) -> None:
        """Put a line that somebody waits in into its band and leaf."""
        line.shape.stand(line, self._walk)
        if self._leaves is not None:
            self._join_leaf(self._leaves, line)

    def _unstand(self, line: Line) -> None:
        """Take a line out of them."""
        line.shape.leave(line, self._walk)
        if self._leaves is not None:
            here = self._leaves[line.band]
            leaf = here[line.tenant]
            line.quit(leaf)
            if not leaf.lines:
                del here[line.tenant]

    def _join_leaf(self, leaves: dict[BandKey, dict[str, Leaf]], line: Line) -> None:
        here = leaves.setdefault(line.band, {})
        leaf = here.get(line.tenant)
        if leaf is None:
            leaf = here[line.tenant] = Leaf()
        line.join(leaf)

    def _forget_outside(self, line: Line) -> None:
        lines = self.outside.get(line.tenant)
        if lines is not None:
            lines.pop((line.shape.key, line.band[2]), None)
            if not lines:
                del self.outside[line.tenant]


def _not_waiting(job: Job) -> InvariantError:
    return InvariantError("the queue is everybody who waits", f"job {job.id} does not")
