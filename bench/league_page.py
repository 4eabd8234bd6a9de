"""The page of a league: every measure beside its bound, as drawings and as tables, and runs of Muster in pictures."""

from __future__ import annotations

from collections.abc import Iterator

from bench.standings import BOUND, Figure, Standing, goals_of, standings_of
from muster.simulator.pages.page import make_page, tell_drawing, tell_figures, tell_table
from muster.simulator.pages.run import tell_run
from muster.simulator.pages.svg import draw_bars, say
from muster.simulator.witness import Picture

SIGHTS_MAX = 8
"""Lists that are drawn one by one for a measure with a bound; a folder may hold hundreds, and all are in the table."""


def show_league(name: str, command: str, figures: dict[str, dict[str, object]], pictures: dict[str, Picture]) -> str:
    """The whole page."""
    standings = standings_of(figures)
    goals = list(goals_of(standings))
    lists = len({stem for table in standings for stem in table.rows} - {"all"})
    cards = [("lists", str(lists)), ("goals met", f"{sum(goal.is_met for _, goal in goals)} of {len(goals)}")]
    sections = [tell_figures(cards), *_tell_goals(goals)]
    sections += [section for table in standings if table.has_bound for section in _tell_bounded(table)]
    sections += [section for told, picture in pictures.items() for section in tell_run(picture, told)]
    sections += [_tell_measure(table) for table in standings if not table.has_bound]
    lead = (
        "The production kernel beside published policies; each is a Profile of the same kernel. A bound is no policy."
    )
    return make_page(f"League {name}", lead, command, sections)


def _tell_goals(goals: list[tuple[str, Figure]]) -> Iterator[str]:
    if goals:
        rows = (
            (name, _show(goal.value), _show(goal.goal or 0.0), "met" if goal.is_met else "missed")
            for name, goal in goals
        )
        table = tell_table("What was aimed at", ("figure", "reached", "goal", "verdict"), rows)
        yield f"<section><h2>Goals</h2>{table}</section>\n"


def _tell_measure(table: Standing) -> str:
    return f"<section><h2>{say(_title(table), 100)}</h2>{_tell_rows(table, 'By list and policy')}</section>\n"


def _title(table: Standing) -> str:
    return f"{table.measure} ({table.unit})"


def _tell_rows(table: Standing, caption: str) -> str:
    rows = [[stem, *(_cell(row, policy) for policy in table.policies)] for stem, row in table.rows.items()]
    return tell_table(caption, ("list", *table.policies), rows)


def _tell_bounded(table: Standing) -> Iterator[str]:
    title, told = _title(table), _tell_rows(table, "In brackets: how far from the bound, in parts of it")
    bounded = [(stem, row) for stem, row in table.rows.items() if BOUND in row][:SIGHTS_MAX]
    for at, (stem, row) in enumerate(bounded):
        bars = [(say(policy, 24), figure.value) for policy, figure in row.items() if policy != BOUND]
        about = "; ".join(f"{policy}: {_show(figure.value)}" for policy, figure in row.items())
        drawing = draw_bars(f"{title}, {stem}", about, bars, _show, mark=row[BOUND].value)
        words = f"The line is the bound, {_show(row[BOUND].value)}."
        yield tell_drawing(f"{title}: {stem}", words, drawing, told if at == len(bounded) - 1 else "")


def _cell(row: dict[str, Figure], policy: str) -> str:
    if policy not in row:
        return ""
    over = None if policy == BOUND else row[policy].over(row.get(BOUND))
    return _show(row[policy].value) + ("" if over is None else f" ({over:+.3f})")


def _show(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
