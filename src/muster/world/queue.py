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

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from heapq import heappop, heappush
from typing import Final, TypeAlias

from muster.model.errors import InvariantError
from muster.model.group import least_of
from muster.model.job import Job
from muster.model.spec import Needs, Spec
from muster.model.tier import PRIORITY_MAX, Tier
from muster.units import AMOUNT_MAX, Limit, Resources
from muster.world.fleet import FreeVector
from muster.world.floors import Floors, takes_part
from muster.world.promises import due_of
from muster.world.quota import Standing
from muster.world.usage import amount_of
from muster.world.walk import Walk

ShapeKey: TypeAlias = tuple[Resources, int, Needs, bool]
BandKey: TypeAlias = tuple[int, int, str]
"""Standing, rank and name of the tier: the lower one goes first."""
LeafKey: TypeAlias = int
"""Where a job stands among its tenant's: priority from the highest down, due time (of who has none: the last), size and
id, in one integer, since those are quick to sort. Of whoever is due, due time and size are nothing."""

INSIDE: Final = int(Standing.INSIDE)  # plain ints: enum members are slow to compare
BORROWING: Final = int(Standing.BORROWING)
OVER: Final = int(Standing.OVER)
_ID_BITS: Final = 50
_ID_MASK: Final = (1 << _ID_BITS) - 1
_SIZE_BITS: Final = 96
_DUE_BITS: Final = 48
_RANK_BITS: Final = _DUE_BITS + _SIZE_BITS
_NO_DUE: Final = (1 << _DUE_BITS) - 1
BEHIND_ALL: Final[LeafKey] = 2 * PRIORITY_MAX + 1 << _RANK_BITS + _ID_BITS
_BEFORE_ALL: Final = -1
"""An instant at which nobody was accepted yet, so nobody is due."""
FREED_MAX: Final = 4
"""How many slots a shape remembers that something came free on: with more, a search is cheaper than a look at each."""
_SLACK: Final = 64
"""How many places of those who left a line keeps, at least, before it clears them away."""


def key_of(spec: Spec) -> ShapeKey:
    """What decides with whom a job has one shape."""
    needs = spec.needs
    if needs.groups:
        return *spec.whole, needs, spec.evictable
    return spec.ask, spec.gang + spec.spares, needs, spec.evictable  # its places: asked for as often as somebody moves


def job_of(key: LeafKey) -> int:
    """The job that stands there."""
    return key & _ID_MASK


