"""hazard: how likely a job ends next, having run for so long, from how long others like it ran.

Run times are cut into bins that grow by half octaves. Of each class of jobs it counts how many entered a bin and how
many ended there: those that still run count as far as they got, so long ones are not forgotten. A job's own hazard goes
from its coarsest class to its finest, each correcting the one before by as much as it has seen; then come its
neighbours, those of its rows that were submitted right before and after it, for people submit sweeps; and of rows too
the finer one corrects the coarser. Before any data the tail is heavy: whoever has run long will run long.

It sees submits, starts, stops, ends and time. A run time is known when it is over and not before. Of one that was cut
short, by its limit say, it is known that it is longer.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
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

BINS: Final = 44
EDGES_MS: Final = (0, *(round(20 * SECOND_MS * 2 ** (step / 2)) for step in range(BINS)))
"""Where bins begin; the last one ends nowhere, for all that matters."""
WIDTHS: Final = np.array([EDGES_MS[at + 1] - EDGES_MS[at] for at in range(BINS)], dtype=np.float64)
SHRINK: Final = 10.0
"""How many jobs of a class weigh as much as all that is known of the coarser one."""
MEMORY: Final = 100.0
"""About so many jobs of a class are remembered in each bin: what people run changes."""
SPREAD: Final = 0.5
"""How much of an end counts in the bins beside its own: nobody runs as long as before to the second."""
PRIOR: Final = 0.16
"""The hazard of a bin before any data: a heavy tail."""
REACH: Final = 10
HALF_LIFE: Final = 2.0
"""Of jobs that were submitted one after another, this many apart say half as much of each other."""
APART_MS: Final = 30 * MINUTE_MS
"""So long between two submits halves what one says of the other; twice as long leaves a third, and so on."""
NEAR_SHRINK: Final = 0.25
"""How much of a neighbour in the finest row weighs as much as all that is known otherwise."""
ROW_SHRINK: Final = 1.0
"""The same for a coarser row."""


@compiled
def _hazards(found: Floats, ended: Floats, entered: Floats, chain: Ints) -> int:
    """The hazard of each bin, by the classes."""
    for k in range(len(found)):
        hazard = PRIOR
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
def _weigh(near: Floats, levels: Ints, submits: Ints, first: int, here: int, end: int) -> int:
    """Fill `near` from the neighbours: a level is the bin that a job is in, or minus one minus the bin it ended in."""
    near[:, :] = 0.0
    for at in range(first, end):
        if at == here:
            continue
        apart = abs(submits[at] - submits[here]) / APART_MS
        weight = 2.0 ** (-(abs(at - here) - 1) / HALF_LIFE) / (1.0 + apart)
        level = levels[at]
        entered = level if level >= 0 else -level
        for k in range(entered):
            near[0, k] += weight
        if level < 0:
            near[1, -level - 1] += weight
    return 0


class _Row:
    """Jobs that are as like as can be, in the order in which they came: the level of each, and its submit."""

    __slots__ = ("count", "jobs", "levels", "submits")

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self.levels: Ints = np.zeros(16, dtype=np.int64)
        self.submits: Ints = np.zeros(16, dtype=np.int64)
        self.count = 0

    def add(self, job: int, at: int) -> int:
        """Somebody came; its place."""
        if self.count == len(self.levels):
            self.levels = np.concatenate((self.levels, np.zeros_like(self.levels)))
            self.submits = np.concatenate((self.submits, np.zeros_like(self.submits)))
        self.jobs.append(job)
        self.submits[self.count] = at
        self.count += 1
        return self.count - 1

    def around(self, place: int) -> tuple[int, int]:
        """The places that are near one."""
        return max(0, place - REACH), min(self.count, place + REACH + 1)


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
            row.levels[place] = level


class Hazards:
    """All that was learned. `stirred` are live jobs of which something changed since somebody cleared it."""

    def __init__(self) -> None:
        self.stirred: dict[int, None] = {}
        self._classes: dict[Hashable, int] = {}
        self._ends: dict[int, int] = {}
        self._entered: Floats = np.zeros((64, BINS))
        self._ended: Floats = np.zeros((64, BINS))
        self._rows: dict[Hashable, _Row] = {}
        self._live: dict[int, _Life] = {}
        self._crossings: list[tuple[int, int, int]] = []
        self._near: Floats = np.zeros((2, BINS))
        self._found: Floats = np.zeros(BINS)

    def accept(self, job: int, classes: Sequence[Hashable], at: int, rows: int = 1) -> None:
        """A job came, of these classes: the coarsest first; so many of the last ones are its rows."""
        chain = np.array([self._class(key) for key in classes], dtype=np.int64)
        found = [self._rows.setdefault(key, _Row()) for key in classes[-rows:]]
        self._live[job] = _Life(chain, [(row, row.add(job, at)) for row in found])
        self.stirred[job] = None

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
                if not is_cut:
                    self._note_end(row, life.level)
                self._ends[int(row)] = self._ends.get(int(row), 0) + 1
            if not is_cut:
                life.note(-life.level - 1)
            self._stir(life)
        del self._live[job]

    def settle(self, now: int) -> None:
        """Whoever passed the end of its bin by now did not end in it."""
        while self._crossings and self._crossings[0][0] <= now:
            _, job, level = heappop(self._crossings)
            life = self._live.get(job)
            if life is None or life.began < 0 or life.level != level or level + 1 >= BINS:
                continue
            for row in life.chain:
                self._note(row, level, 1.0, 0.0)
            life.level += 1
            life.note(life.level)
            self._stir(life)
            self._expect(job, life)

    def served_ms(self, job: int, at: int) -> int:
        """How long a job was up; 0 if it is over or unknown."""
        life = self._live.get(job)
        if life is None:
            return 0
        return life.served + (at - life.began if life.began >= 0 else 0)

    def live(self) -> Iterable[int]:
        """Who is not over."""
        return self._live

    def cost_ms(self, job: int) -> float:
        """What a completion of a live job costs at least, in time from here on."""
        return float(_cost(self._hazards_of(self._live[job]), self._live[job].level, WIDTHS))

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
        hazards, level, alive = self._hazards_of(life), life.level, 1.0
        found: list[float] = []
        for part in parts:
            while level < BINS - 1 and alive * (1.0 - hazards[level]) > 1.0 - part:
                alive *= 1.0 - hazards[level]
                level += 1
            inside = float((alive - (1.0 - part)) / max(alive * hazards[level], 1e-12))
            found.append(float(EDGES_MS[level] + min(1.0, max(0.0, inside)) * WIDTHS[level]))
        return found

    def counts(self, job: int) -> list[int]:
        """How many jobs have ended of each class of a live job, from the coarsest to the finest."""
        return [self._ends.get(int(row), 0) for row in self._live[job].chain]

    def _hazards_of(self, life: _Life) -> Floats:
        _hazards(self._found, self._ended, self._entered, life.chain)
        for row, place in life.rows:
            first, end = row.around(place)
            _weigh(self._near, row.levels, row.submits, first, place, end)
            _correct(self._found, self._near, NEAR_SHRINK if row is life.rows[-1][0] else ROW_SHRINK)
        return self._found

    def _note_end(self, row: int, level: int) -> None:
        """One of a class ended in a bin; a part of it in those beside, as it would have done another time."""
        beside = SPREAD / 2 if level + 1 < BINS else 0.0
        self._note(row, level, 1.0 - SPREAD / 2, 1.0 - SPREAD / 2 - beside)
        if level:
            self._ended[row, level - 1] += SPREAD / 2
        if beside:
            self._note(row, level + 1, beside, beside)

    def _note(self, row: int, level: int, entered: float, ended: float) -> None:
        """So much of a job entered a bin, and ended in it; what was seen before fades with it."""
        fades = 1.0 - entered / MEMORY
        self._entered[row, level] = self._entered[row, level] * fades + entered
        self._ended[row, level] = self._ended[row, level] * fades + ended

    def _expect(self, job: int, life: _Life) -> None:
        heappush(self._crossings, (life.began + EDGES_MS[life.level + 1] - life.served, job, life.level))

    def _stir(self, life: _Life) -> None:
        """The nearest neighbours of a job, and itself, stand elsewhere now; those of coarser rows may wait for that."""
        row, place = life.rows[-1]
        first, end = row.around(place)
        for job in row.jobs[first:end]:
            if job in self._live:
                self.stirred[job] = None

    def _class(self, key: Hashable) -> int:
        row = self._classes.setdefault(key, len(self._classes))
        if row == len(self._entered):
            self._entered = np.concatenate((self._entered, np.zeros_like(self._entered)))
            self._ended = np.concatenate((self._ended, np.zeros_like(self._ended)))
        return row
