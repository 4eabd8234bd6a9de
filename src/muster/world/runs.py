"""Runs: who holds places, as columns, for whoever asks whose place could be taken.

A row per lease of a gang, sorted by how old the run is: the newest last. Rows are what compiled code reads: whose it
is (tenants and kinds, which are tier and priority, by number), where, how much, and since when its work would be lost.
The numbers are this process's own and no decision depends on them. Of arrays it is only known that they hold something:
their tasks are columns already. Rows of one tenant and kind are a *shelf*: each knows the one before it there, so that
whoever asks about a few tenants or kinds looks at their rows alone. It is made when somebody first asks and kept from
then on, so a world in which nobody could take anything from anybody never has one.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, cast

from muster.model.goodput import Mark
from muster.model.job import Job
from muster.model.phase import ACTIVE, Active, Run, Stopping
from muster.model.spec import Spec
from muster.units import Resources
from muster.world.compiled import Words, blank_words, compiled, sort_rows, words_of
from muster.world.sites import Site
from muster.world.tasks import Tasks
from muster.world.usage import amount_of
from muster.world.widths import split_leases

RunClass: TypeAlias = tuple[str, str, int]
"""Tenant, tier, priority."""
Kind: TypeAlias = tuple[str, int]
"""Tier, priority."""
Shelf: TypeAlias = tuple[int, int, int]
"""The numbers of a tenant, of a kind, and of the shelf for both."""
NewGang: TypeAlias = tuple[int, int, Spec, Shelf, Run, Sequence[Site], int]
"""Ticket and job, which tell all apart; what it asks for, its shelf, its run, the sites by slot, and since when its
work would be lost."""

(
    TICKET,  # which of all tickets of places it was
    JOB,
    TENANT,
    KIND,
    SLOT,
    SITE,
    MILLI,  # of devices, on this node
    CPU,
    MEMORY,
    WORTH,  # what a millisecond of the whole run is worth
    SAVED,  # since when its work would be lost
    STATE,
    FUNDS,  # a bit for each fund that the run borrows of: whoever looks writes it
    BACK,  # how many rows before this one its run begins
    TASKS,
    SHELF,
    BEFORE,  # where the row before it on its shelf begins; NO_ROW if it is the first
) = range(17)
ROW: Final = 17
NO_ROW: Final = -1
HERD: Final = SAVED
"""In a row of what an array holds: which herd it is of."""
GONE, STAYS, FIXED, LEAVING = range(4)
"""States: the row is nobody's; its run may be taken, may not be evicted, was told to stop."""
_SLACK: Final = 64


