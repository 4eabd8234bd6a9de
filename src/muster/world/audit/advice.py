"""The auditor's books of advice: what was said last of each kind, and that nobody goes by it past its time."""

from __future__ import annotations

from muster.model import fact
from muster.model.advice import Advice
from muster.world.laws.law import require, require_same


class AdviceBooks:
    """Advice by kind, from the facts alone."""

    def __init__(self) -> None:
        self._advice: dict[str, Advice] = {}

    def book(self, item: fact.Advised | fact.AdviceDropped, at: int) -> None:
        """Something was said, in a newer version than before; or it is over, in time."""
        known = self._advice.get(item.kind)
        if isinstance(item, fact.Advised):
            follows = known is None or item.advice.version > known.version
            require(follows, "versions of advice rise", f"{item.kind}: {item.advice.version} after {known}")
            self._advice[item.kind] = item.advice
        else:
            is_due = known is not None and known.expires_at <= at
            require(is_due, "only advice that is over is dropped", f"{item.kind} at {at}")
            del self._advice[item.kind]

    def compare(self, kept: dict[str, Advice], at: int) -> None:
        """The world knows the same, and nothing that is over."""
        require_same(kept, self._advice, "advice is what the facts say")
        overdue = [kind for kind, advice in kept.items() if advice.expires_at <= at]
        require(not overdue, "no advice stands past its time", f"at {at}: {overdue}")
