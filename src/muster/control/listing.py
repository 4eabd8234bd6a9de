"""Listing: which jobs there are, by tenant and by whether they are over, kept in step with the fold, so that a page
costs what it shows and not what exists.

It holds numbers only, all of which can be had from the world again. Numbers rise, so a list of them is in order; what
retired is skipped, and swept out when it is as much as what is left.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from muster.control.views import is_over, phase_word, view_job
from muster.model.fact import Accepted, Ended, Fact, Retired
from muster.model.phase import TaskPhase
from muster.ports.store import span_of
from muster.wire.views import JobPage, JobView
from muster.world.world import World

SWEEP_LEAST: Final = 1000
STATES: Final = ("live", "over", "all")
PHASES: Final = tuple(phase.name.lower() for phase in TaskPhase)
ORDERS: Final = ("newest", "oldest")
HOLDING: Final = ("starting", "running", "stopping")
OVER: Final = ("succeeded", "failed", "cancelled")


class Asked(NamedTuple):
    """Which jobs a listing is to show: of a state, a tenant and a phase, from one number on, as many as fit a page,
    and of those only what its reader may see; of those that are over, only since an instant. The newest come first
    unless the oldest are to."""

    state: str = "all"
    tenant: str = ""
    phase: str = ""
    after: int = 0
    limit: int = 100
    sees: Callable[[str], bool] | None = None
    since: int = 0
    newest: bool = True


class Listing:
    """The jobs of one world, by number."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_tenant: dict[str, list[int]] = {}
        self._over: dict[int, None] = {}
        self._gone = 0
        for job in world.jobs.values():
            self._by_tenant.setdefault(job.spec.tenant, []).append(job.id)
            if is_over(job):
                self._over[job.id] = None

    def fold(self, facts: Iterable[Fact]) -> None:
        """Keep in step with what was applied."""
        for fact in facts:
            if isinstance(fact, Accepted):
                self._by_tenant.setdefault(fact.spec.tenant, []).append(fact.job)
            elif isinstance(fact, Ended):
                self._over[fact.job] = None
            elif isinstance(fact, Retired):
                self._retire(fact.jobs)

    def page(self, asked: Asked) -> JobPage:
        """Jobs in the order that is asked for."""
        world = self._world
        rows: list[JobView] = []
        for number in self._candidates(asked):
            job = world.jobs.get(number)
            if job is None or (asked.tenant and job.spec.tenant != asked.tenant):
                continue
            if asked.sees is not None and not asked.sees(job.spec.tenant):
                continue
            if asked.state != "all" and is_over(job) != (asked.state == "over"):
                continue
            if asked.phase and phase_word(world, job) != asked.phase:
                continue
            if asked.since and is_over(job) and job.phase.since < asked.since:
                continue
            if len(rows) == asked.limit:
                return JobPage(rows, next_after=rows[-1].id, seq=world.seq)
            rows.append(view_job(world, job, whole=False))
        return JobPage(rows, seq=world.seq)

    def tenants(self) -> list[str]:
        """Who has jobs here."""
        here = self._world.jobs
        return [tenant for tenant, numbers in self._by_tenant.items() if any(job in here for job in reversed(numbers))]

    def _candidates(self, asked: Asked) -> Iterator[int]:
        """The fewest numbers that are known to hold all that is asked for, in order."""
        if asked.phase in HOLDING:
            return _cut({job for here in self._world.fleet.holders.values() for job in here}, asked)
        if asked.state == "over" or asked.phase in OVER:
            return _cut(self._over, asked)
        tenants = [asked.tenant] if asked.tenant else list(self._by_tenant)
        seen = [tenant for tenant in tenants if asked.sees is None or asked.sees(tenant)]
        return iter(heapq.merge(*(self._walk(tenant, asked) for tenant in seen), reverse=asked.newest))

    def _walk(self, tenant: str, asked: Asked) -> Iterator[int]:
        numbers, (first, last) = self._by_tenant.get(tenant, []), span_of(asked.after, newest=asked.newest)
        places = range(bisect_right(numbers, first), bisect_left(numbers, last))
        return (numbers[place] for place in (reversed(places) if asked.newest else places))

    def _retire(self, jobs: Iterable[int]) -> None:
        for number in jobs:
            self._over.pop(number, None)
            self._gone += 1
        if self._gone > max(SWEEP_LEAST, len(self._world.jobs)):
            self._gone = 0
            kept = {
                tenant: [number for number in numbers if number in self._world.jobs]
                for tenant, numbers in self._by_tenant.items()
            }
            self._by_tenant = {tenant: numbers for tenant, numbers in kept.items() if numbers}


def _cut(numbers: Iterable[int], asked: Asked) -> Iterator[int]:
    first, last = span_of(asked.after, newest=asked.newest)
    return (number for number in sorted(numbers, reverse=asked.newest) if first < number < last)
