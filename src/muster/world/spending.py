"""Spending: what is held is paid for, as far as the world has to know. Rates and sums are kept by the budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from muster.model.budget import GPU_HOURS
from muster.model.job import Job
from muster.model.node import Flavor
from muster.model.phase import Lease
from muster.model.tenant import Tenant
from muster.units import Resources
from muster.world.budgets import Account
from muster.world.crowd import asks_on

if TYPE_CHECKING:  # the world pays for what it holds
    from muster.world.world import World


def spend(world: World, job: Job, leases: Sequence[Lease], sign: int) -> None:
    """Leases are paid for from now on (1), or no longer (-1)."""
    spec, fleet = job.spec, world.fleet
    for ask, part in spec.parts(leases):
        for lease in part:
            name, flavor = fleet.flavor(lease.slot), world.flavor_of(lease.slot)
            world.budgets.spend(job.id, spec.tenant, ask, sign * lease.tasks, name, flavor)


def rebudget(world: World, name: str, before: Tenant, after: Tenant) -> None:
    """A tenant's budgets changed, or whose part it is."""
    if before.budgets or after.budgets:
        world.budgets.set_tenant(name, after)
    if world.budgets.accounts and (before.parent, before.budgets) != (after.parent, after.budgets):
        recount_spending(world)


def recount_spending(world: World) -> None:
    """What everybody spends is what is held."""
    world.budgets.set_rates(_spenders(world))


def find_spenders(world: World, account: Account) -> dict[int, set[int]]:
    """Who spends from an account, and on which nodes. What runs in a booking is not asked: it was promised before."""
    found: dict[int, set[int]] = {}
    for slot, holders in world.fleet.holders.items():
        for number, tasks in holders.items():
            spec = world.jobs[number].spec
            is_bound = account in world.budgets.path(spec.tenant) and spec.needs.booking not in world.bookings
            if is_bound and _rate(world, account, number, slot, tasks):
                found.setdefault(number, set()).add(slot)
    return found


def _rate(world: World, account: Account, number: int, slot: int, tasks: int) -> int:
    """What a job's tasks on a node spend from an account."""
    name, flavor = world.fleet.flavor(slot), world.flavor_of(slot)
    asks = asks_on(world.jobs[number], slot, tasks)
    rates = [world.budgets.rates(number, ask, count, name, flavor) for ask, count in asks]
    return sum(gpus if account.budget.unit == GPU_HOURS else money for gpus, money in rates)


def _spenders(world: World) -> Iterator[tuple[int, str, Resources, int, str, Flavor]]:
    for slot, holders in world.fleet.holders.items():
        for number, tasks in holders.items():
            job, name, flavor = world.jobs[number], world.fleet.flavor(slot), world.flavor_of(slot)
            for ask, count in asks_on(job, slot, tasks):
                yield number, job.spec.tenant, ask, count, name, flavor
