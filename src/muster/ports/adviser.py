"""Adviser: somebody who watches what happens and says what it learned. The kernel works without any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from muster.model.event import Advise
from muster.model.fact import Fact

if TYPE_CHECKING:  # a process that runs tasks imports ports too, and must stay small
    from muster.world.world import World


class Adviser(Protocol):
    """Learns from entries in their order; the same entries give the same advice."""

    def observe(self, world: World, facts: Sequence[Fact]) -> None:
        """Learn from an entry that the world holds already."""
        ...

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        """What there is to say now, if it is anything new."""
        ...
