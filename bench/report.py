"""What a benchmark gives: metrics with goals, and the reference that was measured beside them."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import msgspec


class Metric(msgspec.Struct, frozen=True):
    """One figure with its goal, if it has one. `at_least` says which side of the goal is good."""

    value: float
    unit: str
    goal: float | None = None
    at_least: bool = True

    @property
    def met(self) -> bool:
        """Whether the goal is reached; whatever has none is."""
        if self.goal is None:
            return True
        return self.value >= self.goal if self.at_least else self.value <= self.goal


class Result(msgspec.Struct, frozen=True):
    """One benchmark's figures."""

    bench: str
    metrics: dict[str, Metric]
    reference: dict[str, float]

    def as_json(self) -> str:
        """The one line that tools read."""
        metrics = {
            name: {"value": round(m.value, 3), "unit": m.unit, "goal": m.goal, "met": m.met}
            for name, m in self.metrics.items()
        }
        reference = {name: round(value, 3) for name, value in self.reference.items()}
        return msgspec.json.encode({"bench": self.bench, "metrics": metrics, "reference": reference}).decode()

    def as_table(self) -> str:
        """The table that people read."""
        lines = [f"{self.bench:22} {'value':>14} {'goal':>14}  unit"]
        for name, m in self.metrics.items():
            bound = "" if m.goal is None else f"{'≥' if m.at_least else '≤'} {m.goal:,.10g}"
            verdict = "" if m.goal is None else "met" if m.met else "MISSED"
            lines.append(f"  {name:20} {_show(m.value):>14} {bound:>14}  {m.unit:12} {verdict}".rstrip())
        lines += [f"  {name:20} {_show(value):>14} {'reference':>14}" for name, value in self.reference.items()]
        return "\n".join(lines)


def _show(value: float) -> str:
    """So many digits that a ratio just below its goal does not look as if it had reached it."""
    return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"


def tell_distance(name: str, value: float, bound: float, unit: str) -> dict[str, Metric]:
    """How far a result is from its bound, in parts of it; no figure where the bound is nothing."""
    return {name: Metric((value - bound) / bound, unit)} if bound > 0 else {}


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this process for one call."""
    begin = process_time()
    work()
    return process_time() - begin


def median(values: list[float]) -> float:
    """The middle one."""
    return sorted(values)[len(values) // 2]
