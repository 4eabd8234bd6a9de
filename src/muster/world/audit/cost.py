"""cost books: what places that work takes cost it, told from the facts alone: its quota, its use and its budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from muster.model import fact
from muster.model.spec import Spec
from muster.model.tenant import OPEN
from muster.world.audit.budget import GoesOn, SpendBooks
from muster.world.audit.fleet import FleetBooks
from muster.world.audit.quota import FindHeld, QuotaBooks
from muster.world.audit.use import UseBooks
from muster.world.laws.law import require_same
from muster.world.world import World

CostFact: TypeAlias = fact.TenantSet | fact.TenantDropped | fact.BudgetTurned
Places: TypeAlias = Sequence[tuple[int, int]]
"""Slots, and how many tasks are on each."""


class CostBooks:
    """Three books of the same places, by what the fleet says that these count for."""

    def __init__(self, fleet: FleetBooks) -> None:
        self._fleet = fleet
        self._at = 0
        self.quota = QuotaBooks()
        self._spending = SpendBooks(self.quota.chain)
        self._use = UseBooks()

    def pass_time(self, at: int) -> None:
        """It is so late."""
        self._at = self._use.at = at

    def book(self, item: CostFact) -> None:
        """A tenant is another one, or a period of its budget is over."""
        if isinstance(item, fact.BudgetTurned):
            self._spending.turned(item, self._at)
            return
        tenant = item.tenant if isinstance(item, fact.TenantSet) else None
        self.quota.set_tenant(item.name, tenant)
        self._spending.set_tenant(item.name, tenant or OPEN, self._at)

    def start(self, number: int, spec: Spec, places: Places, find_later: FindHeld | None, *, is_covered: bool) -> None:
        """Work takes places: within its quota, unless a booking covers it. Of whoever was granted them by a claim,
        nothing counts that came later."""
        if self.quota.has_owners:
            for slot, stock in self._fleet.take_stale():
                self.quota.set_stock(slot, stock)
        plots = self._fleet.plots_at(places)
        if is_covered:
            self.quota.claim(spec, plots, 1)
        else:
            self.quota.start(spec, plots, find_later, may_borrow=self._spending.may_borrow(spec, self._at))
        self._use.hold(spec, plots, 1)
        for slot, tasks in places:
            name, flavor = self._fleet.nodes[slot].flavor(), self._fleet.flavor_at(slot)
            self._spending.start(number, spec, slot, tasks, name, flavor, self._at)

    def stop(self, number: int, spec: Spec, places: Places) -> None:
        """Work gives places back."""
        for slot, tasks in places:
            self._spending.stop(number, spec, slot, tasks, self._at)
        plots = self._fleet.plots_at(places)
        self.quota.stop(spec, plots)
        self._use.hold(spec, plots, -1)

    def check_stop(self, number: int, spec: Spec) -> None:
        """Whoever is stopped for a budget has one that is spent."""
        self._spending.check_stop(number, spec, self._at)

    def compare(self, world: World, goes_on: GoesOn) -> None:
        """The world's ledger, budgets and use are these; and nobody `goes_on` whose budget is spent."""
        self.quota.compare(world.ledger)
        self._spending.compare(world.budgets, self._at)
        self._spending.check_stopped(goes_on, self._at)
        self._use.compare(world.usage)
        require_same(world.tenants, self.quota.tenants, "tenants are what the facts say")