class Numbers:
    """Names as numbers, in the order in which they were first met."""

    __slots__ = ("names", "of")

    def __init__(self) -> None:
        self.names: list[object] = []
        self.of: dict[object, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def fork(self) -> Numbers:
        """An independent copy."""
        twin = Numbers()
        twin.names, twin.of = self.names.copy(), self.of.copy()
        return twin

    def number(self, name: object) -> int:
        """The number of a name."""
        found = self.of.get(name)
        if found is None:
            found = self.of[name] = len(self.names)
            self.names.append(name)
        return found


class Runs:
    """Jobs that hold something, gangs and arrays alike. `leaving` are the gangs that were told to stop, `flapping`
    the jobs that took places more than once and are not over. `ends` is where the last row of each shelf begins. For
    whoever looks, there are `codes`: answers that hold for the kinds and tiers that they are asked about; `sheets`,
    which are blank; and in the first `lent_from` rows nobody wrote that somebody borrows. `_counts` are how many jobs
    of each shelf hold something; of `_new` gangs no rows are written yet."""

    __slots__ = (
        "_counts",
        "_dead",
        "_new",
        "_place",
        "_shelves",
        "_table",
        "arrays",
        "codes",
        "ends",
        "flapping",
        "kinds",
        "leaving",
        "lent_from",
        "sheets",
        "tenants",
        "used",
    )

    def __init__(self) -> None:
        self.arrays: dict[int, None] = {}
        self.leaving: dict[int, None] = {}
        self.flapping: dict[int, None] = {}
        self.tenants = Numbers()
        self.kinds = Numbers()
        self._shelves: dict[RunClass, Shelf] = {}
        self._counts: list[int] = []
        self.ends = array("q")
        self.codes: dict[object, array[int]] = {}
        self.sheets: list[Words] = []
        self.used = self.lent_from = 0
        self._table = array("q")
        self._place: dict[int, int] = {}
        self._new: dict[int, NewGang] = {}
        self._dead = 0

    def add_gang(self, job: Job, run: Run, by_slot: Sequence[Site], saved: int) -> None:
        """A gang holds leases, and would lose what it did since `saved`. What it has beyond its least part has no
        rows: see `muster.world.widths`; its spares have, for they go with it. They are written when somebody looks:
        many are gone before that."""
        self._new[job.id] = (run.ticket, job.id, job.spec, self._join(job), run, by_slot, saved)

    def add_array(self, job: Job) -> None:
        """Tasks of an array hold something."""
        if job.id not in self.arrays:
            self.arrays[job.id] = None
            self._join(job)

    def leave(self, job: int) -> None:
        """A gang was told to stop."""
        self.leaving[job] = None
        self.write(job, STATE, LEAVING)

    def save(self, job: int, at: int) -> None:
        """What a gang did up to now would not be lost."""
        self.write(job, SAVED, at)

    def remove(self, job: Job) -> None:
        """A job holds nothing any more."""
        number = job.id
        new = self._new.pop(number, None)
        if new is not None:
            self._counts[new[3][2]] -= 1
        elif number in self.arrays:
            del self.arrays[number]
            self.count(class_of(job), -1)
        else:
            self._dead += self.write(number, STATE, GONE)
            self._counts[self._table[self._place.pop(number) + SHELF]] -= 1
        if self.leaving:
            self.leaving.pop(number, None)

    def has_any(self) -> bool:
        """Whether anybody holds something."""
        return bool(self._place or self._new or self.arrays)

    def has_class(self, key: RunClass) -> bool:
        """Whether anybody of a tenant, tier and priority does."""
        shelf = self._shelves.get(key)
        return shelf is not None and self._counts[shelf[2]] > 0

    def count(self, key: RunClass, more: int) -> None:
        """So many more of a class that was met before hold something."""
        self._counts[self._shelves[key][2]] += more

    def counts(self) -> dict[RunClass, int]:
        """How many there are of each tenant, tier and priority."""
        return {key: self._counts[shelf] for key, (_, _, shelf) in self._shelves.items() if self._counts[shelf]}

    def all(self) -> list[int]:
        """Every job that holds something, by number."""
        return sorted((*self._place, *self._new, *self.arrays))

    def gangs_of(self, tiers: Container[str]) -> list[int]:
        """The gangs of some tiers, by number."""
        rows, kinds = self.rows(), cast("list[Kind]", self.kinds.names)
        wanted, found = array("q", [kind[0] in tiers for kind in kinds]), blank_words(len(self._place))
        count = pick_kinds(rows, self.used, words_of(wanted), found) if self._place else 0
        return sorted(found[:count].tolist())

    def rows(self) -> Words:
        """The table, the newest run last; the first `used` rows of it count."""
        if self._new:
            self._settle()
        return words_of(self._table)

    def content(self) -> dict[int, list[tuple[object, ...]]]:
        """All rows by their place, with names for numbers: whatever is kept here follows from the jobs."""
        table, found = self.rows().tolist(), dict[int, list[tuple[object, ...]]]()
        for at in range(0, self.used * ROW, ROW):
            row = table[at : at + ROW]
            if row[STATE] != GONE:
                names = (self.tenants.names[row[TENANT]], self.kinds.names[row[KIND]])
                found.setdefault(row[JOB], []).append((*names, *row[:TENANT], *row[SLOT:FUNDS], *row[BACK:SHELF]))
        return found

    def fork(self) -> Runs:
        """An independent copy; answers that others looked up are not in it."""
        self.rows()
        twin = Runs()
        twin.arrays, twin.leaving, twin.flapping = self.arrays.copy(), self.leaving.copy(), self.flapping.copy()
        twin.tenants, twin.kinds, twin._shelves = self.tenants.fork(), self.kinds.fork(), self._shelves.copy()
        twin.ends, twin._counts = self.ends[:], self._counts.copy()
        twin.used, twin._dead, twin._place = self.used, self._dead, self._place.copy()
        twin.lent_from, twin._table = self.lent_from, self._table[:]
        return twin

    def write(self, job: int, field: int, value: int) -> int:
        """Write one word of all rows of a run; how many there are."""
        if job in self._new:
            self._settle()
        rows, place = self._table, self._place[job]
        end = place
        while end < len(rows) and rows[end + JOB] == job and (rows[end + BACK] or end == place):
            rows[end + field] = value
            end += ROW
        return (end - place) // ROW

    def _join(self, job: Job) -> Shelf:
        """One more of a class holds something; the first one opens its shelf."""
        key = class_of(job)
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = self.tenants.number(key[0]), self.kinds.number(key[1:]), len(self._shelves)
            self._counts.append(0)
        self._counts[shelf[2]] += 1
        return shelf

    def _settle(self) -> None:
        """Put those who came into their places: behind all who were there, but for those that came by a claim."""
        gangs = sorted(self._new.values())
        flat = array("q", _rows_of(gangs))
        self._new.clear()
        table, end = self._table, self.used * ROW
        first, cut = gangs[0][0], end
        while cut and table[cut - ROW + TICKET] >= first:
            cut -= ROW
        if len(self._counts) > len(self.ends):
            self.ends = self.ends + array("q", (NO_ROW,)) * (len(self._counts) - len(self.ends))
        take_down(words_of(table), cut, end, words_of(self.ends))
        self.lent_from = min(self.lent_from, cut // ROW)
        if cut < end:
            kept = close_ranks(words_of(table), cut, end)
            self._dead -= (end - kept) // ROW
            flat = sort_rows(table[cut:kept] + flat, ROW, (TICKET, JOB))
        if 4 * self._dead > self.used + _SLACK:
            cut = self._compact(cut)
        self._append(cut, flat)

    def _append(self, at: int, flat: array[int]) -> None:
        """Write rows from a word on, and nothing behind them; what others look at is never resized."""
        end = at + len(flat)
        more = end - len(self._table)
        if more > 0:
            self._table = self._table + array("q", bytes(8 * (more + len(self._table))))
        self._table[at:end] = flat
        self.used = end // ROW
        put_up(words_of(self._table), at, end, words_of(self.ends))
        self._find_places(at, end)

    def _compact(self, end: int) -> int:
        """Move the rows that are somebody's together; where they end."""
        table = self._table
        to = close_ranks(words_of(table), 0, end)
        self.ends = array("q", (NO_ROW,)) * len(self.ends)
        put_up(words_of(table), 0, to, words_of(self.ends))
        self._find_places(0, to)
        self._dead = self.lent_from = 0
        return to

    def _find_places(self, begin: int, end: int) -> None:
        """Note where the first row of everybody in a part of the table is: going backwards, it is the last to be
        met."""
        jobs = self._table[begin + JOB : end : ROW]
        jobs.reverse()
        self._place.update(zip(jobs, range(end - ROW, begin - ROW, -ROW), strict=True))


def amounts_of(ask: Resources, tasks: int) -> tuple[int, int, int]:
    """Thousandths of devices, CPU, memory."""
    return (1000 * ask.gpus + ask.gpu_milli) * tasks, ask.cpu_milli * tasks, ask.memory_bytes * tasks


_worth_of: Final = lru_cache(maxsize=4096)(amount_of)
_measure: Final = lru_cache(maxsize=4096)(amounts_of)
"""Most runs have one of few asks, so the answers are kept."""


def _rows_of(gangs: Iterable[NewGang]) -> list[int]:
    """The rows of gangs, one after the other."""
    flat: list[int] = []
    for ticket, job, spec, (tenant, kind, shelf), run, by_slot, saved in gangs:
        state, back = STAYS if spec.evictable else FIXED, 0
        worth = _worth_of(*((spec.ask, spec.gang) if spec.spares or not spec.needs.groups else spec.whole))
        held = split_leases(run.leases, spec.gang, spec.ask)[0] if spec.gang_most else run.leases
        for ask, leases in spec.parts((*held, *run.spares) if run.spares else held):
            for lease in leases:
                slot, tasks = lease.slot, lease.tasks
                whose = (ticket, job, tenant, kind, slot, by_slot[slot].number)
                flat += (*whose, *_measure(ask, tasks), worth, saved, state, 0, back, tasks, shelf, NO_ROW)
                back += 1
    return flat


@compiled
def close_ranks(rows: Words, begin: int, end: int) -> int:
    """Move the rows between two words that are somebody's together; the word at which they end."""
    to = begin
    for at in range(begin, end, ROW):
        if rows[at + STATE] != GONE:
            if to < at:
                for field in range(ROW):
                    rows[to + field] = rows[at + field]
            to += ROW
    return to


@compiled
def pick_kinds(rows: Words, used: int, wanted: Words, found: Words) -> int:
    """Write the jobs of all rows of kinds that are wanted, each once; how many there are."""
    count = 0
    for at in range(0, used * ROW, ROW):
        if rows[at + STATE] != GONE and not rows[at + BACK] and wanted[rows[at + KIND]]:
            found[count] = rows[at + JOB]
            count += 1
    return count


@compiled
def put_up(rows: Words, begin: int, end: int, ends: Words) -> None:
    """Put rows at the ends of their shelves: all that are there stand before them in the table."""
    for at in range(begin, end, ROW):
        shelf = rows[at + SHELF]
        rows[at + BEFORE], ends[shelf] = ends[shelf], at


@compiled
def take_down(rows: Words, begin: int, end: int, ends: Words) -> None:
    """Take the last rows of the table from their shelves."""
    for at in range(end - ROW, begin - ROW, -ROW):
        ends[rows[at + SHELF]] = rows[at + BEFORE]


def find_runs(
    jobs: Mapping[int, Job], arrays: Mapping[int, Tasks], marks: Mapping[int, Mark], by_slot: Sequence[Site]
) -> Runs:
    """The runs of a world, made anew."""
    runs = Runs()
    for job in jobs.values():
        if len(job.took) > 1:
            runs.flapping[job.id] = None
        if type(job.phase) in ACTIVE:  # most do not hold anything: see `ACTIVE`
            run = cast("Active", job.phase).run
            runs.add_gang(job, run, by_slot, max(run.since, marks.get(job.id, Mark(0)).saved_at))
            if isinstance(job.phase, Stopping):
                runs.leave(job.id)
    for number, tasks in arrays.items():
        if tasks.holding:
            runs.add_array(jobs[number])
    return runs


def class_of(job: Job) -> RunClass:
    """What decides whose place a job may take and who may take its."""
    spec = job.spec
    return spec.tenant, spec.tier, spec.priority
