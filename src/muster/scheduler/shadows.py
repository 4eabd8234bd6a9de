"""shadows: where those would start who are due and find no room, and who must not delay them.

A job is due when it has waited as long as its tier allows. If its turn comes and it does not fit, it casts a shadow:
the earliest instant at which it would fit if whatever runs ends at its limit, and the places that it would have then.
Those are closed from its turn on to everybody who would still be there at that instant. Who comes before it in the
order is not bound by it, so neither standing, tier nor shares are crossed; who ends by then, or yields by then (see
`muster.scheduler.yielding`), may use them meanwhile.

Nodes that are booked are closed like those of a shadow, but from the beginning and to everybody who would still be
there when they are needed: see `muster.scheduler.booked`.

Shadows are made anew in every cycle, from what the world holds: nothing of them is kept, journaled or promised. An
instant is found by galloping along the ends, each tried by the exact search: more room never makes less fit, so it
costs about twice the answer. Of the places, as few as can be are taken of those that are free now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from types import TracebackType
from typing import Final

from muster.model.group import Part, parts_of
from muster.model.phase import Lease
from muster.model.record import Record
from muster.model.spec import Spec
from muster.scheduler.booked import Rooms
from muster.scheduler.order import Round
from muster.scheduler.placing.fit import Pools, find_gang, find_pools, find_tasks
from muster.scheduler.placing.within import EVERYWHERE, NOWHERE, pools_within
from muster.units import AMOUNT_MAX
from muster.world.line import LeafKey, Line, job_of
from muster.world.outlook import Outlook, Shading, part, whole
from muster.world.queue import OVER, Shape
from muster.world.world import World

HEADS_MAX: Final = 16
"""How many lines of a tier are looked at for a shadow in one cycle, those whose heads are due longest."""
BEHIND_MAX: Final = 64
"""How many jobs of a line are looked at for one that may overtake, or cast the next shadow."""
RECASTS_MAX: Final = 64
"""How often in a cycle places are chosen anew because somebody overtook; after that, some are closed needlessly."""


class Shadow(Record, frozen=True):
    """Where and when a job would start at the latest, if whatever runs ends at its limit."""

    job: int
    at: int
    leases: tuple[Lease, ...]


class _Cast:
    """A shadow in a cycle: its places may be chosen anew, and its shade is open for whoever ends before it."""

    __slots__ = ("at", "is_guest", "job", "leases", "pools", "shading", "shape")

    def __init__(self, job: int, shape: Shape, pools: Pools, at: int, *, is_guest: bool) -> None:
        self.job = job
        self.is_guest = is_guest
        self.shape = shape
        self.pools = pools
        self.at = at
        self.leases: list[Lease] = []
        self.shading: Shading | None = None

    def parts(self) -> Sequence[Part]:
        """Its leases by what a task on them asks for."""
        groups = self.shape.needs.groups
        return parts_of(groups, self.leases) if groups else ((self.shape.ask, self.leases),)


class Shadows:
    """The shadows of one cycle, in the order in which they were cast. `_heads` are the lines that may cast one, by
    shape; `_left` is how many each tier may still cast; `_behind` are the jobs of a line that come after one that was
    refused; `_moved` are lines that stand worse for this cycle, and how they stood. Of the shades, those of `_open` are
    lifted. `_rooms` are the nodes of bookings, `_shortest` the shortest time
    for which anybody of a line would stay that was in shade."""

    def __init__(self, world: World, now: int, turns: Round) -> None:
        self._world = world
        self._now = now
        self._turns = turns
        self._casts: list[_Cast] = []
        self._open: list[_Cast] = []
        self._heads: dict[Shape, dict[Line, None]] = {}
        self._left = {name: tier.shadows for name, tier in world.tiers.items()}
        self._behind: dict[Line, Iterator[LeafKey]] = {}
        self._moved: dict[Line, int] = {}
        self._recasts = RECASTS_MAX
        self._rooms = Rooms(world, now)
        self._shortest: dict[Line, int] = {}

    def __enter__(self) -> Shadows:
        """Let everybody be met who may cast a shadow, or was in one."""
        queue = self._world.queue
        queue.wake_shaded()
        if not are_due(self._world, self._now):
            return self  # only the nodes of bookings are closed
        self._turns.drops_hopeless = False  # who certainly does not fit may still cast a shadow
        for line, standing in find_heads(self._world, self._now):
            if line.band[0] != standing:
                queue.restand(line, standing)
            self._heads.setdefault(line.shape, {})[line] = None
            queue.awake[line.shape] = None
        for shape in self._heads:
            if shape.did_not_fit:
                self._keep_to_heads(shape)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rooms.close()
        self._lift(self._casts)
        for line, standing in self._moved.items():
            if line.heap:
                self._world.queue.restand(line, standing)

    def all(self) -> list[Shadow]:
        """The shadows so far."""
        return [Shadow(cast.job, cast.at, tuple(cast.leases)) for cast in self._casts]

    def open_for(self, job: int) -> None:
        """Open the shades that a job may use since it would be gone in time."""
        self._close()
        spec = self._world.jobs[job].spec
        if spec.leaves_ms is not None and self._casts:
            self._open = [cast for cast in self._casts if self._is_gone_by(spec, cast)]
            self._lift(self._open)
        self._rooms.open_for(spec)

    def _is_gone_by(self, spec: Spec, cast: _Cast) -> bool:
        """Whether a job that starts now leaves by when another would start: no guest gives way to another."""
        leaves_ms = spec.limit_ms if cast.is_guest else spec.leaves_ms
        return leaves_ms is not None and may_overtake(self._now + leaves_ms, cast.at)

    def refuse_room(self, line: Line, job: int) -> None:
        """A job found no room at all: its shape sleeps, but for those of its lines that may cast a shadow."""
        shape = line.shape
        if self._rooms.is_own(shape.needs):
            self._close()
            self._world.queue.sleep(shape)
            return
        if self._is_shaded(line, job):
            return
        if self._is_head(line):
            if self._cast(line, job):
                self._pass_on(line)
            elif self._is_head(line):
                self._restand(line)
        if self._heads.get(shape):
            shape.did_not_fit = True
            self._keep_to_heads(shape)
        else:
            self._world.queue.sleep(shape)

    def refuse_quota(self, line: Line, job: int, pools: Pools) -> None:
        """A job found no room where its quota lets it start: it is asked again as one that stands worse, and only then
        casts a shadow. If there is room in the shade, it stands again as it did when the cycle is over."""
        self._close()
        if self._is_head(line) and line.band[0] + 1 == OVER:
            self._cast(line, job)
        if self._has_shade() and self._fits_in_light(line.shape, pools):
            self._world.queue.shade(line.shape)
            self._moved.setdefault(line, line.band[0])
        self._restand(line)

    def note_start(self, line: Line) -> None:
        """Somebody started: if it was one who overtakes, shadows may now use the place that it will leave."""
        self._rooms.close()
        again, self._open = self._open, []
        for cast in again:
            self._shade(cast)
        if again and self._recasts:
            self._recasts -= 1
            with self._in_light():
                for cast in again:
                    self._choose_again(cast)
        if self._turns.is_passed_by(line):
            self._pass_on(line)

    # -- who is met ------------------------------------------------------------------------------------------------

    def _has_shade(self) -> bool:
        return bool(self._casts or self._rooms)

    def _is_head(self, line: Line) -> bool:
        return line in self._heads.get(line.shape, ())

    def _is_shaded(self, line: Line, job: int) -> bool:
        """Whether only a shadow is in a job's way: then it waits for its sake, and may cast one itself."""
        self._close()
        if line.shape.did_not_fit or not self._has_shade() or not self._fits_in_light(line.shape, EVERYWHERE):
            return False
        self._world.queue.shade(line.shape)
        if self._is_head(line):
            self._cast(line, job)
        spec = self._world.jobs[job].spec
        stays_ms = spec.limit_ms if any(cast.is_guest for cast in self._casts) else spec.leaves_ms
        self._shortest[line] = min(self._shortest.get(line, AMOUNT_MAX), AMOUNT_MAX if stays_ms is None else stays_ms)
        self._pass_on(line)
        return True

    def _restand(self, line: Line) -> None:
        """Ask a line again as one that stands worse."""
        self._world.queue.restand(line, line.band[0] + 1)
        if line.band[0] == OVER:
            self._heads.get(line.shape, {}).pop(line, None)

    def _keep_to_heads(self, shape: Shape) -> None:
        heads = self._heads[shape]
        for line in shape.lines.values():
            if line not in heads:
                self._turns.pass_by(line)

    def _pass_on(self, line: Line) -> None:
        """Meet a line that was refused at the next job that may end in time, or cast a shadow itself."""
        if line not in self._behind:
            self._behind[line] = iter(line.first_keys(self._since(line), BEHIND_MAX)[1:])
        is_shaded = line.shape in self._world.queue.shadowed
        latest = max(self._rooms.latest, *(cast.at for cast in self._casts), self._now) if is_shaded else self._now
        worth = (key for key in self._behind[line] if self._may_try(line, job_of(key), latest))
        self._turns.pass_by(line, next(worth, None))

    def _may_try(self, line: Line, job: int, latest: int) -> bool:
        leaves_ms = self._world.jobs[job].spec.leaves_ms
        shortest = self._shortest.get(line, AMOUNT_MAX)
        if leaves_ms is not None and leaves_ms < shortest and may_overtake(self._now + leaves_ms, latest):
            return True
        return self._is_head(line) and self._is_due(line, job)

    def _is_due(self, line: Line, job: int) -> bool:
        return self._world.jobs[job].accepted_at <= self._since(line)

    def _since(self, line: Line) -> int:
        return self._now - self._world.tiers[line.band[2]].longest_wait_ms

    # -- casting ---------------------------------------------------------------------------------------------------

    def _cast(self, line: Line, job: int) -> bool:
        """Cast a shadow for a job, if it is due and its tier has any left; False if there is none for it. Its line
        stays a head only as long as it may cast another, or may where it stands worse."""
        shape, tier = line.shape, line.band[2]
        pools = pools_within(self._world, line.tenant, shape, line.band[0])
        can_cast = self._is_due(line, job) and self._left[tier]
        cast = self._find(job, shape, pools) if can_cast and pools != NOWHERE else None
        if cast is None:
            if not can_cast or pools is EVERYWHERE:
                del self._heads[shape][line]
            return False
        self._casts.append(cast)
        self._shade(cast)
        self._left[tier] -= 1
        if not self._left[tier]:
            self._drop_heads(tier)
        return True

    def _drop_heads(self, tier: str) -> None:
        """A tier has cast all its shadows: who waits in it and does not fit need not be met."""
        for shape, heads in self._heads.items():
            for line in [line for line in heads if line.band[2] == tier]:
                del heads[line]
                if shape.did_not_fit:
                    self._turns.pass_by(line)

    def _find(self, job: int, shape: Shape, pools: Pools) -> _Cast | None:
        is_guest = self._world.jobs[job].spec.yields
        with self._in_light(), self._look_ahead(shape, pools, is_guest) as outlook:
            count = find_first(outlook, lambda passed: self._fits_after(outlook, passed, shape, pools))
            if count is None:
                return None
            cast = _Cast(job, shape, pools, outlook.instants[count - 1], is_guest=is_guest)
            self._choose(cast, outlook, count)
            return cast

    def _fits_after(self, outlook: Outlook, passed: int, shape: Shape, pools: Pools) -> bool:
        outlook.go(passed)
        with self._held():
            return find_gang(self._world.fleet, shape.ask, shape.gang, shape.needs, pools) is not None

    def _choose_again(self, cast: _Cast) -> None:
        with self._look_ahead(cast.shape, cast.pools, cast.is_guest) as outlook:
            self._choose(cast, outlook, outlook.look_until(cast.at))

    def _choose(self, cast: _Cast, outlook: Outlook, count: int) -> None:
        """The places after so many ends: as few as can be of those that have room now."""
        fleet, shape, pools = self._world.fleet, cast.shape, cast.pools
        outlook.go(0)
        with self._held(cast):
            now = find_tasks(fleet, shape.ask, shape.gang, shape.needs, pools)
        slots = list(dict.fromkeys(lease.slot for lease in now))
        outlook.go(count)

        def find(used: int) -> list[Lease] | None:
            with self._held(cast), Shading(fleet, whole(fleet, slots[used:])):
                return find_gang(fleet, shape.ask, shape.gang, shape.needs, pools)

        least, most = 0, len(slots)
        while least < most:
            middle = (least + most) // 2
            least, most = (least, middle) if find(middle) is not None else (middle + 1, most)
        leases = find(most)
        if leases is not None:
            cast.leases = leases
            cast.shading = Shading(fleet, part(cast.parts(), outlook.freed))

    # -- shade and light -------------------------------------------------------------------------------------------

    def _shade(self, cast: _Cast) -> None:
        if cast.shading is not None:
            cast.shading.__enter__()

    def _lift(self, casts: Iterable[_Cast]) -> None:
        for cast in casts:
            if cast.shading is not None:
                cast.shading.__exit__(None, None, None)

    def _close(self) -> None:
        for cast in self._open:
            self._shade(cast)
        self._open = []
        self._rooms.close()

    @contextmanager
    def _in_light(self) -> Iterator[None]:
        """Without any shade."""
        self._lift(self._casts)
        try:
            yield
        finally:
            for cast in self._casts:
                self._shade(cast)

    @contextmanager
    def _held(self, besides: _Cast | None = None) -> Iterator[None]:
        """As if all other shadows had their places."""
        with ExitStack() as stack:
            for cast in self._casts:
                if cast is not besides:
                    stack.enter_context(Shading(self._world.fleet, part(cast.parts(), {})))
            yield

    def _fits_in_light(self, shape: Shape, pools: Pools) -> bool:
        if pools == NOWHERE:
            return False
        with self._in_light(), self._rooms.opened():
            return find_gang(self._world.fleet, shape.ask, shape.gang, shape.needs, pools) is not None

    def _look_ahead(self, shape: Shape, pools: Pools, is_guest: bool) -> Outlook:
        usable = find_pools(self._world.fleet, shape.ask, shape.needs)
        return Outlook(self._world, self._now, frozenset(usable if pools is None else pools), for_guest=is_guest)


