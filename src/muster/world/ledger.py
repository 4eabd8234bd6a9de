"""The quota ledger: what each tenant holds now, kept equal to the sum of its leases. It knows amounts, not limits."""

from __future__ import annotations

from muster.model.errors import InvariantError
from muster.units import AMOUNT_MAX, ZERO, Resources


class Ledger:
    """Use by tenant; what is held by nobody is ZERO."""

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[str, Resources] = {}

    def used(self, tenant: str) -> Resources:
        """What a tenant holds."""
        return self._used.get(tenant, ZERO)

    def charge(self, tenant: str, ask: Resources, tasks: int) -> None:
        """Add `tasks` asks. The inverse of `refund`."""
        self._move(tenant, ask, tasks)

    def refund(self, tenant: str, ask: Resources, tasks: int) -> None:
        """Take `tasks` asks away. The inverse of `charge`."""
        self._move(tenant, ask, -tasks)

    def holdings(self) -> dict[str, Resources]:
        """Every tenant that holds something, by name."""
        return {tenant: self._used[tenant] for tenant in sorted(self._used)}

    def fork(self) -> Ledger:
        """An independent copy."""
        twin = Ledger()
        twin._used = self._used.copy()
        return twin

    def _move(self, tenant: str, ask: Resources, tasks: int) -> None:
        used = self._used.get(tenant, ZERO)
        gpus = used.gpus + ask.gpus * tasks
        cpu = used.cpu_milli + ask.cpu_milli * tasks
        memory = used.memory_bytes + ask.memory_bytes * tasks
        milli = used.gpu_milli + ask.gpu_milli * tasks
        if not (0 <= gpus <= AMOUNT_MAX and 0 <= cpu <= AMOUNT_MAX and 0 <= memory <= AMOUNT_MAX and milli >= 0):
            raise InvariantError("the ledger stays in range", f"{tenant}: {used} and {tasks} of {ask}")
        if gpus or cpu or memory or milli:
            self._used[tenant] = Resources(gpus, cpu, memory, milli)
        else:
            del self._used[tenant]
