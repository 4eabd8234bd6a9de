"""The figures of a league, sorted for a reader: by measure, then by list, then by policy, each beside its bound.

Metrics are named `<list>.<policy>.<measure>`; whoever plays a bound is called `bound`. Nothing here knows a league.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

BOUND: Final = "bound"


class Figure(NamedTuple):
    """One figure, its goal if it has one, and whether that is met."""

    value: float
    goal: float | None = None
    is_met: bool = True

    def over(self, bound: Figure | None) -> float | None:
        """How far it is from the bound, in parts of the bound."""
        return None if bound is None or not bound.value else (self.value - bound.value) / bound.value


class Standing(NamedTuple):
    """One measure of a league: what each policy reached on each list."""

    measure: str
    unit: str
    rows: dict[str, dict[str, Figure]]

    @property
    def policies(self) -> list[str]:
        """Who played, in the order in which they first appear; a bound comes first."""
        names = dict.fromkeys(policy for row in self.rows.values() for policy in row)
        return sorted(names, key=lambda name: name != BOUND)

    @property
    def has_bound(self) -> bool:
        """Whether any list has one."""
        return any(BOUND in row for row in self.rows.values())


def standings_of(metrics: dict[str, dict[str, Any]]) -> list[Standing]:
    """All measures, those with a bound first, else in the order in which they appear."""
    found: dict[tuple[str, str], dict[str, dict[str, Figure]]] = {}
    for name, metric in metrics.items():
        stem, policy, measure = _split(name)
        figure = Figure(metric["value"], metric.get("goal"), metric.get("met", True))
        found.setdefault((measure, metric["unit"]), {}).setdefault(stem, {})[policy] = figure
    tables = [Standing(measure, unit, rows) for (measure, unit), rows in found.items()]
    return sorted(tables, key=lambda table: not table.has_bound)


def goals_of(standings: list[Standing]) -> Iterator[tuple[str, Figure]]:
    """Every figure that has a goal, under its full name."""
    for table in standings:
        for stem, row in table.rows.items():
            for policy, figure in row.items():
                if figure.goal is not None:
                    yield f"{stem}, {policy}, {table.measure} ({table.unit})", figure


def draw_standings(standings: list[Standing], width: int) -> Iterator[str]:
    """Small charts for a terminal: a bar for each policy on each list that has a bound, and how far it is from it."""
    room = max(10, width - 48)
    for table in standings:
        for stem, row in table.rows.items() if table.has_bound else ():
            most = max(figure.value for figure in row.values())
            yield f"{stem}: {table.measure} ({table.unit})"
            for policy, figure in row.items():
                over = None if policy == BOUND else figure.over(row.get(BOUND))
                bar = "█" * max(0, round(room * figure.value / most)) if most > 0 else ""
                far = "" if over is None else f" ({over:+.1%})"
                yield f"  {policy:14} {bar} {figure.value:,.4g}{far}"


def _split(name: str) -> tuple[str, str, str]:
    parts = name.rsplit(".", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else (name, "", "figure")
