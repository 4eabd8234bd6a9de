"""Drawings as SVG inside a page: lines over time, distributions, bars, and who held places when.

A drawing is text made of numbers and of names that were escaped by `say`; it carries no colours, for those are the
page's and differ by day and night. Every drawing has a title and a description in words for those who cannot see it.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

WIDTH: Final = 760
LEFT: Final = 64
RIGHT: Final = 16
TOP: Final = 12
FOOT: Final = 34
NAME_MAX: Final = 36
ABOUT_MAX: Final = 900
INKS: Final = 8
"""How many lines differ in colour and dashes."""

Point = tuple[float, float]


class Line(NamedTuple):
    """Points from left to right, and what they are called; steps hold until the next point, an area is filled."""

    name: str
    points: Sequence[Point]
    is_area: bool = False
    is_steps: bool = True


class Row(NamedTuple):
    """One row of a drawing of spans: a wait, drawn thin, and the spans."""

    name: str
    note: str
    wait: tuple[float, float]
    spans: Sequence[tuple[float, float]]


def say(text: str, most: int = NAME_MAX) -> str:
    """Somebody else's words as part of a page: short, without signs that steer, and escaped."""
    plain = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return html.escape(plain if len(plain) <= most else plain[: most - 1] + "…", quote=True)


def draw_lines(
    title: str,
    about: str,
    lines: Sequence[Line],
    across: Callable[[float], str],
    up: Callable[[float], str],
    *,
    top: float = 0.0,
    marks: Sequence[float] = (),
    height: int = 240,
) -> str:
    """Lines over one scale; `across` and `up` say in words what stands on the axes. With `marks` of its own, the scale
    across is logarithmic."""
    xs = [x for line in lines for x, _ in line.points]
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    most = max([top, *(y for line in lines for _, y in line.points)]) or 1.0
    place = _log_place(max(1.0, low), max(2.0, high)) if marks else _place(low, high)
    rise = _rise(most, height)
    ticks = [mark for mark in marks if max(1.0, low) <= mark <= max(2.0, high)] if marks else _ticks(high)
    body = [*_grid_up(_ticks(most), rise, up), *_marks(ticks, place, across, height)]
    for at, line in enumerate(lines):
        body.append(_path(line, at % INKS, place, rise))
    return _frame(title, about, body, height) + _legend(lines)


def draw_spans(title: str, about: str, rows: Sequence[Row], until: float, across: Callable[[float], str]) -> str:
    """Who held places when: a row each, the wait before as a thin line."""
    left, each = 190, 18
    height = TOP + each * len(rows) + FOOT
    place = _place(0.0, until, left)
    body = _marks(_ticks(until), place, across, height)
    for at, row in enumerate(rows):
        y = TOP + each * at
        body.append(f'<text class="name" x="{left - 8}" y="{y + 12}">{row.name}</text>')
        begin, end = (place(x) for x in row.wait)
        body.append(f'<line class="wait" x1="{begin:.1f}" x2="{end:.1f}" y1="{y + 8}" y2="{y + 8}"/>')
        bars = (f'x="{place(a):.1f}" width="{max(1.0, place(b) - place(a)):.1f}"' for a, b in row.spans)
        body += [f'<rect class="span" {bar} y="{y + 2}" height="12"><title>{row.note}</title></rect>' for bar in bars]
    return _frame(title, about, body, height)


def draw_bars(
    title: str, about: str, rows: Sequence[tuple[str, float]], show: Callable[[float], str], mark: float | None = None
) -> str:
    """Rows of bars with their figures; a mark is a line across all of them, such as a bound."""
    left, each = 190, 24
    height = TOP + each * len(rows) + 8
    most = max([mark or 0.0, *(value for _, value in rows)]) or 1.0
    room = WIDTH - left - RIGHT - 90
    body = []
    for at, (name, value) in enumerate(rows):
        y, wide = TOP + each * at, max(0.0, room * value / most)
        body.append(f'<text class="name" x="{left - 8}" y="{y + 14}">{name}</text>')
        body.append(f'<rect class="bar" x="{left}" y="{y + 2}" width="{wide:.1f}" height="16"/>')
        body.append(f'<text class="figure" x="{left + wide + 6:.1f}" y="{y + 14}">{html.escape(show(value))}</text>')
    if mark is not None:
        x = left + room * mark / most
        body.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 4}"/>')
    return _frame(title, about, body, height)


def _frame(title: str, about: str, body: Iterable[str], height: int) -> str:
    words = say(f"{title}. {about}", ABOUT_MAX)
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{words}">{"".join(body)}</svg>'


def _legend(lines: Sequence[Line]) -> str:
    if len(lines) < 2:
        return ""
    sample = '<svg viewBox="0 0 28 8" aria-hidden="true"><path class="ink{}" d="M0 4H28"/></svg>'
    keys = (f"<li>{sample.format(at % INKS)}{line.name}</li>" for at, line in enumerate(lines))
    return f'<ul class="keys">{"".join(keys)}</ul>'


def _path(line: Line, ink: int, place: Callable[[float], float], rise: Callable[[float], float]) -> str:
    """One path. Points that come to lie on the same hundredth are drawn once."""
    if not line.points:
        return ""
    steps: list[str] = []
    before = ("", "")
    for x, y in line.points:
        here = (f"{place(x):.1f}", f"{rise(y):.1f}")
        if here == before:
            continue
        x_here, y_here = here
        on = f"H{x_here}V{y_here}" if line.is_steps else f"L{x_here} {y_here}"
        steps.append(on if steps else f"M{x_here} {y_here}")
        before = here
    path = f'<path class="ink{ink}" d="{"".join(steps)}"/>'
    if not line.is_area:
        return path
    begin = f"{place(line.points[0][0]):.1f}"
    return f'<path class="fill{ink}" d="{"".join(steps)}V{rise(0.0):.1f}H{begin}Z"/>{path}'


def _grid_up(ticks: Sequence[float], rise: Callable[[float], float], show: Callable[[float], str]) -> list[str]:
    return [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{rise(tick):.1f}" y2="{rise(tick):.1f}"/>'
        f'<text class="up" x="{LEFT - 8}" y="{rise(tick) + 4:.1f}">{html.escape(show(tick))}</text>'
        for tick in ticks
    ]


def _marks(
    ticks: Sequence[float], place: Callable[[float], float], show: Callable[[float], str], height: int
) -> list[str]:
    return [
        f'<line class="grid" x1="{place(tick):.1f}" x2="{place(tick):.1f}" y1="{TOP}" y2="{height - FOOT}"/>'
        f'<text class="across" x="{place(tick):.1f}" y="{height - FOOT + 18}">{html.escape(show(tick))}</text>'
        for tick in ticks
    ]


def _place(low: float, high: float, left: int = LEFT) -> Callable[[float], float]:
    room, span = WIDTH - left - RIGHT, (high - low) or 1.0
    return lambda x: left + room * (min(max(x, low), high) - low) / span


def _log_place(low: float, high: float) -> Callable[[float], float]:
    place = _place(math.log(low), math.log(high))
    return lambda x: place(math.log(max(low, x)))


def _rise(most: float, height: int) -> Callable[[float], float]:
    room = height - TOP - FOOT
    return lambda y: TOP + room * (1 - y / most)


def _ticks(most: float) -> list[float]:
    """From nothing on, four to eight round numbers up to the most."""
    if most <= 0:
        return [0.0]
    step = 10.0 ** math.floor(math.log10(most))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1.0, 2.0) if most / (step * part) <= 8)
    return [step * at for at in range(int(most / step + 1e-9) + 1)]
