"""The quota ledger: what each tenant holds now, per family and scope, kept equal to the sum of its leases.

A *cell* holds GPUs, CPU and memory. Every tenant has one for each site on which its own work lies, and all else follows
from these. What a tenant holds of a family in a scope, with all that is below it in the tree, is a *total*: the sum of
such cells, made when somebody first asks for it and kept in step from then on. So a charge costs what is looked at: in
most worlds few of all families, scopes and tenants above have a line. Which cells a lease goes to is found once per
(tenant, site) and then remembered as a path: a charge is a few additions. CPU and memory count on nodes of every
family. The ledger knows amounts, not limits.
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
Cell: TypeAlias = list[int]
"""GPUs in units of the family, thousandths of a core, bytes."""
Path: TypeAlias = tuple[int, tuple[Cell, ...]]
"""What a thousandth of a device counts, and the cells that a tenant's lease goes to."""

_AT = {CPU: CPU_AT, MEMORY: MEMORY_AT}


def kind_of(family: str) -> int:
    """Which amount of a cell a family is."""
    return _AT.get(family, GPUS_AT)


class Ledger:
    """Cells by tenant and site, and the totals that were asked for. A tenant whose parent nobody named is a child of
    the root. `_above` are those who ever had somebody below them."""

    __slots__ = ("_above", "_chains", "_own", "_parents", "_paths", "_totals")

    def __init__(self) -> None:
        self._own: dict[str, dict[Site, Cell]] = {}
        self._totals: dict[Account, Cell] = {}
        self._parents: dict[str, str] = {}
        self._above = {ROOT}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._paths: list[dict[str, Path]] = []

    def charge(self, tenant: str, site: Site, ask: Resources, tasks: int) -> int:
        """Add `tasks` asks on a site, and say how much of its family that is. The inverse of `refund`."""
        try:
            units, cells = self._paths[site.number][tenant]
        except LookupError:
            units, cells = self._open(tenant, site)
        gpus = (ask.gpus * DEVICE_MILLI + ask.gpu_milli) * units * tasks
        cpu = ask.cpu_milli * tasks
        memory = ask.memory_bytes * tasks
        for cell in cells:
            cell[0] += gpus
            cell[1] += cpu
            cell[2] += memory
        return gpus

    def refund(self, tenant: str, site: Site, ask: Resources, tasks: int) -> None:
        """Take `tasks` asks on a site away. The inverse of `charge`."""
        self.charge(tenant, site, ask, -tasks)

    def total(self, tenant: str, family: str, scope: str) -> Cell:
        """What a tenant and all below it hold, as a cell that is kept in step; one amount of it is the family's."""
        account = (tenant, family, scope)
        total = self._totals.get(account)
        if total is None:
            total = self._totals[account] = self._add_up(account)
            for paths in self._paths:
                paths.clear() if tenant in self._above else paths.pop(tenant, None)
        return total

    def held(self, tenant: str, family: str, scope: str = FLEET) -> int:
        """What a tenant, and all below it, holds."""
        return self.total(tenant, family, scope)[kind_of(family)]

    def holdings(self) -> dict[Account, int]:
        """Every account that is not empty, the root's too: added up from the cells, but for those that are kept."""
        found: dict[Account, int] = {}
        for tenant, cells in self._own.items():
            for site, cell in cells.items():
                for account in self._accounts(tenant, site):
                    found[account] = found.get(account, 0) + cell[kind_of(account[1])]
        found |= {account: total[kind_of(account[1])] for account, total in self._totals.items()}
        return {account: amount for account, amount in found.items() if amount}

    def chain(self, tenant: str) -> tuple[str, ...]:
        """A tenant and all above it, the root last. Found once for a tree as it is."""
        return self._chains.get(tenant) or self._find_chain(tenant)

    def adopt(self, tenant: str, parent: str) -> None:
        """Put a tenant under another parent; what it holds moves with it."""
        if self._parents.get(tenant, ROOT) != parent:
            self._parents[tenant] = parent
            self._above.add(parent)
            self._chains.clear()
            for account, total in self._totals.items():
                total[:] = self._add_up(account)
            self._paths.clear()

    def fork(self) -> Ledger:
        """An independent copy; paths are found again."""
        twin = Ledger()
        twin._parents, twin._above = self._parents.copy(), self._above.copy()
        twin._own = {tenant: {site: cell[:] for site, cell in own.items()} for tenant, own in self._own.items()}
        twin._totals = {account: total[:] for account, total in self._totals.items()}
        return twin

    def _find_chain(self, tenant: str) -> tuple[str, ...]:
        names = [tenant]
        while names[-1] != ROOT:
            names.append(self._parents.get(names[-1], ROOT))
            if len(names) > DEPTH_MAX + 1:
                raise InvariantError("the tree of tenants ends at its root", f"above {tenant}: {names[1:]}")
        found = self._chains[tenant] = tuple(names)
        return found

    def _open(self, tenant: str, site: Site) -> Path:
        while len(self._paths) <= site.number:
            self._paths.append({})
        own = self._own.setdefault(tenant, {}).setdefault(site, [0, 0, 0])
        totals = (self._totals[account] for account in self._accounts(tenant, site) if account in self._totals)
        path = self._paths[site.number][tenant] = (0 if site.family in NOT_DEVICES else site.units, (own, *totals))
        return path

    def _accounts(self, tenant: str, site: Site) -> Iterator[Account]:
        """All in which it counts what a tenant holds on a site."""
        families = dict.fromkeys((site.family, CPU, MEMORY))
        for name in self.chain(tenant):
            for scope in site.scopes():
                for family in families:
                    yield name, family, scope

    def _add_up(self, account: Account) -> Cell:
        tenant, family, scope = account
        total = [0, 0, 0]
        for name in self._own if tenant in self._above else (tenant,):
            if tenant in self.chain(name):
                for site, cell in self._own.get(name, {}).items():
                    if family in (site.family, CPU, MEMORY) and scope in site.scopes():
                        total = [one + other for one, other in zip(total, cell, strict=True)]
        return total