class Line:
    """The waiting jobs of one tenant, tier and shape: in `heap` they stand as if nobody were due or had a due time, so
    its top is the oldest of the first priority, and never one who has left. Ids rise with time, so it is due before
    the others are. It is the head, unless it is not due and another of its priority has an earlier due time: those who
    have one are in `dated` too, by it. Nobody was accepted before `oldest`. A fork shares what it has with the original
    until one of them changes. `uneven` are those who would be charged unlike the others. `_rank` is where all stand who
    ever joined, as if nobody were due, or None if they stand apart."""

    __slots__ = (
        "_accepted", "_due_at", "_is_shared", "_rank", "band", "dated", "heap", "oldest", "shape", "tenant", "uneven",
    )  # fmt: skip

    def __init__(self, tenant: str, band: BandKey, shape: Shape) -> None:
        self.tenant = tenant
        self.band = band
        self.shape = shape
        self.heap: list[int] = []
        self.oldest = AMOUNT_MAX
        self._accepted: dict[int, int] = {}
        self.uneven: dict[int, None] = {}
        self.dated: list[int] = []
        self._due_at: dict[int, int] = {}
        self._is_shared = False
        self._rank: int | None = None

    def __len__(self) -> int:
        return len(self._accepted)

    def add(self, job: Job, due_at: Limit) -> None:
        """Join, at the place that priority and id give; and by when it is due, if by any time."""
        if self._is_shared:
            self._unshare()
        spec = job.spec
        if spec.limit_ms is not None or spec.array:
            self.uneven[job.id] = None
        self._accepted[job.id] = job.accepted_at
        if job.accepted_at < self.oldest:
            self.oldest = job.accepted_at
        heap, rank = self.heap, (PRIORITY_MAX - spec.priority) << _RANK_BITS | self.shape.undated
        self._rank = rank if self._rank == rank or not heap else None
        heappush(heap, rank << _ID_BITS | job.id)
        if due_at is not None:
            self._due_at[job.id] = due_at
            heappush(self.dated, ((PRIORITY_MAX - spec.priority) << _DUE_BITS | due_at) << _ID_BITS | job.id)
        if self.dated or heap[0] < self.shape.soonest:
            self._note_head()

    def remove(self, job: int) -> None:
        """Leave, from wherever in the line."""
        if self._is_shared:
            self._unshare()
        accepted, heap = self._accepted, self.heap
        del accepted[job]
        if self.uneven:
            self.uneven.pop(job, None)
        if self.dated:
            self._undate(job)
        while heap and heap[0] & _ID_MASK not in accepted:
            heappop(heap)
        if len(heap) > 2 * len(accepted) + _SLACK:
            self.heap = self._places()

    def head(self) -> int:
        """The first job of the line."""
        return self.heap[0] & _ID_MASK

    def head_accepted_at(self) -> int:
        """When the head was accepted."""
        return self._accepted[self.heap[0] & _ID_MASK]

    def find_oldest(self) -> int:
        """When the one was accepted who waits longest, looked up."""
        self.oldest = min(self._accepted.values())
        return self.oldest

    def first(self, since: int) -> LeafKey:
        """Where the head stands among its tenant's jobs: who was accepted by `since` is due."""
        if self.dated or self.oldest <= since:
            return self._key(self._soonest(since) if self.dated else self.heap[0], since)
        return self.heap[0]

    def find_rank(self, since: int) -> int | None:
        """Where everybody stands among their tenant's jobs, if it is known that nobody is due and all have one rank."""
        return None if self.dated or self.oldest <= since else self._rank

    def by_rank(self, since: int) -> Iterable[tuple[int, Collection[int]]]:
        """Everybody, by where they stand among their tenant's jobs; those of one rank go by their numbers."""
        ranks: dict[int, list[int]] = {}
        for place in self._places():
            key = self._key(place, since)
            ranks.setdefault(key >> _ID_BITS, []).append(key & _ID_MASK)
        return ranks.items()

    def first_keys(self, since: int, most: int) -> list[LeafKey]:
        """Where the first few stand, in order: the heap is walked down from its top, and stays as it is."""
        if self.dated:
            return sorted(self._key(place, since) for place in self._places())[:most]
        heap, edge = self.heap, [(place, 0) for place in self.heap[:1]]
        found: dict[int, None] = {}
        while edge and len(found) < most:
            place, at = heappop(edge)
            if place & _ID_MASK in self._accepted:
                found[place] = None
            for child in range(2 * at + 1, min(2 * at + 3, len(heap))):
                heappush(edge, (heap[child], child))
        return [self._key(place, since) for place in found]

    def place_of(self, job: Job, since: int) -> LeafKey:
        """Where one of its jobs stands among its tenant's."""
        return self._key(self._place(job), since)

    def jobs(self) -> Collection[int]:
        """Everybody who waits, in no order."""
        return self._accepted

    def ids(self) -> list[int]:
        """Everybody who waits, by priority and id."""
        return [place & _ID_MASK for place in self._places()]

    def fork(self, shape: Shape) -> Line:
        """An independent copy inside `shape`."""
        twin = Line.__new__(Line)  # there may be many thousands, of which few change
        twin.tenant, twin.band, twin.shape = self.tenant, self.band, shape
        twin.heap, twin._accepted, twin.uneven = self.heap, self._accepted, self.uneven
        twin.dated, twin._due_at, twin.oldest, twin._rank = self.dated, self._due_at, self.oldest, self._rank
        twin._is_shared = self._is_shared = True
        return twin

    def _unshare(self) -> None:
        self.heap, self._accepted, self.uneven = self.heap.copy(), self._accepted.copy(), self.uneven.copy()
        self.dated, self._due_at = self.dated.copy(), self._due_at.copy()
        self._is_shared = False

    def _soonest(self, since: int) -> int:
        """The place of the head, if some have due times: the oldest of the first priority, unless it is not due and one
        of that priority has a due time."""
        oldest, soonest = self.heap[0], self.dated[0]
        is_due = self._accepted[oldest & _ID_MASK] <= since
        if is_due or soonest >> _DUE_BITS + _ID_BITS != oldest >> _RANK_BITS + _ID_BITS:
            return oldest
        return oldest >> _ID_BITS << _ID_BITS | soonest & _ID_MASK

    def _undate(self, job: int) -> None:
        """One who may have had a due time has left."""
        if self._due_at.pop(job, None) is None:
            return
        while self.dated and self.dated[0] & _ID_MASK not in self._due_at:
            heappop(self.dated)
        if len(self.dated) > 2 * len(self._due_at) + _SLACK:
            self.dated = sorted({place for place in self.dated if place & _ID_MASK in self._due_at})

    def date(self, due_at: Mapping[int, Limit], jobs: Mapping[int, Job]) -> None:
        """Everybody who waits is due by another time, or by none."""
        if self._is_shared:
            self._unshare()
        self._due_at = {job: at for job, at in due_at.items() if at is not None}
        places = [(PRIORITY_MAX - jobs[job].spec.priority) << _DUE_BITS | at for job, at in self._due_at.items()]
        self.dated = sorted(place << _ID_BITS | job for place, job in zip(places, self._due_at, strict=True))
        self._note_head()

    def _note_head(self) -> None:
        """Somebody else may be the head: the shape knows how soon that one stands."""
        first = self.first(_BEFORE_ALL)
        if first < self.shape.soonest:
            self.shape.soonest = first

    def _place(self, job: Job) -> int:
        """Where a job stands in the heap."""
        return ((PRIORITY_MAX - job.spec.priority) << _RANK_BITS | self.shape.undated) << _ID_BITS | job.id

    def _key(self, place: int, since: int) -> LeafKey:
        job = place & _ID_MASK
        if self._accepted[job] <= since:
            rank = 0
        elif self.dated and job in self._due_at:
            rank = self._due_at[job] << _SIZE_BITS | self.shape.size
        else:
            return place
        return (place >> _ID_BITS + _RANK_BITS << _RANK_BITS | rank) << _ID_BITS | job

    def _places(self) -> list[int]:
        """The places of everybody who waits, in order: the heap may have some twice, and some of those who left."""
        accepted = self._accepted
        if len(self.heap) == len(accepted):
            return sorted(self.heap)
        return [place for place in sorted(dict.fromkeys(self.heap)) if place & _ID_MASK in accepted]


