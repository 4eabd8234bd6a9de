"""The auditor's books of what is spent: kept from the facts alone, and settled whenever something changes.

Each lease is known with the price that it began with; what a budget's tenant spends is summed over them, and what it
has spent is added up from change to change. It shares with the world the words and the scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from muster.model.budget import MONEY, Budget
from muster.model.fact import BudgetTurned
from muster.model.node import Flavor
from muster.model.spec import Spec
from muster.model.tenant import NOT_DEVICES, Tenant
from muster.units import Resources
from muster.world.budgets import SCALE, AccountKey, Budgets
from muster.world.laws.law import require

Chain: TypeAlias = Callable[[str], Iterable[str]]
GoesOn: TypeAlias = Callable[[int, int], bool]
"""Whether a job has tasks on a slot that nobody told to stop, and that were promised in no booking."""

_EXACT: Final = "spent is the sum over leases of rate times time"
_HARD: Final = "nothing starts on a budget that is spent"
_TURN: Final = "a budget's next period begins in time"
_STOPS: Final = "what spends from a hard budget that is spent is told to stop"
_NOT_YET: Final = "nothing is stopped for a budget that is not spent"


class Held(NamedTuple):
    """What a job holds on one node, and what a device of it costs."""

    spec: Spec
    tasks: int
    flavor: str
    family: str
    units: int
    price: int

    def rate(self, unit: str) -> int:
        """What it spends in a millisecond."""
        milli = (1000 * self.spec.ask.gpus + self.spec.ask.gpu_milli) * self.tasks
        return milli * (self.price if unit == MONEY else 0 if self.family in NOT_DEVICES else self.units)


class Purse:
    """A budget, what was spent of it until `at`, and what it spends since."""

    __slots__ = ("at", "budget", "rate", "since", "spent")

    def __init__(self, budget: Budget, at: int) -> None:
        self.budget = budget
        self.at = at
        self.since = _latest_turn(budget, budget.since_ms, at) if budget.period_ms else 0
        self.rate = 0
        self.spent = 0

    def settle(self, at: int) -> None:
        """Add what was spent up to now."""
        turns = self.budget.period_ms and at >= self.since + self.budget.period_ms
        require(not turns, _TURN, f"{self.budget}: at {at}, the period began at {self.since}")
        self.spent += self.rate * (at - self.at)
        self.at = at

    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.spent >= self.budget.amount * SCALE[self.budget.unit]


class SpendBooks:
    """Purses by tenant, every lease, and what each job pays for each flavor that it holds, on so many nodes."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._purses: dict[AccountKey, Purse] = {}
        self._held: dict[tuple[int, int, Resources], Held] = {}
        self._paid: dict[tuple[int, str], tuple[int, int]] = {}
        self._touched: dict[AccountKey, None] = {}

    def set_tenant(self, name: str, tenant: Tenant, at: int) -> None:
        """A tenant changed: what each budget spends is summed up again."""
        for purse in self._purses.values():
            purse.settle(at)
        known = {key: self._purses.pop(key) for key in list(self._purses) if key.tenant == name}
        for budget in tenant.budgets:
            key = AccountKey(name, budget.unit, budget.soft)
            old = known.get(key)
            is_same = old is not None and (old.budget.period_ms, old.budget.since_ms) == (
                budget.period_ms,
                budget.since_ms,
            )
            self._purses[key] = old if old is not None and is_same else Purse(budget, at)
            self._purses[key].budget = budget
        for purse in self._purses.values():
            purse.rate = 0
        for held in self._held.values():
            for _, purse in self._above(held.spec.tenant):
                purse.rate += held.rate(purse.budget.unit)
        self._touched.update(dict.fromkeys(self._purses))

    def turned(self, item: BudgetTurned, at: int) -> None:
        """A period began: only what is spent since then counts."""
        key = AccountKey(item.tenant, item.unit, item.soft)
        purse = self._purses[key]
        wanted = _latest_turn(purse.budget, purse.since, at)
        require(item.since == wanted, _TURN, f"{key}: {item.since}, wanted {wanted}")
        purse.since, purse.at, purse.spent = item.since, at, purse.rate * (at - item.since)
        self._touched[key] = None

    def may_borrow(self, spec: Spec, at: int) -> bool:
        """Whether no soft budget is spent; that a hard one is not is a law."""
        if not (spec.ask.gpus or spec.ask.gpu_milli):
            return True
        spent = []
        for key, purse in self._above(spec.tenant):
            purse.settle(at)
            if purse.is_spent():
                spent.append(key)
        require(all(key.soft for key in spent), _HARD, f"{spec.tenant}: {spent}")
        return not spent

    def start(self, job: int, spec: Spec, slot: int, tasks: int, name: str, flavor: Flavor, at: int) -> None:
        """Tasks begin to spend, at the price that the job pays for this flavor already, or else at today's."""
        price, nodes = self._paid.get((job, name), (flavor.price_micros, 0))
        before = self._held.get((job, slot, spec.ask))
        self._paid[(job, name)] = (price, nodes + (before is None))
        count = tasks if before is None else before.tasks + tasks
        self._hold((job, slot, spec.ask), before, Held(spec, count, name, flavor.family, flavor.units, price), at)

    def stop(self, job: int, spec: Spec, slot: int, tasks: int, at: int) -> None:
        """Tasks spend nothing any more."""
        before = self._held[(job, slot, spec.ask)]
        self._hold((job, slot, spec.ask), before, before._replace(tasks=before.tasks - tasks), at)

    def check_stop(self, job: int, spec: Spec, at: int) -> None:
        """A run is stopped for a budget."""
        spent = [key for key, _ in self._find_spent(at) if key.tenant in set(self._chain(spec.tenant))]
        require(bool(spent), _NOT_YET, f"job {job} of {spec.tenant}")

    def check_stopped(self, goes_on: GoesOn, at: int) -> None:
        """Whether all who spend from a hard budget that is spent were told to stop, as far as nobody promised them."""
        for key, purse in self._find_spent(at):
            for (job, slot, _), held in self._held.items():
                if held.rate(purse.budget.unit) and key.tenant in self._chain(held.spec.tenant):
                    require(not goes_on(job, slot), _STOPS, f"{key}: job {job} on slot {slot} at {at}")

    def compare(self, budgets: Budgets, at: int) -> None:
        """Whether the accounts say the same of all that was touched."""
        for key in self._touched:
            purse = self._purses.get(key)
            if purse is not None:
                account = budgets.get(key)
                kept = (account.spent(at), account.rate, account.since)
                booked = (purse.spent + purse.rate * (at - purse.at), purse.rate, purse.since)
                require(kept == booked, _EXACT, f"{key}: kept {kept}, booked {booked}")
        self._touched.clear()

    def _find_spent(self, at: int) -> Iterator[tuple[AccountKey, Purse]]:
        """The hard budgets that are spent, and from which something spends."""
        for key, purse in self._purses.items():
            if purse.rate and not key.soft:
                purse.settle(at)
                if purse.is_spent():
                    yield key, purse

    def _hold(self, key: tuple[int, int, Resources], before: Held | None, after: Held, at: int) -> None:
        for name, purse in self._above(after.spec.tenant):
            purse.settle(at)
            unit = purse.budget.unit
            purse.rate += after.rate(unit) - (0 if before is None else before.rate(unit))
            self._touched[name] = None
        if after.tasks:
            self._held[key] = after
        else:
            del self._held[key]
            self._leave(key[0], after)

    def _leave(self, job: int, held: Held) -> None:
        """With its last node of a flavor a job leaves the price."""
        price, nodes = self._paid.pop((job, held.flavor))
        if nodes > 1:
            self._paid[(job, held.flavor)] = (price, nodes - 1)

    def _above(self, tenant: str) -> Iterator[tuple[AccountKey, Purse]]:
        names = set(self._chain(tenant)) if self._purses else ()
        return ((key, purse) for key, purse in self._purses.items() if key.tenant in names)


def _latest_turn(budget: Budget, since: int, at: int) -> int:
    """The last beginning of a period up to a moment, counted from one of them."""
    turns = (at - since) // budget.period_ms
    return since + turns * budget.period_ms
