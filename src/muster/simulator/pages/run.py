"""The page of one run, made of its picture: how full the fleet was, who waited, who was wide, and was it fair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from muster.simulator.pages.page import make_page, tell_drawing, tell_figures, tell_table
from muster.simulator.pages.svg import Line, Row, draw_bars, draw_lines, draw_spans, say
from muster.simulator.witness import Look, Picture
from muster.units import DAY_MS, HOUR_MS, SECOND_MS, show_duration

LONG_MS: Final = 4 * DAY_MS
WAIT_MARKS: Final = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)


def show_run(picture: Picture, title: str, lead: str, command: str, figures: Sequence[tuple[str, str]]) -> str:
    """The whole page of a run."""
    return make_page(title, lead, command, [tell_figures(figures), *tell_run(picture)])


def tell_run(picture: Picture, of: str = "") -> Iterator[str]:
    """The sections of a run, for a page of one or of several; `of` says whose they are."""
    name = f", {of}" if of else ""
    scale, across = _scale(picture.span_ms)
    looks = picture.looks

    def over_time(read: Callable[[Look], float]) -> list[tuple[float, float]]:
        return [(look.at_ms / scale, read(look)) for look in looks]

    held = draw_lines(
        "GPUs held over time", _range("GPUs held", [look.held for look in looks], picture.gpus),
        [Line("held", over_time(lambda look: look.held), is_area=True)], across, _count, top=picture.gpus,
    )  # fmt: skip
    yield tell_drawing(f"Utilisation{name}", f"GPUs that jobs held, of {picture.gpus:,}.", held)
    waiting = draw_lines(
        "Jobs waiting over time", _range("jobs waiting", [look.waiting for look in looks]),
        [Line("waiting", over_time(lambda look: look.waiting), is_area=True)], across, _count,
    )  # fmt: skip
    yield tell_drawing(f"Queue{name}", "Jobs that waited.", waiting)
    yield _waits(picture, name)
    yield _gangs(picture, scale, across, name)
    parts = [
        Line("all free GPUs", over_time(lambda look: look.free_broken + look.free_whole)),
        Line("of them on nodes in use", over_time(lambda look: look.free_broken), is_area=True),
    ]
    broken = draw_lines(
        "Free GPUs over time", _range("free GPUs on nodes in use", [look.free_broken for look in looks]),
        parts, across, _count,
    )  # fmt: skip
    about = "Free GPUs on nodes that are partly in use: whoever wants whole nodes cannot have them."
    yield tell_drawing(f"Fragmentation{name}", about, broken)
    yield _fairness(picture, name)


def _waits(picture: Picture, name: str) -> str:
    lines = [
        Line(say(share.tenant), [(max(1.0, wait / SECOND_MS), part) for wait, part in share.waits])
        for share in picture.shares
        if share.waits
    ]
    rows = [(share.tenant, f"{share.median_wait_ms / SECOND_MS:g} s") for share in picture.shares]
    about = "; ".join(f"{tenant}: median {median}" for tenant, median in rows)
    drawing = draw_lines("Waits by tenant", about, lines, _seconds, _percent, top=100.0, marks=WAIT_MARKS, height=280)
    words = "How many of a tenant's jobs had started within a time: the sooner a line is high, the less was waited."
    return tell_drawing(f"Waits by tenant{name}", words, drawing, _tenants(picture))


def _gangs(picture: Picture, scale: float, across: Callable[[float], str], name: str) -> str:
    rows = []
    for gang in picture.gangs:
        until = gang.spans_ms[0][0] if gang.spans_ms else gang.ended_ms or picture.span_ms
        told = f"{gang.name} of {gang.tenant}: {gang.gpus} GPUs"
        spans = [(begin / scale, end / scale) for begin, end in gang.spans_ms]
        label = f"{say(gang.name, 20)} · {gang.gpus:,}"
        rows.append(Row(label, say(told, 120), (gang.submit_ms / scale, until / scale), spans))
    widest = max((gang.gpus for gang in picture.gangs), default=0)
    drawing = draw_spans(
        "When the widest jobs ran",
        f"{len(rows)} jobs, the widest of {widest} GPUs",
        rows,
        picture.span_ms / scale,
        across,
    )
    words = (
        "The widest jobs and their GPUs: dotted while they waited for their first start, full while they held places."
    )
    return tell_drawing(f"Largest gangs{name}", words, drawing)


def _fairness(picture: Picture, name: str) -> str:
    rows = [(say(share.tenant, 24), share.slowdown) for share in picture.shares]
    about = "; ".join(f"{share.tenant}: {share.slowdown:g}" for share in picture.shares)
    drawing = draw_bars("Mean slowdown by tenant", about, rows, lambda value: f"{value:.2f}", mark=1.0)
    words = (
        "How many times longer than its run a mean job took from submit to end; runs below ten minutes count as ten. "
        f"The line is 1: no wait at all. Jain's index over tenants is {picture.fairness:g}; 1 would be all alike."
    )
    return tell_drawing(f"Fairness{name}", words, drawing, _tenants(picture))


def _tenants(picture: Picture) -> str:
    heads = ("tenant", "jobs", "GPU-hours", "median wait", "p90 wait", "slowdown")
    rows = (
        (
            share.tenant,
            f"{share.jobs:,}",
            f"{share.gpu_hours:,.0f}",
            show_duration(share.median_wait_ms),
            show_duration(share.p90_wait_ms),
            f"{share.slowdown:.2f}",
        )
        for share in picture.shares
    )
    return tell_table("By tenant, those with the most GPU time first", heads, rows)


def _range(what: str, values: Sequence[int], most: int = 0) -> str:
    """A curve in words."""
    if not values:
        return f"nothing was seen of {what}"
    mean = sum(values) / len(values)
    return f"{what}: from {min(values):,} to {max(values):,}, in the mean {mean:,.0f}{f' of {most:,}' if most else ''}"


def _scale(span_ms: int) -> tuple[float, Callable[[float], str]]:
    """What one is on the axis of time, and how it is told."""
    return (DAY_MS, lambda x: f"{x:g} d") if span_ms > LONG_MS else (HOUR_MS, lambda x: f"{x:g} h")


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:g}"


def _percent(value: float) -> str:
    return f"{value:g} %"


def _seconds(value: float) -> str:
    return show_duration(int(value * SECOND_MS)).replace(" 0s", "")
