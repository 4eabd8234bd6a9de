"""Bugs planted in who may hold how much and whose turn it is: quota, budgets, use and order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final
from unittest import mock

import msgspec

from muster.kernel import budgets as stops
from muster.model.phase import Lease
from muster.model.spec import Spec
from muster.model.tenant import CPU, FLEET, ROOT
from muster.scheduler import cycle
from muster.scheduler.placing.within import EVERYWHERE
from muster.testing.planted.plant import Plant
from muster.units import Limit, Resources
from muster.world import quota
from muster.world.budgets import SCALE, Account, Budgets
from muster.world.ledger import Ledger
from muster.world.line import Line, job_of
from muster.world.sites import Site
from muster.world.usage import Meter, Usage
from muster.world.world import World

_replace = msgspec.structs.replace


@contextlib.contextmanager
def ledger_leak() -> Iterator[None]:
    """One refund in a few is forgotten: that of tasks whose array goes on."""
    honest = Ledger.charge

    def charge(ledger: Ledger, tenant: str, site: Site, ask: Resources, tasks: int) -> int:
        charged = honest(ledger, tenant, site, ask, tasks)
        if tasks == -2:
            honest(ledger, tenant, site, ask, 2)
        return charged

    with mock.patch.object(Ledger, "charge", charge):
        yield


@contextlib.contextmanager
def quota_leak() -> Iterator[None]:
    """A refund forgets an ancestor: what a team gives back, its lab goes on holding."""
    honest = Ledger.charge

    def charge(ledger: Ledger, tenant: str, site: Site, ask: Resources, tasks: int) -> int:
        charged = honest(ledger, tenant, site, ask, tasks)
        parent = ledger.chain(tenant)[1]
        if tasks < 0 and parent != ROOT:
            ledger.total(parent, CPU, FLEET).held -= ask.cpu_milli * tasks
        return charged

    with mock.patch.object(Ledger, "charge", charge):
        yield


@contextlib.contextmanager
def charged_twice() -> Iterator[None]:
    """A gang that lies on several nodes is charged once too often."""
    honest = World.charge

    def charge(world: World, asked: Spec, leases: Sequence[Lease], at: int, end: Limit = None, sign: int = 1) -> None:
        honest(world, asked, leases, at, end, sign)
        if sign > 0:
            honest(world, asked, leases[1:], at, end)

    with mock.patch.object(World, "charge", charge):
        yield


@contextlib.contextmanager
def stays_and_borrows() -> Iterator[None]:
    """What may not be evicted may borrow."""
    standing, headroom = quota.Quotas.standing, quota.Quotas.headroom

    def generous(*about: Any) -> quota.Standing:
        return quota.Standing.OVER if standing(*about) == quota.Standing.OVER else quota.Standing.INSIDE

    def borrowed(*about: Any, evictable: bool) -> int:  # noqa: ARG001 - not looking is the bug
        return headroom(*about, evictable=True)

    careless = mock.patch.object(quota.Quotas, "standing", generous)
    with careless, mock.patch.object(quota.Quotas, "headroom", borrowed):
        yield


@contextlib.contextmanager
def guarantee_taken() -> Iterator[None]:
    """Borrowers take what its owner does not lend."""
    with mock.patch.object(quota, "kept", return_value=0):
        yield


@contextlib.contextmanager
def budget_ignored() -> Iterator[None]:
    """Who has spent all goes on starting."""
    with mock.patch.object(Budgets, "find_spent", return_value=None):
        yield


@contextlib.contextmanager
def spending_forgotten() -> Iterator[None]:
    """What ends goes on spending, if it was one task of an array."""
    honest = Budgets.spend

    def spend(budgets: Budgets, job: int, tenant: str, ask: Resources, tasks: int, *about: Any) -> None:
        if tasks != -1:
            honest(budgets, job, tenant, ask, tasks, *about)

    with mock.patch.object(Budgets, "spend", spend):
        yield


@contextlib.contextmanager
def budget_never_turns() -> Iterator[None]:
    """The next period does not begin."""
    with mock.patch.object(Budgets, "due", return_value=[]), mock.patch.object(Budgets, "find_turn", return_value=None):
        yield


@contextlib.contextmanager
def budget_stops_nobody() -> Iterator[None]:
    """What runs goes on when its budget is spent: nobody wakes for it."""
    with mock.patch.object(Budgets, "find_end", return_value=None):
        yield


@contextlib.contextmanager
def budget_stops_gangs_only() -> Iterator[None]:
    """The tasks of arrays go on when their budget is spent."""
    with mock.patch.object(stops, "_stop_tasks", return_value=None):
        yield


@contextlib.contextmanager
def budget_stops_too_early() -> Iterator[None]:
    """A budget counts as spent when half of it is."""

    def overspent(accounts: Budgets, now: int) -> list[Account]:
        hard = [each for each in accounts.all() if each.rate and not each.budget.soft]
        return [each for each in hard if 2 * each.spent(now) >= each.budget.amount * SCALE[each.budget.unit]]

    with mock.patch.object(Budgets, "overspent", overspent):
        yield


@contextlib.contextmanager
def quota_never_wakes() -> Iterator[None]:
    """A tenant that gives something back stays outside its quota."""
    with mock.patch.object(World, "wake_tenant", return_value=None):
        yield


@contextlib.contextmanager
def quota_ignored() -> Iterator[None]:
    """A tenant may hold whatever there is."""

    def headroom(*about: Any, evictable: bool) -> int:  # noqa: ARG001 - not looking is the bug
        return int(about[-1])

    careless = mock.patch.object(cycle, "pools_within", return_value=EVERYWHERE)
    with careless, mock.patch.object(quota.Quotas, "headroom", headroom):
        yield


@contextlib.contextmanager
def tie_by_arrival() -> Iterator[None]:
    """A line offers whoever joined it last: after a requeue or a restore that is somebody else."""
    honest = Line.first

    def first(line: Line, since: int) -> int:
        key = honest(line, since)
        return key ^ job_of(key) | next(reversed(line._accepted))

    with mock.patch.object(Line, "first", first):
        yield


@contextlib.contextmanager
def stored_decay() -> Iterator[None]:
    """What is kept of past hours is halved whenever somebody weighs it."""
    honest = Meter.weighted

    def weighted(meter: Meter, bucket: int) -> int:
        found = honest(meter, bucket)
        meter.past = {other: use // 2 for other, use in meter.past.items()}
        return found

    with mock.patch.object(Meter, "weighted", weighted):
        yield


@contextlib.contextmanager
def use_never_ends() -> Iterator[None]:
    """Whoever ends at some moments is charged on."""
    honest = Usage.step

    def step(usage: Usage, tenant: str, family: str, amount: int, at: int, end: Limit = None) -> None:
        if amount > 0 or at % 7:
            honest(usage, tenant, family, amount, at, end)

    with mock.patch.object(Usage, "step", step):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    ledger_leak,
    quota_leak,
    charged_twice,
    stays_and_borrows,
    guarantee_taken,
    budget_ignored,
    spending_forgotten,
    budget_never_turns,
    budget_stops_nobody,
    budget_stops_gangs_only,
    budget_stops_too_early,
    quota_never_wakes,
    quota_ignored,
    tie_by_arrival,
    stored_decay,
    use_never_ends,
)
