"""The potential of a world: how many run, or have a claim, of every strength; the strongest first.

While nobody comes, ends or fails and no quota changes, it only ever grows, in the order of a dictionary: see
docs/concepts/preemption.md. Elastic gangs count with their least. Told by itself, from who holds what and who borrows;
no plan is asked how it came about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from muster.kernel.kernel import Outcome
from muster.model import fact
from muster.model.event import Event
from muster.model.phase import TaskPhase
from muster.policy.taking import Strength
from muster.scheduler.stage import Stage
from muster.scheduler.taking.extras import Extras
from muster.scheduler.taking.herds import find_staying
from muster.scheduler.taking.rights import strength_of
from muster.simulator.body import Body
from muster.world.laws.law import require
from muster.world.loans import Loans
from muster.world.runs import BACK, FUNDS, GONE, JOB, LEAVING, ROW, STATE
from muster.world.world import World

Potential: TypeAlias = Counter[Strength]


class Census(NamedTuple):
    """Who borrows, as of the moment when all who were told to stop are gone: gangs with the funds that they borrow of;
    of each array how many tasks stay and how many of these borrow, and the same of each claim."""

    gangs: dict[int, int]
    arrays: dict[int, tuple[int, int]]
    claims: dict[int, tuple[int, int]]


def count_loans(world: World, now: int) -> Census:
    """Look at everybody who holds something; elastic gangs with their least."""
    with Stage(world, now) as stage:
        Extras(world, stage, now)  # what elastic gangs have beyond their least is gone while it stands
        runs = world.know_runs()
        loans = Loans(world.quotas, world.ledger, runs, world.sites.all, *stage.spread())
        rows = runs.rows()
        gangs = {
            int(rows[at + JOB]): int(rows[at + FUNDS])
            for at in range(0, runs.used * ROW, ROW)
            if rows[at + STATE] not in (GONE, LEAVING) and not rows[at + BACK]
        }
        borrowed = Counter[int]()
        for number, _, tasks, _ in loans.herds():
            borrowed[number] += tasks
        staying = {number: len(find_staying(world, world.jobs[number], now)) for number in runs.arrays}
        arrays = {number: (count, borrowed[number]) for number, count in staying.items()}
        return Census(gangs, arrays, loans.claims())


def potential_of(world: World, now: int) -> Potential:
    """The potential as of the moment when all who were told to stop are gone."""
    found: Potential = Counter()
    gangs, arrays, claims = count_loans(world, now)
    for number, funds in gangs.items():
        found[strength_of(world, world.jobs[number], borrows=funds != 0)] += 1
    for number, (staying, borrowed) in arrays.items():
        found[strength_of(world, world.jobs[number], borrows=True)] += borrowed
        found[strength_of(world, world.jobs[number], borrows=False)] += staying - borrowed
    for number, (tasks, borrowed) in claims.items():
        job = world.jobs[number]
        if job.spec.array:
            found[strength_of(world, job, borrows=True)] += borrowed
            found[strength_of(world, job, borrows=False)] += tasks - borrowed
        elif number not in gangs:  # else it moves, and takes too long to be gone
            found[strength_of(world, job, borrows=borrowed > 0)] += 1
    return +found


def falls(before: Potential, after: Potential) -> Strength | None:
    """The first strength of which there are fewer than before, and not more of any before it; None if there is none."""
    for each in sorted({*before, *after}):
        if before[each] != after[each]:
            return each if after[each] < before[each] else None
    return None


class Watch:
    """Sees every batch of a body: what is taken, and whether the potential fell though nobody came or ended."""

    def __init__(self, body: Body) -> None:
        self.taken = Counter[int]()
        self._world = body.world
        self._latest: Potential | None = None
        body.observers.append(self.look)

    def look(self, outcome: Outcome, _: Sequence[Event]) -> None:
        """After every batch, and so after every plan."""
        if not outcome.facts:
            return
        self.taken.update(item.job for item in outcome.facts if isinstance(item, fact.Claimed) and item.victims)
        found = potential_of(self._world, outcome.at)
        if self._latest is not None and not any(map(_comes_or_ends, outcome.facts)):
            fewer = falls(self._latest, found)
            evidence = f"at {outcome.at}: fewer of {fewer}\n{self._latest}\n{found}\n{outcome.facts}"
            require(fewer is None, "the potential only grows", evidence)
        self._latest = found


def _comes_or_ends(item: fact.Fact) -> bool:
    if isinstance(item, fact.TasksEnded):
        return item.phase != TaskPhase.QUEUED
    changes = fact.Accepted | fact.Ended | fact.TenantSet | fact.TierSet | fact.NodeJoined | fact.NodeSaid
    return isinstance(item, changes)