class Band:
    """The lines of a shape with one standing and tier, by tenant; `nodes` counts them under each node of the tree, if
    there are others than tenants right below the root."""

    __slots__ = ("lines", "nodes")

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.nodes: dict[str, int] = {}

    def add(self, line: Line, walk: Walk) -> None:
        """A line stands here."""
        self.lines[line.tenant] = line
        if not walk.is_flat:
            for node, _ in walk.path(line.tenant):
                self.nodes[node] = self.nodes.get(node, 0) + 1

    def met(self) -> Collection[str]:
        """Every node on the way from the root to a line."""
        return self.nodes or self.lines

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
    """All lines that are equal for placement and quota, by (tenant, tier) and by band.

    `did_not_fit` is true from a try that failed until it is woken. What failed once can only fit if a task of it goes
    to a slot where something came free since: those are `freed`, or None if it may fit anywhere. A gang that failed
    may be `short` of room for so many tasks at least, and sleeps until that much came free. No task of it asks for less
    than `least`. A gang of several groups is one of all that they ask for together. While nobody is due, none of its
    jobs stands before `soonest` among its tenant's.

    A fork has the same lines as the original, which are `_kept` as they are then; each has its own as soon as it asks
    for them. So a fork costs what it looks at, and may be used in another thread.
    """

    __slots__ = (
        "_bands", "_kept", "_lines", "ask", "did_not_fit", "evictable", "freed", "gang", "key", "least", "needs",
        "short", "size", "soonest", "undated",
    )  # fmt: skip

    def __init__(self, key: ShapeKey) -> None:
        self.key = key
        self.ask, self.gang, self.needs, self.evictable = key
        self.least, self.size, self.undated = _measure(self.ask, self.gang, self.needs)
        self.soonest: LeafKey = BEHIND_ALL
        self.did_not_fit = False
        self.freed: list[int] | None = None
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
            band = bands[line.band] = Band()
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
        twin.did_not_fit, twin.short, twin.soonest = self.did_not_fit, self.short, self.soonest
        twin.freed = None if self.freed is None else self.freed.copy()
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
            other = self._bands[key] = Band()
            other.lines = {tenant: self._lines[(tenant, key[2])] for tenant in band.lines}
            other.nodes = band.nodes.copy()
        self._kept = None


@lru_cache(maxsize=4096)
def _measure(ask: Resources, gang: int, needs: Needs) -> tuple[Resources, int, int]:
    """The least that a task asks for, the size of all together, and where such a job stands that has no due time. A
    shape goes with its last job and comes with the next, so the answer is kept."""
    size = amount_of(ask, gang)
    return least_of(needs.groups) if needs.groups else ask, size, _NO_DUE << _SIZE_BITS | size


