"""Equals: what many jobs ask for is in memory once, however often it was said.

Jobs come one by one, each with an ask, needs and the name of a tenant of its own that are equal to those of thousands.
As one object they are compared at a glance, and whoever goes from job to job touches little memory. No decision depends
on it.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from muster.model.spec import ANYWHERE, Needs, Spec
from muster.units import Resources

KINDS_MAX: Final = 4096
"""How many are known at most: with more, all are forgotten, which costs memory and nothing else."""


class Equals:
    """The asks, needs and tenants' names that were met, each by itself."""

    __slots__ = ("_asks", "_names", "_needs")

    def __init__(self) -> None:
        self._start_over()

    def share(self, spec: Spec) -> Spec:
        """The same spec, with what it asks for, needs and belongs to as the first had it that said so."""
        if len(self._asks) + len(self._needs) + len(self._names) >= KINDS_MAX:
            self._start_over()
        ask = self._asks.setdefault(spec.ask, spec.ask)
        needs = self._needs.setdefault(spec.needs, spec.needs)
        tenant = self._names.setdefault(spec.tenant, spec.tenant)
        return replace(spec, tenant=tenant, ask=ask, needs=needs)

    def _start_over(self) -> None:
        self._asks: dict[Resources, Resources] = {}
        self._needs: dict[Needs, Needs] = {ANYWHERE: ANYWHERE}
        self._names: dict[str, str] = {}
