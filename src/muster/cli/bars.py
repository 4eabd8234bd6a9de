"""`muster cordon`, `drain` and `uncordon`: keep new work off a node, empty it, and give it back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import click

from muster.cli.printing import DRY_RUN, show_plain
from muster.cli.trying import NOTHING_CHANGED, print_node_trial
from muster.model.job import BarKind
from muster.sdk.client import Client
from muster.units import parse_duration, show_duration
from muster.wire.views import BarView, JobView, NodeView

PAGE: Final = 1000
OPERATOR: Final = "operator"
"""Whose the bars are that are set by hand."""
_reason = click.option("--reason", default="", metavar="TEXT", help="Why, for whoever looks at the node.")
_span = click.option("--for", "span", metavar="TIME", help="Lift it by itself after so long, such as 2h.")


@click.command()
@click.argument("node")
@_reason
@_span
@DRY_RUN
def cordon(node: str, reason: str, span: str | None, dry_run: bool) -> None:
    """Keep new work off a node; what runs there goes on."""
    if dry_run:
        _try_cordon(node, reason, span)
        return
    view = _bar(node, BarKind.CORDON, reason, span)
    click.echo(f"{node} is cordoned; {_count(view, 'goes', 'go')} on there")


@click.command()
@click.argument("node")
@_reason
@_span
@click.option("--now", is_flag=True, help="Stop what runs there; it waits again, in its old place.")
@DRY_RUN
def drain(node: str, reason: str, span: str | None, now: bool, dry_run: bool) -> None:
    """Empty a node: nothing new goes there, and what runs there finishes."""
    if dry_run:
        _preview(node)
        return
    view = _bar(node, BarKind.DRAIN, reason, span, lets_finish=not now)
    if not view.jobs:
        click.echo(f"{node} is drained; nothing runs there")
    else:
        click.echo(f"{node} is draining; {_count(view, 'is', 'are')} {'told to stop' if now else 'to finish there'}")


@click.command()
@click.argument("node")
@DRY_RUN
def uncordon(node: str, dry_run: bool) -> None:
    """Lift your cordon and your drain of a node."""
    if dry_run:
        _try_uncordon(node)
        return
    with Client() as client:
        for kind in BarKind:
            client.unbar(node, kind)
        bars = client.node(node).bars
    click.echo(f"{node} is still barred: {show_bars(bars)}" if bars else f"{node} is open for new work")


def show_bars(bars: list[BarView]) -> str:
    """`drain by operator, 1h 30m left: disk swap`, one after the other."""
    return "; ".join(_show_bar(bar) for bar in bars)


def _show_bar(bar: BarView) -> str:
    left = "" if bar.until_ms is None else f", {_show_left(bar.until_ms)} left"
    return f"{bar.kind} by {bar.owner}{left}{': ' if bar.reason else ''}{show_plain(bar.reason)}"


def _show_left(until_ms: int) -> str:
    return show_duration(max(0, until_ms - _now_ms()) // 1000 * 1000)


def _preview(node: str) -> None:
    """Whom a drain would hit, as `top` shows it before it asks."""
    from muster.cli.steering import preview_drain  # here: a drain itself need not load the keys of `top`

    with Client() as client:
        name = client.node(node).name
        there = [job for phase in ("starting", "running") for job in _all_in(client, phase)]
        for line in preview_drain(name, there, client.nodes()):
            click.echo(line)
    click.echo(NOTHING_CHANGED, err=True)


def _try_cordon(node: str, reason: str, span: str | None) -> None:
    with Client() as client:
        view = client.node(node)
        trial = client.try_bar(node, BarKind.CORDON, reason=reason, until_ms=_find_end(span))
    click.echo(f"{node} would be cordoned; {_count(view, 'goes', 'go')} on there")
    print_node_trial(trial)


def _try_uncordon(node: str) -> None:
    with Client() as client:
        bars, trial = client.node(node).bars, client.try_unbar(node)
    others = [bar for bar in bars if bar.owner != OPERATOR]
    if others:
        click.echo(f"{node} would still be barred: {show_bars(others)}")
    else:
        click.echo(f"{node} would be open for new work" if bars else f"{node} is open for new work already")
    print_node_trial(trial)


def _all_in(client: Client, phase: str) -> Iterator[JobView]:
    after: int | None = 0
    while after is not None:
        page = client.list(state="live", phase=phase, after=after, limit=PAGE, order="oldest")
        yield from page.jobs
        after = page.next_after


def _bar(node: str, kind: BarKind, reason: str, span: str | None, *, lets_finish: bool = True) -> NodeView:
    with Client() as client:
        client.bar(node, kind, reason=reason, until_ms=_find_end(span), lets_finish=lets_finish)
        return client.node(node)


def _find_end(span: str | None) -> int | None:
    return None if span is None else _now_ms() + parse_duration(span)


def _count(view: NodeView, one: str, many: str) -> str:
    """`1 job goes`, `2 jobs go`."""
    return f"1 job {one}" if view.jobs == 1 else f"{view.jobs or 'no'} jobs {many}"


def _now_ms() -> int:
    return int(time.time() * 1000)


COMMANDS = {"cordon": cordon, "drain": drain, "uncordon": uncordon}
