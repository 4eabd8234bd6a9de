"""A plant: a bug for the length of a `with`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeAlias
from unittest import mock

from muster.units import Resources
from muster.world.ledger import Ledger, Purse
from muster.world.sites import Site

Plant: TypeAlias = Callable[[], AbstractContextManager[None]]


@contextlib.contextmanager
def quota_asleep() -> Iterator[None]:
    """The ledger takes no notice of what is held, or given back: a piece of several plants."""
    honest = Ledger.charge

    def charge(ledger: Ledger, tenant: str, site: Site, ask: Resources, tasks: int) -> Purse:  # noqa: ARG001 - the bug
        return honest(ledger, tenant, site, ask, 0)

    with mock.patch.object(Ledger, "charge", charge):
        yield
