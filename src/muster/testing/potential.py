"""The potential of a world: how many run, or have a claim, of every strength; the strongest first.

While nobody comes, ends or fails and no quota changes, it only ever grows, in the order of a dictionary: see
docs/concepts/preemption.md. Elastic gangs count with their least. Told by itself, from who holds what and who borrows;
no plan is asked how it came about.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeAlias

from muster.model.phase import ACTIVE
from muster.policy.taking import Strength
from muster.scheduler.extras import Extras
from muster.scheduler.herds import find_staying
from muster.scheduler.rights import strength_of
from muster.scheduler.stage import Stage
from muster.world.loans import Loans
from muster.world.runs import BACK, FUNDS, GONE, JOB, LEAVING, ROW, STATE
from muster.world.world import World

Potential: TypeAlias = Counter[Strength]


class Census(NamedTuple):
    """Who borrows, as of the moment when all who were told to stop are gone: gangs and claims with the funds that they
    borrow of, and of each array how many tasks stay and how many of these borrow."""

    gangs: dict[int, int]
    arrays: dict[int, tuple[int, int]]
    claims: dict[int, int]


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
    for number, funds in claims.items():
        job = world.jobs[number]
        if not isinstance(job.phase, ACTIVE):
            found[strength_of(world, job, borrows=funds != 0)] += world.claims[number].width if job.spec.array else 1
    return +found


def falls(before: Potential, after: Potential) -> Strength | None:
    """The first strength of which there are fewer than before, and not more of any before it; None if there is none."""
    for each in sorted({*before, *after}):
        if before[each] != after[each]:
            return each if after[each] < before[each] else None
    return None
