"""The calendar's ends: when leases will be given back at the latest, in the order in which that will be; and when they
probably will be, where somebody foretells it.

A run with a limit has an end from the moment it gets its leases until it gives them back; one without a limit has none.
A run is foretold to end when an adviser says so, or else its owner; once it goes on past that, nobody knows better than
its limit. Like all indexes it follows from the jobs, and a restore derives it anew. It knows jobs and instants: not who
waits for what comes free, and not what was promised to whom.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from muster.model.advice import Advice
from muster.model.errors import InvariantError
from muster.model.job import Job
from muster.model.phase import ACTIVE
from muster.model.spec import Spec
from muster.units import AMOUNT_MAX, Limit

FEW: Final = 8
"""Up to which part of all (an eighth) those who came or left are moved one by one."""


class Ends:
    """The ends of all runs that have one; `_order` is (end, job) in order, as it was when somebody last asked for it:
    of those in it `_known` are still here and `_gone` have left, and who came since are `_fresh`. As long as nobody is
    due, nobody asks. Those that are foretold are `told`, and in order `_told_order`; of these, `yielding` are those who
    yield then. `advised` is for how long an adviser says that jobs run. `spread` are the arrays with a limit whose
    tasks hold places, each of which has an end of its own."""

    __slots__ = ("_fresh", "_gone", "_known", "_order", "_told_order", "advised", "spread", "told", "yielding")

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._order: list[tuple[int, int]] = []
        self._fresh: dict[int, int] = {}
        self._gone: list[tuple[int, int]] = []
        self.told: dict[int, int] = {}
        self.yielding: dict[int, int] = {}
        self._told_order: list[tuple[int, int]] = []
        self.advised: dict[int, int] = {}
        self.spread: dict[int, None] = {}

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Every (end, job), the earliest first."""
        return iter(self._in_order())

    def __len__(self) -> int:
        return len(self._known) + len(self._fresh)

    def add(self, job: int, end: int) -> None:
        """A run will end by then. The inverse of `remove`."""
        self._fresh[job] = end

    def remove(self, job: int) -> None:
        """A run has given its leases back."""
        if self._fresh.pop(job, None) is not None:
            return
        end = self._known.pop(job, None)
        if end is None:
            raise InvariantError("every run with a limit has its end", f"job {job} has none")
        self._gone.append((end, job))

    def find(self, job: int) -> Limit:
        """When a job's run will end, if that is known."""
        return self._fresh.get(job, self._known.get(job))

    def leave(self, job: int, end: Limit) -> None:
        """A run has given its leases back: neither its limit counts any more, if it had one, nor what was foretold."""
        if end is not None:
            self.remove(job)
        if self.told:
            self.forget(job)

    def foretell(self, job: int, spec: Spec, since: int) -> None:
        """A run that has its leases since then will probably end before its limit. The inverse of `forget`."""
        run_ms = foretold_ms(spec, self.advised.get(job))
        if run_ms is not None:
            self.told[job] = since + run_ms
            insort(self._told_order, (since + run_ms, job))
            if spec.yields:
                self.yielding[job] = since + run_ms

    def forget(self, job: int) -> None:
        """A run has given its leases back: what was foretold of it, if anything was, is over."""
        end = self.told.pop(job, None)
        if end is not None:
            del self._told_order[bisect_left(self._told_order, (end, job))]
            self.yielding.pop(job, None)

    def advise(self, advice: Advice | None, jobs: Mapping[int, Job]) -> None:
        """How long jobs run is foretold by this from now on. It costs what is said, not who is there."""
        columns = {} if advice is None else advice.columns
        pairs = zip(columns.get("job", ()), columns.get("run_ms", ()), strict=False)
        before, self.advised = self.advised, {job: run_ms for job, run_ms in pairs if 0 < run_ms < AMOUNT_MAX}
        for number in {**before, **self.advised}:
            job = jobs.get(number)
            if job is not None and isinstance(job.phase, ACTIVE) and before.get(number) != self.advised.get(number):
                self.forget(number)
                self.foretell(number, job.spec, job.phase.run.since)

    def foreseen(self, job: int, now: int, *, for_guest: bool = False) -> Limit:
        """When a run will end, as far as anybody knows now: as it was foretold, if that is still to come, or if it
        yields from then on; but to no guest."""
        end = self.told.get(job, now)
        return end if end > now or (job in self.yielding and not for_guest) else self.find(job)

    def find_told(self, now: int) -> Limit:
        """The first end that is foretold and still to come."""
        first = bisect_right(self._told_order, (now, AMOUNT_MAX))
        return self._told_order[first][0] if first < len(self._told_order) else None

    def upcoming(self, now: int, *, for_guest: bool = False) -> Iterator[tuple[int, int]]:
        """Every (end, job) as it is foreseen now, the earliest first: by one who yields itself, or by another."""
        if not self.told:
            return iter(self)
        yielding = {} if for_guest else self.yielding
        to_come = islice(self._told_order, bisect_right(self._told_order, (now, AMOUNT_MAX)), None)
        late = sorted((end, job) for job, end in yielding.items() if end <= now)
        others = (each for each in self if self.told.get(each[1], now) <= now and each[1] not in yielding)
        return heapq.merge(late, to_come, others)

    def fork(self) -> Ends:
        """An independent copy."""
        twin = Ends()
        twin._order, twin._known = self._in_order().copy(), self._known.copy()
        twin.told, twin._told_order, twin.advised = self.told.copy(), self._told_order.copy(), self.advised
        twin.yielding, twin.spread = self.yielding.copy(), self.spread.copy()
        return twin

    def _in_order(self) -> list[tuple[int, int]]:
        """Every (end, job) in order: those who came or left since somebody last asked are moved one by one if they are
        few, else all are sorted again."""
        fresh, gone, order = self._fresh, self._gone, self._order
        self._known |= fresh
        if FEW * (len(fresh) + len(gone)) > len(order):
            self._order = sorted((end, job) for job, end in self._known.items())
        else:
            for each in gone:
                del order[bisect_left(order, each)]
            for job, end in fresh.items():
                insort(order, (end, job))
        fresh.clear()
        gone.clear()
        return self._order


def foretold_ms(spec: Spec, advised_ms: Limit) -> Limit:
    """For how long a run will have its leases, if anybody foretells that it is less than its limit: whoever yields then
    is taken at its word."""
    run_ms = spec.expect_ms if advised_ms is None or spec.yields else advised_ms
    return run_ms if run_ms is not None and (spec.limit_ms is None or run_ms < spec.limit_ms) else None
