"""Equals: what many jobs ask for is in memory once, however often it was said.

Jobs come one by one, each with an ask, needs and the name of a tenant of its own that are equal to those of thousands.
As one object they are compared at a glance, and whoever goes from job to job touches little memory. No decision depends
on it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec.structs import replace

from muster.model.spec import ANYWHERE, Needs, Spec
from muster.units import Resources

KINDS_MAX: Final = 4096
"""How many are known at most: with more, all are forgotten, which costs memory and nothing else."""


Kind: TypeAlias = tuple[str, Resources, Needs]
"""Whose, what and where."""


class Equals:
    """The asks, needs and tenants' names that were met, each by itself, and all three together."""

    __slots__ = ("_asks", "_met", "_names", "_needs")

    def __init__(self) -> None:
        self._start_over()

    def share(self, spec: Spec) -> Spec:
        """The same spec, with what it asks for, needs and belongs to as the first had it that said so."""
        key = spec.tenant, spec.ask, spec.needs
        tenant, ask, needs = self._met.get(key) or self._meet(*key)
        return replace(spec, tenant=tenant, ask=ask, needs=needs)

    def _meet(self, tenant: str, ask: Resources, needs: Needs) -> Kind:
        """Whatever of the three was met before, as it was; from now on they are known together too."""
        if len(self._met) >= KINDS_MAX:
            self._start_over()
        tenant, ask = self._names.setdefault(tenant, tenant), self._asks.setdefault(ask, ask)
        kind = tenant, ask, self._needs.setdefault(needs, needs)
        self._met[kind] = kind
        return kind

    def _start_over(self) -> None:
        self._met: dict[Kind, Kind] = {}
        self._asks: dict[Resources, Resources] = {}
        self._needs: dict[Needs, Needs] = {ANYWHERE: ANYWHERE}
        self._names: dict[str, str] = {}
