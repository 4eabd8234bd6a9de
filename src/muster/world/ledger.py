"""The quota ledger: what each tenant holds now, per family and scope, kept equal to the sum of its leases.

A *cell* holds the GPUs, CPU and memory that a tenant has on nodes of one family in one scope, with all that is below it
in the tree; so what is held is also in the cells of everybody above, up to the root's. Which cells a lease goes to is
found once per (tenant, site) and then remembered as a path: a charge is a few additions. CPU and memory count on nodes
of every family: what is held of them is the sum over a tenant's cells. The ledger knows amounts, not limits.
"""

from __future__ import annotations

from collections.abc import Sequence
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
"""What a thousandth of a device counts, and the cells of a tenant and of all above it."""


class Ledger:
    """Cells by tenant, family and scope. A tenant whose parent nobody named is a child of the root."""

    __slots__ = ("_cells", "_chains", "_parents", "_paths", "_scopes")

    def __init__(self) -> None:
        self._cells: dict[str, dict[tuple[str, str], Cell]] = {}
        self._scopes: dict[tuple[str, str], list[Cell]] = {}
        self._parents: dict[str, str] = {}
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

    def cells(self, tenant: str, family: str, scope: str) -> tuple[int, Sequence[Cell]]:
        """Which amount of a cell a family is, and the cells that hold it. The list of cells is alive: one that is
        opened later is in it."""
        if family == CPU:
            return CPU_AT, self._scopes.setdefault((tenant, scope), [])
        if family == MEMORY:
            return MEMORY_AT, self._scopes.setdefault((tenant, scope), [])
        return GPUS_AT, (self._cell(tenant, family, scope),)

    def held(self, tenant: str, family: str, scope: str = FLEET) -> int:
        """What a tenant, and all below it, holds."""
        kind, cells = self.cells(tenant, family, scope)
        return sum(cell[kind] for cell in cells)

    def holdings(self) -> dict[Account, int]:
        """Every account that is not empty, the root's too."""
        found: dict[Account, int] = {}
        for tenant, cells in self._cells.items():
            for (family, scope), cell in cells.items():
                for name, amount in zip((family, CPU, MEMORY), cell, strict=True):
                    if amount:
                        found[(tenant, name, scope)] = found.get((tenant, name, scope), 0) + amount
        return found

    def chain(self, tenant: str) -> tuple[str, ...]:
        """A tenant and all above it, the root last. Found once for a tree as it is."""
        return self._chains.get(tenant) or self._find_chain(tenant)

    def adopt(self, tenant: str, parent: str) -> None:
        """Put a tenant under another parent; what it holds moves with it."""
        if self._parents.get(tenant, ROOT) != parent:
            self._lift(tenant, -1)
            self._parents[tenant] = parent
            self._chains.clear()
            self._lift(tenant, 1)
            self._paths.clear()

    def fork(self) -> Ledger:
        """An independent copy; paths are found again."""
        twin = Ledger()
        twin._parents = self._parents.copy()
        for tenant, cells in self._cells.items():
            for (family, scope), cell in cells.items():
                twin._cell(tenant, family, scope)[:] = cell
        return twin

    def _find_chain(self, tenant: str) -> tuple[str, ...]:
        names = [tenant]
        while names[-1] != ROOT:
            names.append(self._parents.get(names[-1], ROOT))
            if len(names) > DEPTH_MAX + 1:
                raise InvariantError("the tree of tenants ends at its root", f"above {tenant}: {names[1:]}")
        found = self._chains[tenant] = tuple(names)
        return found

    def _lift(self, tenant: str, sign: int) -> None:
        """Add to all above a tenant what it holds, or take it away."""
        above = self.chain(tenant)[1:]
        for (family, scope), cell in self._cells.get(tenant, {}).items():
            for name in above:
                target = self._cell(name, family, scope)
                for kind, amount in enumerate(cell):
                    target[kind] += sign * amount

    def _open(self, tenant: str, site: Site) -> Path:
        while len(self._paths) <= site.number:
            self._paths.append({})
        scopes = site.scopes()
        cells = tuple(self._cell(name, site.family, scope) for name in self.chain(tenant) for scope in scopes)
        path = self._paths[site.number][tenant] = (0 if site.family in NOT_DEVICES else site.units, cells)
        return path

    def _cell(self, tenant: str, family: str, scope: str) -> Cell:
        cells = self._cells.setdefault(tenant, {})
        cell = cells.get((family, scope))
        if cell is None:
            cell = cells[(family, scope)] = [0, 0, 0]
            self._scopes.setdefault((tenant, scope), []).append(cell)
        return cell
