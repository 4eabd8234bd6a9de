"""The quota ledger: what each tenant holds now, per family and scope, kept equal to the sum of its leases.

What a tenant itself holds is a *tally* on each site: how many tasks of each ask lie there. All else follows from it.
What a tenant holds of a family in a scope, with all that is below it in the tree, is a *total*: made when somebody
first asks for it and kept in step from then on. So a charge costs what is looked at: in most worlds few of all
families, scopes and tenants above have a line. Which totals an ask on a site counts in, and for how much, is found once
for a tenant and then remembered as a *purse*: a charge is a few additions. CPU and memory count on nodes of every
family. The ledger knows amounts, not limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from muster.model.errors import InvariantError
from muster.model.tenant import CPU, DEPTH_MAX, FLEET, MEMORY, NOT_DEVICES, ROOT
from muster.units import Resources
from muster.world.sites import CPU_AT, GPUS_AT, MEMORY_AT, Site

Account: TypeAlias = tuple[str, str, str]
"""A tenant, a family (or `cpu`, or `memory`) and a scope."""
Tally: TypeAlias = dict[Resources, int]
"""How many tasks there are of each ask."""

PURSES_MAX: Final = 1 << 16
"""How many are remembered at most: with more, all are forgotten, which costs time and nothing else."""
_AT = {CPU: CPU_AT, MEMORY: MEMORY_AT}


def kind_of(family: str) -> int:
    """Which of the amounts on a site a family is."""
    return _AT.get(family, GPUS_AT)


class Total:
    """What a tenant and all below it hold of a family in a scope."""

    __slots__ = ("held",)

    def __init__(self, held: int) -> None:
        self.held = held


class Purse:
    """Where it counts if a tenant holds tasks of an ask on a site: in its tally there and in `totals`, with what each
    task adds. While it is held, a task uses `use` of `family`: its devices or, if it has none, its cores."""

    __slots__ = ("family", "tally", "totals", "use")

    def __init__(self, tally: Tally, totals: tuple[tuple[Total, int], ...], family: str, use: int) -> None:
        self.tally = tally
        self.totals = totals
        self.family = family
        self.use = use


class Ledger:
    """Tallies by tenant and site, and the totals that were asked for. A tenant whose parent nobody named is a child of
    the root. `_above` are those who ever had somebody below them."""

    __slots__ = ("_above", "_chains", "_opened", "_parents", "_purses", "_tallies", "_totals")

    def __init__(self) -> None:
        self._tallies: dict[str, dict[Site, Tally]] = {}
        self._totals: dict[Account, Total] = {}
        self._parents: dict[str, str] = {}
        self._above = {ROOT}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._purses: list[dict[str, dict[Resources, Purse]]] = []
        self._opened = 0

    def charge(self, tenant: str, site: Site, ask: Resources, tasks: int) -> Purse:
        """Add `tasks` of an ask on a site, and say as what they count. The inverse of `refund`."""
        try:
            purse = self._purses[site.number][tenant][ask]
        except LookupError:
            purse = self._open(tenant, site, ask)
        purse.tally[ask] += tasks
        for total, each in purse.totals:
            total.held += each * tasks
        return purse

    def refund(self, tenant: str, site: Site, ask: Resources, tasks: int) -> None:
        """Take `tasks` of an ask on a site away. The inverse of `charge`."""
        self.charge(tenant, site, ask, -tasks)

    def total(self, tenant: str, family: str, scope: str) -> Total:
        """What a tenant and all below it hold, kept in step from now on."""
        account = (tenant, family, scope)
        total = self._totals.get(account)
        if total is None:
            total = self._totals[account] = Total(self._add_up(*account))
            for purses in self._purses:
                purses.clear() if tenant in self._above else purses.pop(tenant, None)
        return total

    def held(self, tenant: str, family: str, scope: str = FLEET) -> int:
        """What a tenant, and all below it, holds."""
        return self.total(tenant, family, scope).held

    def holdings(self) -> dict[Account, int]:
        """Every account that is not empty, the root's too: added up from the tallies, but for those that are kept."""
        found: dict[Account, int] = {}
        for tenant, tallies in self._tallies.items():
            for site, tally in tallies.items():
                amounts = [_amount(site, tally, kind) for kind in (GPUS_AT, CPU_AT, MEMORY_AT)]
                for account in self._accounts(tenant, site):
                    found[account] = found.get(account, 0) + amounts[kind_of(account[1])]
        found |= {account: total.held for account, total in self._totals.items()}
        return {account: amount for account, amount in found.items() if amount}

    def chain(self, tenant: str) -> tuple[str, ...]:
        """A tenant and all above it, the root last. Found once for a tree as it is."""
        return self._chains.get(tenant) or self._find_chain(tenant)

    def adopt(self, tenant: str, parent: str) -> None:
        """Put a tenant under another parent; what it holds moves with it."""
        if self._parents.get(tenant, ROOT) != parent:
            moved = list(self._find_below(tenant))
            for name, site, ask, tasks in moved:
                self.refund(name, site, ask, tasks)
            self._parents[tenant] = parent
            self._above.add(parent)
            self._chains.clear()
            self._close_all()
            for name, site, ask, tasks in moved:
                self.charge(name, site, ask, tasks)

    def fork(self) -> Ledger:
        """An independent copy; purses are found again."""
        twin = Ledger()
        twin._parents, twin._above = self._parents.copy(), self._above.copy()
        twin._tallies = {
            tenant: {site: tally.copy() for site, tally in tallies.items()} for tenant, tallies in self._tallies.items()
        }
        twin._totals = {account: Total(total.held) for account, total in self._totals.items()}
        return twin

    def _find_chain(self, tenant: str) -> tuple[str, ...]:
        names = [tenant]
        while names[-1] != ROOT:
            names.append(self._parents.get(names[-1], ROOT))
            if len(names) > DEPTH_MAX + 1:
                raise InvariantError("the tree of tenants ends at its root", f"above {tenant}: {names[1:]}")
        found = self._chains[tenant] = tuple(names)
        return found

    def _open(self, tenant: str, site: Site, ask: Resources) -> Purse:
        if self._opened >= PURSES_MAX:
            self._close_all()
        self._opened += 1
        while len(self._purses) <= site.number:
            self._purses.append({})
        tally = self._tallies.setdefault(tenant, {}).setdefault(site, {})
        tally.setdefault(ask, 0)
        amounts, kept = site.amounts(ask), self._totals
        counted = [(account, amounts[kind_of(account[1])]) for account in self._accounts(tenant, site)]
        totals = tuple((kept[account], each) for account, each in counted if each and account in kept)
        devices = 0 if site.family in NOT_DEVICES else amounts[GPUS_AT]
        use = (site.family, devices) if devices else (CPU, ask.cpu_milli)
        purse = self._purses[site.number].setdefault(tenant, {})[ask] = Purse(tally, totals, *use)
        return purse

    def _close_all(self) -> None:
        """All purses are found again, and what nobody holds is not tallied."""
        self._purses.clear()
        self._opened = 0
        for tallies in self._tallies.values():
            for site, tally in tallies.items():
                tallies[site] = {ask: tasks for ask, tasks in tally.items() if tasks}

    def _accounts(self, tenant: str, site: Site) -> Iterator[Account]:
        """All in which it counts what a tenant holds on a site."""
        families = dict.fromkeys((site.family, CPU, MEMORY))
        for name in self.chain(tenant):
            for scope in site.scopes():
                for family in families:
                    yield name, family, scope

    def _find_below(self, tenant: str) -> Iterator[tuple[str, Site, Resources, int]]:
        """All that a tenant holds itself, and those below it."""
        for name in self._tallies if tenant in self._above else (tenant,):
            if tenant in self.chain(name):
                for site, tally in self._tallies.get(name, {}).items():
                    for ask, tasks in tally.items():
                        yield name, site, ask, tasks

    def _add_up(self, tenant: str, family: str, scope: str) -> int:
        total, kind = 0, kind_of(family)
        for _, site, ask, tasks in self._find_below(tenant):
            if family in (site.family, CPU, MEMORY) and scope in site.scopes():
                total += site.amounts(ask, tasks)[kind]
        return total


def _amount(site: Site, tally: Tally, kind: int) -> int:
    return sum(site.amounts(ask, tasks)[kind] for ask, tasks in tally.items())
