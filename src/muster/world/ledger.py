"""The quota ledger: what each tenant holds now, per family and scope, kept equal to the sum of its leases.

Every tenant has a *purse* for each site on which its own work lies: the GPUs, CPU and memory that it holds there. All
else follows from these. What a tenant holds of a family in a scope, with all that is below it in the tree, is a
*total*: made when somebody first asks for it and kept in step from then on. So a charge costs what is looked at: in
most worlds few of all families, scopes and tenants above have a line. In which totals a purse counts is found once and
then remembered: a charge is a few additions. CPU and memory count on nodes of every family. The ledger knows amounts,
not limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from muster.model.errors import InvariantError
from muster.model.tenant import CPU, DEPTH_MAX, DEVICE_MILLI, FLEET, MEMORY, NOT_DEVICES, ROOT
from muster.units import Resources
from muster.world.sites import CPU_AT, GPUS_AT, MEMORY_AT, Site

Account: TypeAlias = tuple[str, str, str]
"""A tenant, a family (or `cpu`, or `memory`) and a scope."""

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
    """What a tenant itself holds on a site: GPUs in `units` of the family, thousandths of a core, bytes. `totals` are
    those in which it counts, each with its kind."""

    __slots__ = ("cpu", "gpus", "memory", "totals", "units")

    def __init__(self, site: Site, gpus: int = 0, cpu: int = 0, memory: int = 0) -> None:
        self.units = 0 if site.family in NOT_DEVICES else site.units
        self.gpus = gpus
        self.cpu = cpu
        self.memory = memory
        self.totals: tuple[tuple[Total, int], ...] = ()

    def amounts(self) -> tuple[int, int, int]:
        """All that it holds."""
        return self.gpus, self.cpu, self.memory


class Ledger:
    """Purses by tenant and site, and the totals that were asked for. A tenant whose parent nobody named is a child of
    the root. `_above` are those who ever had somebody below them; `_ready` are, by the number of the site, the purses
    that know their totals. While its `version` is the same, so is every total."""

    __slots__ = ("_above", "_chains", "_parents", "_purses", "_ready", "_totals", "version")

    def __init__(self) -> None:
        self._purses: dict[str, dict[Site, Purse]] = {}
        self._totals: dict[Account, Total] = {}
        self._parents: dict[str, str] = {}
        self._above = {ROOT}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._ready: list[dict[str, Purse]] = []
        self.version = 0

    def charge(self, tenant: str, site: Site, ask: Resources, tasks: int) -> int:
        """Add `tasks` asks on a site, and say how much of its family that is. The inverse of `refund`."""
        try:
            purse = self._ready[site.number][tenant]
        except LookupError:
            purse = self._open(tenant, site)
        gpus = (ask.gpus * DEVICE_MILLI + ask.gpu_milli) * purse.units * tasks
        cpu = ask.cpu_milli * tasks
        memory = ask.memory_bytes * tasks
        purse.gpus += gpus
        purse.cpu += cpu
        purse.memory += memory
        if purse.totals:
            self.version += 1
            amounts = gpus, cpu, memory
            for total, kind in purse.totals:
                total.held += amounts[kind]
        return gpus

    def refund(self, tenant: str, site: Site, ask: Resources, tasks: int) -> None:
        """Take `tasks` asks on a site away. The inverse of `charge`."""
        self.charge(tenant, site, ask, -tasks)

    def total(self, tenant: str, family: str, scope: str) -> Total:
        """What a tenant and all below it hold, kept in step from now on."""
        account = (tenant, family, scope)
        total = self._totals.get(account)
        if total is None:
            total = self._totals[account] = Total(self._add_up(*account))
            for purses in self._ready:
                purses.clear() if tenant in self._above else purses.pop(tenant, None)
        return total

    def held(self, tenant: str, family: str, scope: str = FLEET) -> int:
        """What a tenant, and all below it, holds."""
        return self.total(tenant, family, scope).held

    def holdings(self) -> dict[Account, int]:
        """Every account that is not empty, the root's too: added up from the purses, but for those that are kept."""
        found: dict[Account, int] = {}
        for tenant, purses in self._purses.items():
            for site, purse in purses.items():
                for account in self._accounts(tenant, site):
                    found[account] = found.get(account, 0) + purse.amounts()[kind_of(account[1])]
        found |= {account: total.held for account, total in self._totals.items()}
        return {account: amount for account, amount in found.items() if amount}

    def chain(self, tenant: str) -> tuple[str, ...]:
        """A tenant and all above it, the root last. Found once for a tree as it is."""
        return self._chains.get(tenant) or self._find_chain(tenant)

    def adopt(self, tenant: str, parent: str) -> None:
        """Put a tenant under another parent; what it holds moves with it."""
        if self._parents.get(tenant, ROOT) != parent:
            self._parents[tenant] = parent
            self._above.add(parent)
            self.version += 1
            self._chains.clear()
            for account, total in self._totals.items():
                total.held = self._add_up(*account)
            self._ready.clear()

    def fork(self) -> Ledger:
        """An independent copy; in which totals a purse counts is found again."""
        twin = Ledger()
        twin._parents, twin._above = self._parents.copy(), self._above.copy()
        twin._purses = {
            tenant: {site: Purse(site, *purse.amounts()) for site, purse in purses.items()}
            for tenant, purses in self._purses.items()
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

    def _open(self, tenant: str, site: Site) -> Purse:
        while len(self._ready) <= site.number:
            self._ready.append({})
        purses = self._purses.setdefault(tenant, {})
        purse = self._ready[site.number][tenant] = purses.get(site) or purses.setdefault(site, Purse(site))
        kept = (account for account in self._accounts(tenant, site) if account in self._totals)
        purse.totals = tuple((self._totals[account], kind_of(account[1])) for account in kept)
        return purse

    def _accounts(self, tenant: str, site: Site) -> Iterator[Account]:
        """All in which it counts what a tenant holds on a site."""
        families = dict.fromkeys((site.family, CPU, MEMORY))
        for name in self.chain(tenant):
            for scope in site.scopes():
                for family in families:
                    yield name, family, scope

    def _add_up(self, tenant: str, family: str, scope: str) -> int:
        total = 0
        for name in self._purses if tenant in self._above else (tenant,):
            if tenant in self.chain(name):
                for site, purse in self._purses.get(name, {}).items():
                    if family in (site.family, CPU, MEMORY) and scope in site.scopes():
                        total += purse.amounts()[kind_of(family)]
        return total