class Queue:
    """Every shape that somebody waits with, which of them are worth a try, and which lines stand outside. Nobody is due
    before `due_at`. On `floors` is who waits in tiers that are shared in time."""

    __slots__ = ("_count", "_walk", "awake", "due_at", "floors", "outside", "shadowed", "shapes")

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self.shapes: dict[ShapeKey, Shape] = {}
        self.awake: dict[Shape, None] = {}
        self.shadowed: dict[Shape, None] = {}
        self.due_at = AMOUNT_MAX
        self.floors = Floors()
        self.outside: dict[str, dict[tuple[ShapeKey, str], Shape]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: Job, tier: Tier) -> None:
        """A job waits, in this tier. Its shape wakes for a new line, unless it is known not to fit."""
        spec = job.spec
        key = key_of(spec)
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.shapes[key] = Shape(key)
        lines, name = shape.lines, (spec.tenant, spec.tier)
        line = lines.get(name)
        if line is None:
            line = lines[name] = Line(spec.tenant, (INSIDE, tier.rank, spec.tier), shape)
            shape.stand(line, self._walk)
            self._walk.join(spec.tenant)
            if not shape.did_not_fit:
                self.awake[shape] = None
        line.add(job, spec.due_at if tier.promise is None else due_of(job, tier))
        self._count += 1
        if tier.sharing is not None and takes_part(spec):
            self.floors.add(job, tier.sharing)
        due_at = job.accepted_at + tier.longest_wait_ms
        if due_at < self.due_at:
            self.due_at = due_at

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
        return line if line is not None and job.id in line._accepted else None

    def sleep(self, shape: Shape, short: int = 0) -> None:
        """A shape did not fit: it sleeps until something that it could use comes free, or as much as it is short of."""
        shape.did_not_fit, shape.short = True, short
        del self.awake[shape]

    def wake(self, shape: Shape) -> None:
        """A shape is worth a try, wherever."""
        shape.did_not_fit, shape.freed, shape.short = False, None, 0
        self.awake[shape] = None

    def shade(self, shape: Shape) -> None:
        """A shape fits and yet may not start: it is tried again in every cycle."""
        shape.freed = None
        self.shadowed[shape] = None

    def wake_shaded(self) -> None:
        """A cycle begins."""
        self.awake |= self.shadowed
        self.shadowed.clear()

    def sleep_all(self) -> None:
        """Nobody who is worth a try may start: they sleep until somebody stands better."""
        for shape in self.awake:
            shape.freed = None
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
        for shape in self.shapes.values():
            ask = shape.least
            if ask.gpus > gpus or ask.cpu_milli > cpu or ask.memory_bytes > memory:
                continue
            if shape.short:
                shape.short -= gpus // ask.gpus
                if shape.short <= 0:
                    self.wake(shape)
            elif shape.did_not_fit:
                shape.did_not_fit, shape.freed = False, [slot]
                self.awake[shape] = None
            elif shape.freed is not None:  # else it may fit anywhere already
                shape.freed = [*shape.freed, slot] if len(shape.freed) < FREED_MAX else None

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
        twin.shapes = {key: shape.fork() for key, shape in self.shapes.items()}
        twin.awake = {twin.shapes[shape.key]: None for shape in self.awake}
        twin.shadowed = {twin.shapes[shape.key]: None for shape in self.shadowed}
        twin.due_at, twin.floors = self.due_at, self.floors.fork()
        for tenant, lines in self.outside.items():
            twin.outside[tenant] = {key: twin.shapes[key[0]] for key in lines}
        twin._count = self._count
        walk.follow(self._walk)
        return twin

    def _close(self, line: Line) -> None:
        """The last one has left a line."""
        shape = line.shape
        lines = shape.lines
        if self.outside:
            self._forget_outside(line)
        shape.leave(line, self._walk)
        self._walk.leave(line.tenant)
        del lines[(line.tenant, line.band[2])]
        if not lines:
            del self.shapes[shape.key]
            self.awake.pop(shape, None)
            self.shadowed.pop(shape, None)

    def _move(self, line: Line, band: BandKey) -> None:
        line.shape.leave(line, self._walk)
        line.band = band
        line.shape.stand(line, self._walk)

    def _forget_outside(self, line: Line) -> None:
        lines = self.outside.get(line.tenant)
        if lines is not None:
            lines.pop((line.shape.key, line.band[2]), None)
            if not lines:
                del self.outside[line.tenant]


def _not_waiting(job: Job) -> InvariantError:
    return InvariantError("the queue is everybody who waits", f"job {job.id} does not")