def may_overtake(end: int, shadow_at: int) -> bool:
    """Whether somebody who ends by then may use the places of a shadow."""
    return end <= shadow_at


def are_due(world: World, now: int) -> bool:
    """Whether anybody may be due, or was kept from starting by somebody who is: a cheap check, once per cycle."""
    return world.queue.due_at <= now or bool(world.queue.shadowed)


def find_heads(world: World, now: int) -> list[tuple[Line, int]]:
    """The lines that may cast a shadow, each with how it stands: of each tier, those whose heads are due, the longest
    first, as far as they are not over their quota. Also finds out when somebody will next be due."""
    due: dict[str, list[tuple[int, int, Line]]] = {}
    next_due = AMOUNT_MAX
    for shape in world.queue.shapes.values():
        for line in shape.lines.values():
            name, wait_ms = line.band[2], world.tiers[line.band[2]].longest_wait_ms
            if line.oldest + wait_ms <= now:
                if (accepted_at := line.head_accepted_at()) + wait_ms <= now:
                    due.setdefault(name, []).append((accepted_at, line.head(), line))
                line.find_oldest()
            next_due = min(next_due, line.oldest + wait_ms)
    world.queue.due_at = next_due
    found: list[tuple[Line, int]] = []
    for name in sorted(due):
        if world.tiers[name].shadows:
            oldest = [line for _, _, line in sorted(due[name], key=lambda each: each[:2])[: 4 * HEADS_MAX]]
            standing = ((line, int(world.standing_of(line))) for line in oldest)
            found += islice((pair for pair in standing if pair[1] != OVER), HEADS_MAX)
    return found


def find_first(outlook: Outlook, fits: Callable[[int], bool]) -> int | None:
    """After how many ends it fits first, which it does not now: in doubling steps, and then between the last two."""
    least, most = 0, 1
    while True:
        there = outlook.look(most)
        if there == least:
            return None
        if fits(there):
            break
        least, most = there, 2 * there
    most = there
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (least, middle) if fits(middle) else (middle, most)
    return most
