"""Losses: how often each node failed of late. Kept exactly, by day; weighted by age only when it is read.

A node that falls silent counts a little, one that is fenced or loses a device counts twice as much: those break what
runs. From the weighted sum a node has a *risk*, in few steps, so that one loss by bad luck makes no difference and a
node that fails again and again does. What follows from a risk is not decided here.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from muster.model.job import NodePhase
from muster.units import DAY_MS
from muster.world.decay import WEIGHT_BITS, halve_every

HALF_LIFE_DAYS: Final = 7
DAYS_KEPT: Final = 10 * HALF_LIFE_DAYS
"""What is older weighs less than a thousandth, and is dropped."""
WEIGHTS: Final = halve_every(HALF_LIFE_DAYS, DAYS_KEPT)
SILENT, BROKEN = 1, 2
"""What a silence counts, and what a loss of the node or of a device does."""
RISKY: Final = (3, 6)
"""From how many weighted points on a node is of risk 1, and of risk 2."""

Days: TypeAlias = tuple[tuple[int, int], ...]
"""Points by day, the oldest first."""


def points_of(before: int, after: int) -> int:
    """What a change of phase counts; silence that ends in a fence counts no more than the fence alone."""
    worth = (0, SILENT, BROKEN)
    return max(0, worth[after] - worth[before])


def risk_of(days: Days, today: int) -> int:
    """The risk of a node today, by what it lost on which day."""
    weighted = sum(points * WEIGHTS[today - day] for day, points in days if today - day <= DAYS_KEPT)
    return sum(weighted >= least << WEIGHT_BITS for least in RISKY)


class Losses:
    """`by_slot` are the losses of the nodes that had any (replaced, never changed: forks share); `risks` are those
    above 0, as they were when they were last settled."""

    __slots__ = ("_is_settled", "_today", "by_slot", "risks")

    def __init__(self) -> None:
        self.by_slot: dict[int, Days] = {}
        self.risks: dict[int, int] = {}
        self._today = 0
        self._is_settled = True

    def note_phase(self, slot: int, before: int, after: NodePhase, at: int) -> None:
        """A node's phase changed."""
        self.note(slot, points_of(before, after), at)

    def note(self, slot: int, points: int, at: int) -> None:
        """A node lost so much."""
        if points:
            today = at // DAY_MS
            days = dict(self._kept(slot, today))
            days[today] = days.get(today, 0) + points
            self.by_slot[slot] = tuple(sorted(days.items()))
            self._is_settled = False

    def settle(self, at: int) -> bool:
        """Weigh all losses by their age now; whether anybody's risk is another than it was."""
        today = at // DAY_MS
        if self._is_settled and today == self._today:
            return False
        before = self.risks
        found = ((slot, risk_of(days, today)) for slot, days in self.by_slot.items())
        self.risks = {slot: risk for slot, risk in found if risk}
        self._today, self._is_settled = today, True
        return self.risks != before

    def count(self, slot: int, at: int) -> int:
        """What a node lost of late, not weighted."""
        return sum(points for _, points in self._kept(slot, at // DAY_MS))

    def kept(self, at: int) -> list[tuple[int, Days]]:
        """All losses that count at an instant, by slot."""
        found = ((slot, self._kept(slot, at // DAY_MS)) for slot in sorted(self.by_slot))
        return [(slot, days) for slot, days in found if days]

    def restore(self, losses: list[tuple[int, Days]]) -> None:
        """The losses that `kept` gave; they are weighed with the next settling."""
        self.by_slot = dict(losses)
        self._is_settled = False

    def fork(self) -> Losses:
        """An independent copy."""
        twin = Losses()
        twin.by_slot, twin.risks = self.by_slot.copy(), self.risks.copy()
        twin._today, twin._is_settled = self._today, self._is_settled
        return twin

    def _kept(self, slot: int, today: int) -> Days:
        return tuple(pair for pair in self.by_slot.get(slot, ()) if today - pair[0] <= DAYS_KEPT)
