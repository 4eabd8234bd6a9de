"""hazard: how likely a job ends next, having run for so long, from how long others like it ran.

Run times are cut into bins that grow with them. Of each class of jobs it counts how many entered a bin and how many
ended there: those that still run count as far as they got, so long ones are not forgotten. A job's own hazard goes from
its coarsest class to its finest, each correcting the one before by as much as it has seen; then come its neighbours,
those of its rows that were submitted right before and after it, for people submit sweeps; and of rows too the finer one
corrects the coarser. Before any data the tail is heavy: whoever has run long will run long.

Of two neighbours the run times differ at no typical scale: about as often by one to two parts of a hundred as by ten to
twenty. So on a fine grid an end is likeliest where a neighbour's was, and falls off with the distance from there.

It sees submits, starts, stops, ends and time. A run time is known when it is over and not before. Of one that was cut
short, by its limit say, it is known that it is longer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from muster.units import MINUTE_MS, SECOND_MS
from muster.world.compiled import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
else:
    Floats = Ints = Any

FIRST_MS: Final = 20 * SECOND_MS
"""Where the first bin ends: shorter runs are all alike."""
OCTAVES: Final = 22
"""So many times that doubled is longer than anything runs, for all that matters."""
STIRS: Final = 2
"""How often in an octave of its run time the neighbours of a job stand elsewhere by it."""
SHRINK: Final = 10.0
"""How many jobs of a class weigh as much as all that is known of the coarser one."""
MEMORY: Final = 100.0
"""About so many jobs of a class are remembered in each bin: what people run changes."""
PRIOR: Final = 0.16
"""The hazard of half an octave before any data: a heavy tail."""
CLOSE: Final = 0.03
"""In octaves: what is nearer to the end of a neighbour than this is not told apart."""
REACH: Final = 10
HALF_LIFE: Final = 2.0
"""Of jobs that were submitted one after another, this many apart say half as much of each other."""
APART_MS: Final = 30 * MINUTE_MS
"""So long between two submits halves what one says of the other; twice as long leaves a third, and so on."""
NEAR_SHRINK: Final = 0.25
"""How much of a neighbour in the finest row weighs as much as all that is known otherwise."""
ROW_SHRINK: Final = 1.0
"""The same for a coarser row."""
ROW_MAX: Final = 1024
"""How many of a row are remembered where memory is bounded; those who came before tell nothing of who comes now."""


class Grid:
    """Bins of run time: one to the first edge, and then so many to an octave. An end counts in the bins around its own
    too, by weights that stand in the order of bins with its own in the middle: `spread` in its classes, for nobody runs
    as long as before, and `near` for its neighbours."""

    def __init__(self, per_octave: int, near: Callable[[float], float] | None = None) -> None:
        self.bins = OCTAVES * per_octave
        self.edges_ms = (0, *(round(FIRST_MS * 2 ** (step / per_octave)) for step in range(self.bins)))
        self.widths: Floats = np.diff(np.array(self.edges_ms, dtype=np.float64))
        self.prior = PRIOR * STIRS / per_octave
        self.stride = per_octave // STIRS
        self.spread = _weights(per_octave, lambda apart: 1.0 - apart)
        self.near = np.ones(1) if near is None else _weights(per_octave, near)


def _weights(per_octave: int, weight: Callable[[float], float]) -> Floats:
    """For each bin that begins within an octave, what it weighs by how far away it is; all together one."""
    found: Floats = np.array([weight(abs(step) / per_octave) for step in range(-per_octave, per_octave + 1)])
    found /= found.sum()
    return found


COARSE: Final = Grid(2)
FINE: Final = Grid(8, lambda apart: 1.0 / (apart + CLOSE))


@compiled
def _hazards(found: Floats, ended: Floats, entered: Floats, chain: Ints, prior: float) -> int:
    """The hazard of each bin, by the classes."""
    for k in range(len(found)):
        hazard = prior
        for at in range(len(chain)):
            row = chain[at]
            hazard = (ended[row, k] + SHRINK * hazard) / (entered[row, k] + SHRINK)
        found[k] = hazard
    return 0


@compiled
def _correct(found: Floats, near: Floats, shrink: float) -> int:
    """Correct hazards by neighbours. `near` has two rows: the weight of those that entered a bin, and of those that
    ended in it."""
    for k in range(len(found)):
        found[k] = (near[1, k] + shrink * found[k]) / (near[0, k] + shrink)
    return 0


@compiled
def _cost(hazards: Floats, level: int, widths: Floats) -> float:
    """What a completion costs at least, from the beginning of a bin on, for the best stretch of time."""
    spent, alive, best = 0.0, 1.0, 1e300
    for k in range(level, len(widths)):
        spent += alive * widths[k] * (1.0 - hazards[k] / 2.0)
        alive *= 1.0 - hazards[k]
        if alive < 1.0 and spent / (1.0 - alive) < best:
            best = spent / (1.0 - alive)
    return best


@compiled
def _weigh(near: Floats, levels: Ints, submits: Ints, first: int, here: int, end: int, weights: Floats) -> int:
    """Fill `near` from the neighbours: a level is the bin that a job is in, or minus one minus the bin it ended in. Of
    an end, each bin around it has its weight."""
    near[:, :] = 0.0
    reach = len(weights) // 2
    for at in range(first, end):
        if at == here:
            continue
        apart = abs(submits[at] - submits[here]) / APART_MS
        left = weight = 2.0 ** (-(abs(at - here) - 1) / HALF_LIFE) / (1.0 + apart)
        level = levels[at]
        for k in range(level if level >= 0 else max(0, -level - 1 - reach)):
            near[0, k] += weight
        for step in range(len(weights) if level < 0 else 0):
            k = -level - 1 - reach + step
            if 0 <= k < near.shape[1]:
                near[0, k] += left
                near[1, k] += weight * weights[step]
            left -= weight * weights[step]
    return 0


@compiled
def _note(entered: Floats, ended: Floats, row: int, k: int, came: float, went: float) -> int:
    """So much of a job entered a bin, and ended in it; what was seen before fades with it."""
    fades = 1.0 - came / MEMORY
    entered[row, k] = entered[row, k] * fades + came
    ended[row, k] = ended[row, k] * fades + went
    return 0


@compiled
def _note_pass(entered: Floats, ended: Floats, chain: Ints, level: int) -> int:
    """One of these classes passed a bin."""
    for at in range(len(chain)):
        _note(entered, ended, chain[at], level, 1.0, 0.0)
    return 0


@compiled
def _note_end(entered: Floats, ended: Floats, chain: Ints, level: int, spread: Floats) -> int:
    """One of these classes ended in a bin; a part of it in those around, as it would have done another time. Those
    before its own it has passed already."""
    reach = len(spread) // 2
    for at in range(len(chain)):
        left = 1.0
        for step in range(len(spread)):
            k = level - reach + step
            if step < reach and k >= 0:
                ended[chain[at], k] += spread[step]
            elif step >= reach and k < entered.shape[1]:
                _note(entered, ended, chain[at], k, left, spread[step])
            left -= spread[step]
    return 0


def warm_up() -> None:
    """Run all that is compiled once, so that nobody waits for the compiler later."""
    hazards = Hazards()
    for job in range(2):
        hazards.accept(job, ((), ("both",)), 0)
        hazards.begin(job, 0, 0)
    hazards.settle(2 * FIRST_MS)
    hazards.end(0, 2 * FIRST_MS)
    hazards.cost_ms(1)


class _Row:
    """Jobs that are as like as can be, in the order in which they came: the level of each, and its submit. The first
    `gone` of them are forgotten."""

    __slots__ = ("count", "gone", "jobs", "levels", "submits")

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self.levels: Ints = np.zeros(16, dtype=np.int64)
        self.submits: Ints = np.zeros(16, dtype=np.int64)
        self.count = self.gone = 0

    def add(self, job: int, at: int) -> int:
        """Somebody came; its place."""
        if self.count == len(self.levels):
            self.levels = np.concatenate((self.levels, np.zeros_like(self.levels)))
            self.submits = np.concatenate((self.submits, np.zeros_like(self.submits)))
        self.jobs.append(job)
        self.levels[self.count], self.submits[self.count] = 0, at
        self.count += 1
        return self.gone + self.count - 1

    def forget(self) -> None:
        """Forget the older half."""
        half = self.count // 2
        del self.jobs[:half]
        for column in (self.levels, self.submits):
            column[: self.count - half] = column[half : self.count].copy()
        self.count, self.gone = self.count - half, self.gone + half

    def around(self, place: int) -> tuple[int, int, int]:
        """Where those stand that are near a place, and itself: from, it, up to; itself below 0 if it is forgotten."""
        here = place - self.gone
        return max(0, here - REACH), here, min(self.count, here + REACH + 1)


class _Life:
    """What is kept of a job that is not over; of its rows, from the coarsest to the finest, with its place in each."""

    __slots__ = ("began", "chain", "level", "rows", "served")

    def __init__(self, chain: Ints, rows: list[tuple[_Row, int]]) -> None:
        self.chain, self.rows = chain, rows
        self.level = self.served = 0
        self.began = -1

    def note(self, level: int) -> None:
        """Let its neighbours see how far it is."""
        for row, place in self.rows:
            if place >= row.gone:
                row.levels[place - row.gone] = level


class Hazards:
    """All that was learned. `stirred` are live jobs of which something changed since somebody cleared it. With a
    `classes_max`, so many classes are remembered and the latest of each row; more, if so many live jobs are of them."""

    def __init__(self, grid: Grid = COARSE, classes_max: int | None = None) -> None:
        self.grid = grid
        self._classes_max = classes_max
        self._free: list[int] = []
        self.stirred: dict[int, None] = {}
        self._classes: dict[Hashable, int] = {}
        self._ends: dict[int, int] = {}
        self._entered: Floats = np.zeros((64, grid.bins))
        self._ended: Floats = np.zeros((64, grid.bins))
        self._rows: dict[Hashable, _Row] = {}
        self._live: dict[int, _Life] = {}
        self._crossings: list[tuple[int, int, int]] = []
        self._near: Floats = np.zeros((2, grid.bins))
        self._found: Floats = np.zeros(grid.bins)

    def accept(self, job: int, classes: Sequence[Hashable], at: int, rows: int = 1) -> int:
        """A job came, of these classes: the coarsest first; so many of the last ones are its rows. Its place in the
        finest."""
        if self._classes_max is not None and len(self._classes) + len(classes) > self._classes_max:
            self._forget()
        chain = np.array([self._class(key) for key in classes], dtype=np.int64)
        found = [self._rows.setdefault(key, _Row()) for key in classes[-rows:]]
        if self._classes_max is not None:
            for row in found:
                if row.count >= ROW_MAX:
                    row.forget()
        life = self._live[job] = _Life(chain, [(row, row.add(job, at)) for row in found])
        self.stirred[job] = None
        return life.rows[-1][1]

    def begin(self, job: int, served_ms: int, at: int) -> None:
        """It is up, and was for so long before."""
        life = self._live.get(job)
        if life is not None and life.began < 0:
            life.served, life.began = served_ms, at
            self._expect(job, life)

    def pause(self, job: int, at: int) -> None:
        """It is up no longer, and not over."""
        life = self._live.get(job)
        if life is not None and life.began >= 0:
            self.settle(at)
            life.served, life.began = life.served + at - life.began, -1

    def end(self, job: int, at: int, *, is_cut: bool = False) -> None:
        """It is over; who never was up tells nothing, and who was cut short tells only how far it got."""
        life = self._live.get(job)
        if life is None:
            return
        self.settle(at)
        if life.began >= 0 or life.served:
            for row in life.chain:
                self._ends[int(row)] = self._ends.get(int(row), 0) + 1
            if not is_cut:
                _note_end(self._entered, self._ended, life.chain, life.level, self.grid.spread)
                life.note(-life.level - 1)
            self._stir(life)
        del self._live[job]
        self.stirred.pop(job, None)

    def settle(self, now: int) -> list[int]:
        """Whoever passed the end of its bin by now did not end in it; who that is."""
        passed: list[int] = []
        while self._crossings and self._crossings[0][0] <= now:
            _, job, level = heappop(self._crossings)
            life = self._live.get(job)
            if life is None or life.began < 0 or life.level != level or level + 1 >= self.grid.bins:
                continue
            _note_pass(self._entered, self._ended, life.chain, level)
            life.level += 1
            life.note(life.level)
            passed.append(job)
            self.stirred[job] = None
            if life.level % self.grid.stride == 0:
                self._stir(life)
            self._expect(job, life)
        return passed

    def live(self) -> Iterable[int]:
        """Who is not over."""
        return self._live

    def reached_ms(self, job: int) -> int:
        """For how long a live job ran at least."""
        return self.grid.edges_ms[self._live[job].level]

    def cost_ms(self, job: int) -> float:
        """What a completion of a live job costs at least, in time from here on."""
        return float(_cost(self._hazards_of(self._live[job]), self._live[job].level, self.grid.widths))

    def over_by(self, job: int) -> Floats:
        """How likely a live job is over when it has run to the edge of each bin, given how far it got."""
        life = self._live[job]
        hazards = self._hazards_of(life).copy()
        hazards[: life.level] = 0.0
        over: Floats = np.concatenate((np.zeros(1), 1.0 - np.cumprod(1.0 - hazards)))
        over[-1] = 1.0
        return over

    def quantiles_ms(self, job: int, parts: Sequence[float]) -> list[float]:
        """How long a live job will have run when it ends: quantiles for parts that rise, given how far it got."""
        life = self._live[job]
        hazards, level, alive, grid = self._hazards_of(life), life.level, 1.0, self.grid
        found: list[float] = []
        for part in parts:
            while level < grid.bins - 1 and alive * (1.0 - hazards[level]) > 1.0 - part:
                alive *= 1.0 - hazards[level]
                level += 1
            inside = float((alive - (1.0 - part)) / max(alive * hazards[level], 1e-12))
            found.append(float(grid.edges_ms[level] + min(1.0, max(0.0, inside)) * grid.widths[level]))
        return found

    def counts(self, job: int) -> list[int]:
        """How many jobs have ended of each class of a live job, from the coarsest to the finest."""
        return [self._ends.get(int(row), 0) for row in self._live[job].chain]

    def _hazards_of(self, life: _Life) -> Floats:
        _hazards(self._found, self._ended, self._entered, life.chain, self.grid.prior)
        for row, place in life.rows:
            first, here, end = row.around(place)
            if here >= 0:
                _weigh(self._near, row.levels, row.submits, first, here, end, self.grid.near)
                _correct(self._found, self._near, NEAR_SHRINK if row is life.rows[-1][0] else ROW_SHRINK)
        return self._found

    def _expect(self, job: int, life: _Life) -> None:
        heappush(self._crossings, (life.began + self.grid.edges_ms[life.level + 1] - life.served, job, life.level))

    def _stir(self, life: _Life) -> None:
        """The nearest neighbours of a job, and itself, stand elsewhere now; those of coarser rows may wait for that."""
        row, place = life.rows[-1]
        first, _, end = row.around(place)
        for job in row.jobs[first : max(first, end)]:
            if job in self._live:
                self.stirred[job] = None

    def _class(self, key: Hashable) -> int:
        row = self._classes.pop(key, None)  # those that were met last stand last
        if row is None:
            row = self._free.pop() if self._free else len(self._classes)
        self._classes[key] = row
        if row == len(self._entered):
            self._entered = np.concatenate((self._entered, np.zeros_like(self._entered)))
            self._ended = np.concatenate((self._ended, np.zeros_like(self._ended)))
        return row

    def _forget(self) -> None:
        """Of the classes that nobody is of who is not over, the half that was met longest ago is forgotten."""
        held = {int(row) for life in self._live.values() for row in life.chain}
        idle = [key for key, row in self._classes.items() if row not in held]
        for key in idle[: (len(idle) + 1) // 2]:
            row = self._classes.pop(key)
            self._entered[row] = self._ended[row] = 0.0
            self._ends.pop(row, None)
            self._rows.pop(key, None)
            self._free.append(row)
