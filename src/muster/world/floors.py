"""Floors: who waits and who runs in tiers that are shared in time, by index. It follows from jobs and advice, and is no
second truth.

A *floor* is what one tenant has in one such tier, sorted by priority, index and id. What an index is follows from the
way of sharing, what the job got so far and what an adviser said of it. It chooses nobody.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from math import isqrt
from typing import Final, NamedTuple, TypeAlias

from muster.model.advice import Advice
from muster.model.job import Job
from muster.model.phase import ACTIVE, Stopping
from muster.model.sharing import ADVISED, ARRIVAL, MILLI, NARROW, REMAINING, SERVICE, Sharing
from muster.model.spec import Spec
from muster.model.tier import EVICTIONS_MAX
from muster.units import AMOUNT_MAX, HOUR_MS, SECOND_MS

Scope: TypeAlias = tuple[str, str]
"""Tier and tenant."""
Standing: TypeAlias = tuple[int, int, int]
"""Priority from the highest down, index, id: the lower one goes first."""

_GRID_MS: Final = 20 * SECOND_MS
_GRID_STEPS: Final = 44
GRID: Final = tuple(isqrt(_GRID_MS * _GRID_MS << step) for step in range(_GRID_STEPS))
"""The edges of attained service, in milliseconds: each half an octave after the one before."""

DECADES: Final = tuple(HOUR_MS * 10**power for power in range(10))
"""A device-hour, ten of them, a hundred and so on, in device-milliseconds."""
_WIDTHS: Final = 1 << 32
"""More than a job can ask for devices."""


class Entry(NamedTuple):
    """Somebody who waits: where it stands, and from when on it is owed."""

    standing: Standing
    owed_at: int


def devices_of(spec: Spec) -> int:
    """How many devices a job asks for in all."""
    return spec.ask.gpus * spec.places


def takes_part(spec: Spec) -> bool:
    """Whether a job can take turns: a gang of whole devices, that does not mind where others are and waits for no
    window."""
    needs = spec.needs
    return spec.ask.gpus > 0 and not spec.array and not (needs.has_company or needs.groups or needs.booking)


def index_of(sharing: Sharing, devices: int, served_ms: int, advised: int | None) -> int:
    """Where a job stands that got so much service; the lower goes first. Who was not spoken of goes last."""
    if sharing.index == ARRIVAL:
        return 0
    if advised is not None:
        if sharing.index == ADVISED:
            return advised
        if sharing.index == REMAINING:
            return max(0, advised - served_ms)
        if sharing.index == SERVICE:
            return devices * max(0, advised - served_ms)
    steps = _steps_of(sharing)
    if steps:
        passed = bisect_right(steps, devices * served_ms)  # in thousands, for whoever runs counts with a part of it
        return passed * _WIDTHS + devices if sharing.index == NARROW else (1 + passed) * MILLI
    step = bisect_right(GRID, served_ms)
    return devices * (GRID[step] if step < _GRID_STEPS else served_ms)


def next_step(sharing: Sharing, devices: int, served_ms: int) -> int | None:
    """The service, in milliseconds, at which attained service counts as more than it does now."""
    steps = _steps_of(sharing)
    if steps:
        step = bisect_right(steps, devices * served_ms)
        return -(-steps[step] // devices) if step < len(steps) else None
    step = bisect_right(GRID, served_ms)
    return GRID[step] if step < _GRID_STEPS else None


def _steps_of(sharing: Sharing) -> tuple[int, ...]:
    return sharing.steps or (DECADES if sharing.index == NARROW else ())


def owed_at(sharing: Sharing, patience_ms: int, accepted_at: int, served_ms: int) -> int:
    """From when on a job that waits is owed a turn, where all have to have some patience."""
    longest = _longest_wait(sharing, patience_ms, served_ms)
    return AMOUNT_MAX if longest == AMOUNT_MAX else accepted_at + served_ms + longest


def owed_until(sharing: Sharing, patience_ms: int, job: Job, since: int) -> int:
    """Until when a job that runs since an instant is owed its turn: until it got more service than its wait is worth,
    by some credit."""
    waited = since - job.accepted_at - job.served_ms
    if waited < _longest_wait(sharing, patience_ms, job.served_ms):
        return 0
    return since + sharing.credit_ms - job.served_ms + waited // max(1, sharing.owed_times)


def _longest_wait(sharing: Sharing, patience_ms: int, served_ms: int) -> int:
    """How long a job may wait in all that got so much service, until it is owed a turn."""
    if sharing.owed_after_ms is None:
        return AMOUNT_MAX
    return max(patience_ms, sharing.owed_after_ms, sharing.owed_times * served_ms)


def kept_index(sharing: Sharing, index: int, evictions: int) -> int:
    """What the index of a job that runs counts as: others have to be better by far, and more so each time."""
    kept = index * sharing.keep_milli // MILLI
    for _ in range(evictions):
        kept = kept * sharing.tire_milli // MILLI
    return kept


class Holder(NamedTuple):
    """Somebody who runs: where it stands at most, how many devices it holds, since when, and until when it is owed its
    turn."""

    standing: Standing
    devices: int
    since: int
    owed_until: int


class Floor:
    """One tenant in one tier. Of those who wait, `order` is sorted, and `owed` by when each is owed; of those who hold
    places, `turns` by standing and `sinces` by when they got them. Where an index changes with time, `turns` stay as
    they were when they began, and whoever wants to know reckons. `leaving` were told to stop; those who
    are `fixed` are not stopped for others: they must not be, or were as often as is counted."""

    __slots__ = ("entries", "fixed", "holders", "leaving", "order", "owed", "patience_ms", "sharing", "sinces", "turns")

    def __init__(self, sharing: Sharing, patience_ms: int) -> None:
        self.sharing = sharing
        self.patience_ms = patience_ms
        self.entries: dict[int, Entry] = {}
        self.order: list[Standing] = []
        self.owed: list[tuple[int, int]] = []
        self.holders: dict[int, Holder] = {}
        self.turns: list[tuple[Standing, int]] = []
        self.sinces: list[tuple[int, int]] = []
        self.leaving: dict[int, None] = {}
        self.fixed: dict[int, None] = {}

    def add(self, job: Job, advised: int | None) -> None:
        """Somebody waits."""
        sharing, spec = self.sharing, job.spec
        index = index_of(sharing, devices_of(spec), job.served_ms, advised)
        owed = owed_at(sharing, self.patience_ms, job.accepted_at, job.served_ms)
        entry = Entry((-spec.priority, index, job.id), owed)
        self.entries[job.id] = entry
        insort(self.order, entry.standing)
        if entry.owed_at < AMOUNT_MAX:
            insort(self.owed, (entry.owed_at, job.id))

    def remove(self, number: int) -> None:
        """It waits no longer."""
        entry = self.entries.pop(number)
        del self.order[bisect_left(self.order, entry.standing)]
        if entry.owed_at < AMOUNT_MAX:
            del self.owed[bisect_left(self.owed, (entry.owed_at, number))]

    def seat(self, job: Job, since: int, advised: int | None) -> None:
        """Somebody holds places."""
        sharing, devices = self.sharing, devices_of(job.spec)
        index = kept_index(sharing, index_of(sharing, devices, job.served_ms, advised), len(job.evicted))
        holder = self.holders[job.id] = Holder(
            (-job.spec.priority, index, job.id),
            devices,
            since,
            owed_until(sharing, self.patience_ms, job, since),
        )
        if not job.spec.evictable or len(job.evicted) >= EVICTIONS_MAX:
            self.fixed[job.id] = None
        insort(self.turns, (holder.standing, devices))
        insort(self.sinces, (since, job.id))

    def unseat(self, number: int) -> None:
        """It holds none any more."""
        holder = self.holders.pop(number)
        del self.turns[bisect_left(self.turns, (holder.standing, holder.devices))]
        del self.sinces[bisect_left(self.sinces, (holder.since, number))]
        self.leaving.pop(number, None)
        self.fixed.pop(number, None)

    def since(self, instant: int) -> list[tuple[int, int]]:
        """Who got places after an instant, and when."""
        return self.sinces[bisect_right(self.sinces, (instant, AMOUNT_MAX)) :]

    def fork(self) -> Floor:
        """An independent copy."""
        twin = Floor(self.sharing, self.patience_ms)
        twin.entries, twin.order, twin.owed = self.entries.copy(), self.order.copy(), self.owed.copy()
        twin.holders, twin.turns, twin.sinces = self.holders.copy(), self.turns.copy(), self.sinces.copy()
        twin.leaving, twin.fixed = self.leaving.copy(), self.fixed.copy()
        return twin


class Floors:
    """All floors, and what was advised of whom. `waits` counts who waits on any; `patience_ms` is what everybody has to
    wait at least before it is owed anything, by what an adviser said."""

    __slots__ = ("advised", "by_scope", "patience_ms", "waits")

    def __init__(self) -> None:
        self.by_scope: dict[Scope, Floor] = {}
        self.advised: dict[int, int] = {}
        self.waits = self.patience_ms = 0

    def add(self, job: Job, sharing: Sharing) -> None:
        """Somebody waits in a tier that is shared."""
        self._floor(job, sharing).add(job, self.find_advised(job.id))
        self.waits += 1

    def remove(self, job: Job) -> None:
        """It waits no longer, if it did in such a tier."""
        floor = self.find(job)
        if floor is not None and job.id in floor.entries:
            floor.remove(job.id)
            self.waits -= 1
            self._close(floor, job)

    def seat(self, job: Job, since: int, sharing: Sharing | None) -> None:
        """Somebody holds places."""
        if sharing is not None and takes_part(job.spec):
            self._floor(job, sharing).seat(job, since, self.find_advised(job.id))

    def unseat(self, job: Job) -> None:
        """It holds none any more, if it did on a floor."""
        floor = self.find(job)
        if floor is not None and job.id in floor.holders:
            floor.unseat(job.id)
            self._close(floor, job)

    def note_stop(self, job: Job) -> None:
        """Somebody was told to stop: it got all the service that it will get now."""
        floor = self.find(job)
        if floor is not None and job.id in floor.holders:
            floor.leaving[job.id] = None
            self._reseat(floor, job)

    def find(self, job: Job) -> Floor | None:
        """The floor that a job is on, if it is on any."""
        return self.by_scope.get((job.spec.tier, job.spec.tenant))

    def find_advised(self, number: int) -> int | None:
        """What an adviser said of a job: None if none says anything, and the last place if it was not spoken of yet."""
        return self.advised.get(number, AMOUNT_MAX) if self.advised else None

    def advise(self, advice: Advice | None, jobs: Mapping[int, Job]) -> None:
        """What was said of jobs is this now: those of whom it is news stand elsewhere."""
        columns = {} if advice is None else advice.columns
        before, after = self.advised, dict(zip(columns.get("job", ()), columns.get("index", ()), strict=False))
        patience_ms = max((0, *columns.get("patience_ms", ())))
        is_all = bool(before) != bool(after) or patience_ms != self.patience_ms
        self.advised, self.patience_ms = after, patience_ms
        for floor in self.by_scope.values():
            floor.patience_ms = patience_ms
            for number in [each for each in floor.entries if is_all or before.get(each) != after.get(each)]:
                floor.remove(number)
                floor.add(jobs[number], self.find_advised(number))
            for number in [each for each in floor.holders if is_all or before.get(each) != after.get(each)]:
                self._reseat(floor, jobs[number])

    def reset(self, tier: str, sharing: Sharing | None, jobs: Iterable[Job], waiting: Iterable[int]) -> None:
        """A tier is shared in another way now, or not at all."""
        for scope in [scope for scope in self.by_scope if scope[0] == tier]:
            self.waits -= len(self.by_scope.pop(scope).entries)
        in_line = frozenset(waiting)
        for job in jobs if sharing is not None else ():
            if job.spec.tier == tier and takes_part(job.spec) and sharing is not None:
                if job.id in in_line:
                    self.add(job, sharing)
                elif isinstance(job.phase, ACTIVE):
                    self.seat(job, job.phase.run.since, sharing)
                    if isinstance(job.phase, Stopping):
                        self.note_stop(job)

    def fork(self) -> Floors:
        """An independent copy."""
        twin = Floors()
        twin.advised, twin.waits, twin.patience_ms = self.advised, self.waits, self.patience_ms
        twin.by_scope = {scope: floor.fork() for scope, floor in self.by_scope.items()}
        return twin

    def _reseat(self, floor: Floor, job: Job) -> None:
        since, is_leaving = floor.holders[job.id].since, job.id in floor.leaving
        floor.unseat(job.id)
        floor.seat(job, since, self.find_advised(job.id))
        if is_leaving:
            floor.leaving[job.id] = None

    def _floor(self, job: Job, sharing: Sharing) -> Floor:
        scope = (job.spec.tier, job.spec.tenant)
        floor = self.by_scope.get(scope)
        if floor is None:
            floor = self.by_scope[scope] = Floor(sharing, self.patience_ms)
        return floor

    def _close(self, floor: Floor, job: Job) -> None:
        if not floor.entries and not floor.holders:
            del self.by_scope[(job.spec.tier, job.spec.tenant)]
