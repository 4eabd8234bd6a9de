"""What others published of a list, beside what was played: `bench league NAME --published FILE`, a table

    list, policy, measure, published, player, within, source

`list` is the stem of a file, `policy` who reached the figure there, `player` who of ours is measured by it. Whoever
plays the same policy is to come within so much of it, parts of a hundred ("7%") or the unit of the measure ("0.3"), or
is shown without a goal if nothing is said; whoever plays another is to be no worse. All measures in it are such that
less is better. No league knows of this table: it is read when all is played, and a list that is not in it has no figure
more than without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.report import Metric
from muster.simulator.traces.record import trace_error
from muster.simulator.traces.table import DropRowError, Row, Seen, gather

COLUMNS: Final = ("list", "policy", "measure", "published", "player", "within", "source")
PART: Final = "%"


class Known(NamedTuple):
    """One published figure, and who is measured by it. `within` is None where no re-creation is asked for."""

    stem: str
    policy: str
    measure: str
    value: float
    player: str
    within: float | None
    is_part: bool


def read_published(path: Path) -> list[Known]:
    """All figures of a table; a row that makes no sense is refused, for a goal that is passed over looks met."""
    known, seen = gather(path, COLUMNS, _known, "figure")
    for reason, lines in seen.lines.items():
        raise trace_error(path, lines[0], reason)
    return known


def _known(row: Row, seen: Seen) -> Known:
    stem, policy, measure, player = (row.text(column) for column in ("list", "policy", "measure", "player"))
    within, value = row.text("within"), row.number("published")
    if value <= 0 or not (stem and policy and measure and player):
        raise DropRowError("a figure has names and is more than nothing")
    seen.check_id("/".join((stem, policy, measure, player)))
    try:
        most = float(within.removesuffix(PART)) if within else None
    except ValueError:
        raise DropRowError(f"within is {within!r}, not a number") from None
    return Known(stem, policy, measure, value, player, most, is_part=not within or within.endswith(PART))


def compare(metrics: Mapping[str, Metric], published: Sequence[Known]) -> dict[str, Metric]:
    """How far those who were played are from what was published of the same list."""
    found: dict[str, Metric] = {}
    for known in published:
        mine = metrics.get(f"{known.stem}.{known.player}.{known.measure}")
        if mine is None:
            continue
        name = f"{known.stem}.{known.player}.{known.measure}"
        if known.player != known.policy:
            ratio = mine.value / known.value
            found[f"{name}_of_published_{known.policy}"] = Metric(ratio, "of published", 1.0, at_least=False)
        else:
            found[f"{name}_off_published"] = _distance(mine, known)
    return found


def _distance(mine: Metric, known: Known) -> Metric:
    away = abs(mine.value - known.value)
    value, unit = (100 * away / known.value, "% of published") if known.is_part else (away, mine.unit)
    return Metric(value, unit, known.within, at_least=False)
