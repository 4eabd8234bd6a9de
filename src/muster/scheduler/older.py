"""older: the quota as it would be if nobody had come after a claim.

A claim was judged beside those who were there before it, and counts as held from then on: whoever starts later is
judged beside it. So when it is served it is judged again beside the same ones, and not beside those who came later and
may borrow what it was promised; nor beside what elastic gangs have beyond their least, however old they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from muster.model.job import Job
from muster.model.phase import ACTIVE, Lease
from muster.units import Resources
from muster.world.claiming import charge_claim
from muster.world.runs import GONE, JOB, ROW, STATE, TICKET
from muster.world.widths import leases_of, split_leases
from muster.world.world import World


@contextlib.contextmanager
def only_older(world: World, ticket: int) -> Iterator[None]:
    """As if nobody held or claimed anything by a later ticket, or more than its least."""
    held: dict[tuple[str, int, Resources], int] = {}
    for job, leases in _find_later(world, ticket):
        for site, ask, tasks in world.sites.share(job.spec, leases):
            alike = (job.spec.tenant, site.number, ask)
            held[alike] = held.get(alike, 0) + tasks
    claims = [(number, claim.after(ticket)) for number, claim in world.claims.items()]
    _charge(world, held, claims, -1)
    try:
        yield
    finally:
        _charge(world, held, claims, 1)


def _charge(
    world: World, held: dict[tuple[str, int, Resources], int], claims: list[tuple[int, list[Lease]]], sign: int
) -> None:
    for (tenant, site, ask), tasks in held.items():
        world.ledger.charge(tenant, world.sites.all[site], ask, sign * tasks)
    for number, leases in claims:
        charge_claim(world, number, sign, leases)


def _find_later(world: World, ticket: int) -> Iterator[tuple[Job, list[Lease]]]:
    """Whoever holds places by a later ticket, and what others have beyond their least."""
    runs = world.know_runs()
    rows, at = runs.rows(), (runs.used - 1) * ROW
    found: dict[int, None] = {}
    while at >= 0 and rows[at + TICKET] > ticket:
        if rows[at + STATE] != GONE:
            found[int(rows[at + JOB])] = None
        at -= ROW
    for number in found:
        job = world.jobs[number]
        if isinstance(job.phase, ACTIVE):
            yield job, list(job.phase.run.places)
    for number in world.widths.wide:
        if number not in found:
            job = world.jobs[number]
            yield job, split_leases(leases_of(job), job.spec.gang, job.spec.ask)[1]
    for number in runs.arrays:
        tasks = world.arrays[number]
        leases = [Lease(tasks.slot[task], 1) for task, mine in enumerate(tasks.ticket) if mine > ticket]
        if leases:
            yield world.jobs[number], leases
