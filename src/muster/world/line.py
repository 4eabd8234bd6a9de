"""A line: the waiting jobs of one tenant, in one tier, that are equal in what they ask for. Who of them is first.

Jobs stand by priority, whoever is due, due time, size and id. A line knows neither nodes nor quota; its shape tells it
how much one of its jobs is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, TypeAlias

from muster.model.job import Job
from muster.model.tier import PRIORITY_MAX
from muster.units import AMOUNT_MAX, Limit

if TYPE_CHECKING:  # a shape has lines
    from muster.world.queue import Shape

BandKey: TypeAlias = tuple[int, int, str]
"""Standing, rank and name of the tier: the lower one goes first."""
LeafKey: TypeAlias = int
"""Where a job stands among its tenant's: priority from the highest down, due time (of who has none: the last), size and
id, in one integer, since those are quick to sort. Of whoever is due, due time and size are nothing."""

_ID_BITS: Final = 50
ID_MASK: Final = (1 << _ID_BITS) - 1
"""The part of a place that says whose it is; `job_of` for those who cannot afford the call."""
_SIZE_BITS: Final = 96
_DUE_BITS: Final = 48
_RANK_BITS: Final = _DUE_BITS + _SIZE_BITS
_NO_DUE: Final = (1 << _DUE_BITS) - 1
_BEFORE_ALL: Final = -1
"""An instant at which nobody was accepted yet, so nobody is due."""
_SLACK: Final = 64
"""How many places of those who left a line keeps, at least, before it clears them away."""


def job_of(key: LeafKey) -> int:
    """The job that stands there."""
    return key & ID_MASK


def undated_of(size: int) -> int:
    """Where jobs of a size stand in their priority that are not due and have no due time."""
    return _NO_DUE << _SIZE_BITS | size


class Leaf:
    """The lines of one tenant in one band, in order: `places` are where the head of each stands as long as nobody is
    due. They are apart from the `lines` because numbers alone are found in a third of the time."""

    __slots__ = ("lines", "places")

    def __init__(self) -> None:
        self.places: list[LeafKey] = []
        self.lines: list[Line] = []

    def add(self, line: Line, place: LeafKey) -> None:
        """A line stands here from now on."""
        at = bisect_left(self.places, place)
        self.places.insert(at, place)
        self.lines.insert(at, line)

    def remove(self, place: LeafKey) -> None:
        """The line that stood there is gone."""
        at = bisect_left(self.places, place)
        del self.places[at], self.lines[at]

    def move(self, line: Line, before: LeafKey, place: LeafKey) -> None:
        """A line stands elsewhere from now on: mostly further back, and often behind the same one."""
        places = self.places
        at = bisect_left(places, before)
        if before < place and (at + 1 == len(places) or place < places[at + 1]):
            places[at] = place
        else:
            del places[at], self.lines[at]
            self.add(line, place)


class Line:
    """The waiting jobs of one tenant, tier and shape: in `heap` they stand as if nobody were due or had a due time, so
    its top is the oldest of the first priority, and never one who has left. Ids rise with time, so it is due before
    the others are. It is the head, unless it is not due and another of its priority has an earlier due time: those who
    have one are in `dated` too, by it. Nobody was accepted before `oldest`. A fork shares what it has with the original
    until one of them changes. `uneven` are those who would be charged unlike the others. `_rank` is where all stand who
    ever joined, as if nobody were due, or None if they stand apart. In a leaf, it stands at its `place`."""

    __slots__ = (
        "_accepted",
        "_due_at",
        "_is_shared",
        "_leaf",
        "_rank",
        "band",
        "dated",
        "heap",
        "oldest",
        "place",
        "shape",
        "tenant",
        "uneven",
    )

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
        self._leaf: Leaf | None = None
        self.place: LeafKey = 0

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
        if self.dated or heap[0] != self.place:
            self._keep_place()

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
        if heap[0] & ID_MASK == job:
            heappop(heap)
            while heap and heap[0] & ID_MASK not in accepted:
                heappop(heap)
        elif len(heap) > 2 * len(accepted) + _SLACK:
            self.heap = self._places()
        if heap:
            self._keep_place()

    def join(self, leaf: Leaf) -> None:
        """Stand among those of its tenant that stand in the same band."""
        self._leaf, self.place = leaf, self.first(_BEFORE_ALL)
        leaf.add(self, self.place)

    def quit(self, leaf: Leaf) -> None:
        """Stand among them no longer."""
        leaf.remove(self.place)
        self._leaf = None

    def head(self) -> int:
        """The first job of the line."""
        return self.heap[0] & ID_MASK

    def head_priority(self) -> int:
        """The priority of the first job, which its place says: nobody's record need be looked up."""
        return PRIORITY_MAX - (self.heap[0] >> _ID_BITS + _RANK_BITS)

    def head_accepted_at(self) -> int:
        """When the head was accepted."""
        return self._accepted[self.heap[0] & ID_MASK]

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
            ranks.setdefault(key >> _ID_BITS, []).append(key & ID_MASK)
        return ranks.items()

    def first_keys(self, since: int, most: int) -> list[LeafKey]:
        """Where the first few stand, in order: the heap is walked down from its top, and stays as it is."""
        if self.dated:
            return sorted(self._key(place, since) for place in self._places())[:most]
        heap, edge = self.heap, [(place, 0) for place in self.heap[:1]]
        found: dict[int, None] = {}
        while edge and len(found) < most:
            place, at = heappop(edge)
            if place & ID_MASK in self._accepted:
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
        return [place & ID_MASK for place in self._places()]

    def fork(self, shape: Shape) -> Line:
        """An independent copy inside `shape`."""
        twin = Line.__new__(Line)  # there may be many thousands, of which few change
        twin.tenant, twin.band, twin.shape = self.tenant, self.band, shape
        twin.heap, twin._accepted, twin.uneven = self.heap, self._accepted, self.uneven
        twin.dated, twin._due_at, twin.oldest, twin._rank = self.dated, self._due_at, self.oldest, self._rank
        twin._is_shared = self._is_shared = True
        twin._leaf, twin.place = None, 0
        return twin

    def _unshare(self) -> None:
        self.heap, self._accepted, self.uneven = self.heap.copy(), self._accepted.copy(), self.uneven.copy()
        self.dated, self._due_at = self.dated.copy(), self._due_at.copy()
        self._is_shared = False

    def _soonest(self, since: int) -> int:
        """The place of the head, if some have due times: the oldest of the first priority, unless it is not due and one
        of that priority has a due time."""
        oldest, soonest = self.heap[0], self.dated[0]
        is_due = self._accepted[oldest & ID_MASK] <= since
        if is_due or soonest >> _DUE_BITS + _ID_BITS != oldest >> _RANK_BITS + _ID_BITS:
            return oldest
        return oldest >> _ID_BITS << _ID_BITS | soonest & ID_MASK

    def _undate(self, job: int) -> None:
        """One who may have had a due time has left."""
        if self._due_at.pop(job, None) is None:
            return
        while self.dated and self.dated[0] & ID_MASK not in self._due_at:
            heappop(self.dated)
        if len(self.dated) > 2 * len(self._due_at) + _SLACK:
            self.dated = sorted({place for place in self.dated if place & ID_MASK in self._due_at})

    def date(self, due_at: Mapping[int, Limit], jobs: Mapping[int, Job]) -> None:
        """Everybody who waits is due by another time, or by none."""
        if self._is_shared:
            self._unshare()
        self._due_at = {job: at for job, at in due_at.items() if at is not None}
        places = [(PRIORITY_MAX - jobs[job].spec.priority) << _DUE_BITS | at for job, at in self._due_at.items()]
        self.dated = sorted(place << _ID_BITS | job for place, job in zip(places, self._due_at, strict=True))
        self._keep_place()

    def _keep_place(self) -> None:
        """Stand in the leaf where the head does, who may be somebody else now."""
        place, leaf = self.first(_BEFORE_ALL) if self.dated else self.heap[0], self._leaf
        if leaf is not None and place != self.place:
            leaf.move(self, self.place, place)
            self.place = place

    def _place(self, job: Job) -> int:
        """Where a job stands in the heap."""
        return ((PRIORITY_MAX - job.spec.priority) << _RANK_BITS | self.shape.undated) << _ID_BITS | job.id

    def _key(self, place: int, since: int) -> LeafKey:
        job = place & ID_MASK
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
        return [place for place in sorted(dict.fromkeys(self.heap)) if place & ID_MASK in accepted]
