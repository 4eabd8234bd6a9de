"""older: the quota as it would be if nobody had come after a claim.

A claim was judged beside those who were there before it, and counts as held from then on: whoever starts later is
judged beside it. So when it is served it is judged again beside the same ones, and not beside those who came later and
may borrow what it was promised; nor beside what elastic gangs have beyond their least, however old they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from muster.model.phase import Lease
from muster.units import Resources
from muster.world.claiming import charge_claim
from muster.world.compiled import Words, blank_words, column_of, compiled, words_of
from muster.world.runs import CPU, GONE, MEMORY, MILLI, ROW, SITE, STATE, TENANT, TICKET
from muster.world.widths import leases_of, split_leases
from muster.world.world import World

Held: TypeAlias = tuple[str, int, Resources, int]
"""A tenant, the number of a site, and so many asks there."""


@contextlib.contextmanager
def only_older(world: World, ticket: int) -> Iterator[None]:
    """As if nobody held or claimed anything by a later ticket, or more than its least."""
    held = [*_held_by_gangs(world, ticket), *_held_beyond_least(world), *_held_by_tasks(world, ticket)]
    claims = [(number, leases) for number, claim in world.claims.items() if (leases := claim.after(ticket))]
    _charge(world, held, claims, -1)
    try:
        yield
    finally:
        _charge(world, held, claims, 1)


def _charge(world: World, held: Sequence[Held], claims: Sequence[tuple[int, list[Lease]]], sign: int) -> None:
    for tenant, site, ask, tasks in held:
        world.ledger.charge(tenant, world.sites.all[site], ask, sign * tasks)
    for number, leases in claims:
        charge_claim(world, number, sign, leases)


def _held_by_gangs(world: World, ticket: int) -> Iterator[Held]:
    """What gangs have by a later ticket, elastic ones as if they had their least."""
    runs, sites = world.know_runs(), len(world.sites.all)
    rows, totals = runs.rows(), blank_words(3 * max(1, sites * len(runs.tenants)))
    sum_later(rows, runs.used, ticket, sites, totals)
    flat = totals.tolist()
    for place in range(0, len(flat), 3):
        milli, cpu, memory = flat[place : place + 3]
        if milli or cpu or memory:
            tenant, site = divmod(place // 3, sites)
            yield str(runs.tenants.names[tenant]), site, Resources(0, cpu, memory, milli), 1


def _held_beyond_least(world: World) -> Iterator[Held]:
    """What elastic gangs have beyond their least."""
    for number in world.widths.wide:
        spec = world.jobs[number].spec
        for site, tasks in world.sites.spread(split_leases(leases_of(world.jobs[number]), spec.gang, spec.ask)[1]):
            yield spec.tenant, site.number, spec.ask, tasks


def _held_by_tasks(world: World, ticket: int) -> Iterator[Held]:
    """What tasks of arrays have by a later ticket."""
    by_slot, sites = words_of(world.sites.numbers()), len(world.sites.all)
    for number in world.know_runs().arrays:
        spec, tasks, counts = world.jobs[number].spec, world.arrays[number], blank_words(sites)
        count_later(words_of(tasks.ticket), column_of(tasks.slot), by_slot, ticket, counts)
        for site, count in enumerate(counts.tolist()):
            if count:
                yield spec.tenant, site, spec.ask, count


@compiled
def sum_later(rows: Words, used: int, ticket: int, sites: int, totals: Words) -> None:
    """Add what is held by a later ticket, by the number of the tenant and the site, of which there are so many."""
    at = (used - 1) * ROW
    while at >= 0 and rows[at + TICKET] > ticket:
        if rows[at + STATE] != GONE:
            to = 3 * (rows[at + TENANT] * sites + rows[at + SITE])
            totals[to] += rows[at + MILLI]
            totals[to + 1] += rows[at + CPU]
            totals[to + 2] += rows[at + MEMORY]
        at -= ROW


@compiled
def count_later(tickets: Words, slots: Words, sites: Words, ticket: int, counts: Words) -> None:
    """Count the tasks that have their place by a later ticket, by the number of their site."""
    for task in range(len(tickets)):
        if tickets[task] > ticket:
            counts[sites[slots[task]]] += 1
