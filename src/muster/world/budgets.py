"""What is spent: an account for each budget, exact to the last unit however often it is read.

A lease spends its *rate* in every millisecond: the amount of its devices, or their price. An account keeps the sum of
the rates below its tenant, and a `base` such that `base + rate x now` is what has been spent in the present period: a
lease that begins takes `rate x now` off the base, one that ends puts it back. So nothing is settled by reading, and
begin and end at one moment are exact inverses. The price of a flavor is fixed for a job as long as it holds something
of it. Nothing here knows limits of other kinds, or what is done when a budget is spent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from muster.model.budget import GPU_HOURS, MONEY, Budget
from muster.model.node import Flavor
from muster.model.tenant import DEVICE_MILLI, NOT_DEVICES, Tenant, device_amount
from muster.units import HOUR_MS, INSTANT_MAX, Resources
from muster.world.ledger import Ledger

SCALE: Final = {GPU_HOURS: HOUR_MS, MONEY: DEVICE_MILLI * HOUR_MS}
"""How much spending is one of a budget's amount: a millionth of a GPU-hour, a millionth of the currency."""


class AccountKey(NamedTuple):
    """Which budget of whom."""

    tenant: str
    unit: str
    soft: bool


class Account:
    """What a budget's tenant, and all below it, spends. `since` is when the present period began."""

    __slots__ = ("base", "budget", "rate", "since", "tenant")

    def __init__(self, tenant: str, budget: Budget, now: int) -> None:
        self.tenant = tenant
        self.budget = budget
        self.since = budget.starts_at(now)
        self.rate = 0
        self.base = 0

    def spent(self, now: int) -> int:
        """What has been spent in the period that a moment lies in, at or after the present one."""
        start = self.budget.starts_at(now)
        return self.rate * (now - start) if start > self.since else self.base + self.rate * now

    def is_spent(self, now: int) -> bool:
        """Whether nothing is left."""
        return self.spent(now) >= self.budget.amount * SCALE[self.budget.unit]

    def ends_at(self) -> int | None:
        """The first moment at which nothing is left if all goes on as now, whether it is to come or over."""
        left = self.budget.amount * SCALE[self.budget.unit] - self.base
        return -(-left // self.rate) if self.rate else None

    def turns_at(self) -> int | None:
        """When the next period begins, if there is one."""
        return self.since + self.budget.period_ms if self.budget.period_ms else None

    def turn(self, since: int) -> None:
        """A new period began: what runs goes on spending from there."""
        self.since = since
        self.base = -self.rate * since

    def pause(self, now: int) -> None:
        """Nothing is spent from now on; what has been stays spent."""
        self.base += self.rate * now
        self.rate = 0


class Budgets:
    """`accounts` are those of each tenant that has budgets, hard ones first; `prices` are those that jobs go on paying
    though their flavor's price has changed. `now` is the time of the entry that is being made or folded, and
    `is_used` whether there ever was an account."""

    __slots__ = ("_ledger", "_next_turn", "_paths", "accounts", "is_used", "now", "prices")

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._paths: dict[str, tuple[Account, ...]] = {}
        self._next_turn: int | None = None
        self.accounts: dict[str, list[Account]] = {}
        self.prices: dict[int, dict[str, int]] = {}
        self.is_used = False
        self.now = 0

    # -- what is asked -------------------------------------------------------------------------------------------

    def find_spent(self, tenant: str) -> Account | None:
        """A budget on the way up that is spent now, a hard one if there is any."""
        found = None
        for account in self.path(tenant):
            if account.is_spent(self.now):
                if not account.budget.soft:
                    return account
                found = found or account
        return found

    def path(self, tenant: str) -> tuple[Account, ...]:
        """The accounts of a tenant and of all above it."""
        known = self._paths.get(tenant)
        if known is None:
            chain = self._ledger.chain(tenant)
            known = self._paths[tenant] = tuple(each for name in chain for each in self.accounts.get(name, ()))
        return known

    def price(self, job: int, name: str, flavor: Flavor) -> int:
        """What a job pays for a device of a flavor in an hour."""
        kept = self.prices.get(job) if self.prices else None
        return flavor.price_micros if kept is None else kept.get(name, flavor.price_micros)

    def rates(self, job: int, ask: Resources, tasks: int, name: str, flavor: Flavor) -> tuple[int, int]:
        """What tasks of a job on a node spend in a millisecond: of GPU-hours, and of money."""
        gpus = 0 if flavor.family in NOT_DEVICES else device_amount(ask, flavor.units) * tasks
        milli = ask.gpus * DEVICE_MILLI + ask.gpu_milli
        return gpus, milli * tasks * self.price(job, name, flavor)

    def find_turn(self) -> int | None:
        """When the next period of any budget begins."""
        return self._next_turn

    def due(self, now: int) -> list[Account]:
        """The accounts whose next period has begun."""
        found = [each for each in self.all() if (at := each.turns_at()) is not None and at <= now]
        return sorted(found, key=_order)

    def find_end(self, now: int) -> int | None:
        """When the next hard budget will be spent, if what is held now stays held."""
        ends = (each.ends_at() for each in self.all() if not each.budget.soft)
        return min((at for at in ends if at is not None and now < at <= INSTANT_MAX), default=None)

    def overspent(self, now: int) -> list[Account]:
        """The hard budgets that are spent and from which something spends all the same."""
        found = [each for each in self.all() if each.rate and not each.budget.soft and each.is_spent(now)]
        return sorted(found, key=_order)

    def all(self) -> Iterator[Account]:
        """Every account."""
        for accounts in self.accounts.values():
            yield from accounts

    def get(self, key: AccountKey) -> Account:
        """One account that is there."""
        return next(each for each in self.accounts[key.tenant] if (each.budget.unit, each.budget.soft) == key[1:])

    # -- what changes --------------------------------------------------------------------------------------------

    def spend(self, job: int, tenant: str, ask: Resources, tasks: int, name: str, flavor: Flavor) -> None:
        """Tasks on a node begin (or, as a negative number, end) to spend."""
        if not (ask.gpus or ask.gpu_milli):
            return
        gpus, money = self.rates(job, ask, tasks, name, flavor)
        for account in self.path(tenant):
            rate = gpus if account.budget.unit == GPU_HOURS else money
            account.rate += rate
            account.base -= rate * self.now

    def set_tenant(self, name: str, tenant: Tenant) -> None:
        """A tenant has these budgets now. What was spent of one whose periods stay as they are stays spent; a new one
        counts from now on. The rates are to be set anew."""
        known = {_terms(each.budget): each for each in self.accounts.pop(name, ())}
        accounts = []
        for budget in sorted(tenant.budgets, key=lambda each: (each.soft, each.unit)):
            account = known.get(_terms(budget)) or Account(name, budget, self.now)
            account.budget = budget
            accounts.append(account)
        if accounts:
            self.accounts[name] = accounts
        self._note()

    def turn(self, account: Account, since: int) -> None:
        """A new period of a budget began."""
        account.turn(since)
        self._note()

    def set_rates(self, leases: Iterable[tuple[int, str, Resources, int, str, Flavor]]) -> None:
        """The tree changed: what everybody spends is the sum of these leases."""
        self._paths.clear()
        for account in self.all():
            account.pause(self.now)
        for lease in leases:
            self.spend(*lease)

    def restore(self, key: AccountKey, since: int, spent: int) -> None:
        """So much has been spent in the period that began then."""
        account = self.get(key)
        account.since, account.base = since, spent - account.rate * self.now
        self._note()

    def keep_price(self, jobs: Iterable[int], name: str, price_micros: int) -> None:
        """A flavor's price changes: who holds something of it goes on paying what it was."""
        for job in jobs:
            self.prices.setdefault(job, {}).setdefault(name, price_micros)

    def drop_prices(self, job: int, held: Collection[str] = ()) -> None:
        """A job holds only these flavors any more."""
        prices = {name: price for name, price in self.prices.pop(job).items() if name in held}
        if prices:
            self.prices[job] = prices

    def fork(self, ledger: Ledger) -> Budgets:
        """An independent copy over another ledger."""
        twin = Budgets(ledger)
        twin.now, twin.prices = self.now, {job: prices.copy() for job, prices in self.prices.items()}
        for name, accounts in self.accounts.items():
            twin.accounts[name] = [_copy(account) for account in accounts]
        twin._note()
        return twin

    def _note(self) -> None:
        self.is_used = self.is_used or bool(self.accounts)
        self._paths.clear()
        turns = [at for account in self.all() if (at := account.turns_at()) is not None]
        self._next_turn = min(turns, default=None)


def _order(account: Account) -> tuple[str, str, bool]:
    return account.tenant, account.budget.unit, account.budget.soft


def _terms(budget: Budget) -> tuple[str, bool, int, int]:
    """What makes a budget the same one, though its amount may change."""
    return budget.unit, budget.soft, budget.period_ms, budget.since_ms


def _copy(account: Account) -> Account:
    twin = Account(account.tenant, account.budget, 0)
    twin.rate, twin.base, twin.since = account.rate, account.base, account.since
    return twin
