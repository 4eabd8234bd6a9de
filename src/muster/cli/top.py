"""`muster top`: the whole fleet on one screen, live. What is wrong comes first; then the room, then who runs and waits.

A frame is drawn again every two seconds, and after every key: `muster.cli.steering` says what keys do. Without a
terminal it prints one frame.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import click

from muster.cli.bars import show_bars
from muster.cli.printing import (
    is_terminal,
    show_ago,
    show_ask,
    show_end,
    show_extra,
    show_mark,
    show_plain,
    show_progress,
    spell_table,
)
from muster.cli.steering import Panel, Row, Subject
from muster.sdk.client import Client
from muster.units import show_cpus, show_duration, show_instant
from muster.wire.views import Health, JobView, NodeView

EVERY_S: Final = 2.0
PAGE: Final = 1000
PLACED: Final = ("running", "starting", "stopping")
ROWS_PLAIN: Final = 15
METER: Final = 30
RECENT_MS: Final = 15 * 60 * 1000


class Sight(NamedTuple):
    """All that one frame shows."""

    health: Health
    live: Sequence[JobView]
    failed: Sequence[JobView]
    nodes: Sequence[NodeView]
    is_cut: bool


@click.command()
@click.option("--once", is_flag=True, help="One frame, as without a terminal.")
def top(once: bool) -> None:
    """Watch the fleet: what is wrong, the room there is, who runs and who waits. Look into a line with Enter, drain a
    node with d, cancel a job with c, leave with q."""
    with Client() as client:
        if once or not (is_terminal() and sys.stdin.isatty()):
            click.echo("".join(f"{row.text}\n" for row in draw(look(client), ROWS_PLAIN, 200)), nl=False)
            return
        _steer(client)


def _steer(client: Client) -> None:
    """Draw, wait for a key or a while, and do what it says, until somebody leaves."""
    from muster.cli.commands import run  # here: it loads whatever command is looked into with
    from muster.cli.screen import open_screen, paint, read_key

    panel, key, sight = Panel(run), "", look(client)
    with open_screen():
        while True:
            size = os.get_terminal_size()
            rows = draw(sight, max(4, size.lines - 16), size.columns)
            panel.press(key, rows, sight.live, sight.nodes)
            if panel.is_left:
                return
            lines = panel.page[panel.offset :] or [row.text for row in rows]
            is_marking = not panel.page and panel.subject_of(rows) is not None
            paint(lines, panel.marked if is_marking else None, panel.foot())
            key = read_key(EVERY_S)
            if not key or panel.page:  # keys that only move are answered at once, from what is known
                sight = look(client)


def look(client: Client) -> Sight:
    """What there is to see now."""
    health = client.health()
    live = client.list(limit=PAGE, order="oldest")
    jobs, is_cut = {job.id: job for job in live.jobs}, live.next_after is not None
    for phase in PLACED if is_cut else ():  # those who run may have come after very many who wait
        jobs |= {job.id: job for job in client.list(phase=phase, limit=PAGE).jobs}
    failed = client.list(state="over", phase="failed", limit=PAGE, since_ms=_recently()).jobs
    return Sight(health, list(jobs.values()), failed, client.nodes(), is_cut)


def draw(sight: Sight, rows: int, width: int) -> list[Row]:
    """One frame, line by line; `rows` is how many jobs it has room for."""
    parts = [[Row(_head(sight))], _wrong(sight, rows // 2), _room(sight.nodes), _jobs(sight, rows, width)]
    return [row for part in parts for row in (*part, Row(""))][:-1]


def _head(sight: Sight) -> str:
    health, now = sight.health, show_instant(int(time.time() * 1000))[:19]
    running = sum(job.phase == "running" for job in sight.live)
    waiting = sum(job.phase == "queued" for job in sight.live)
    jobs = f"{running} running, {waiting}{_plus(sight)} waiting"
    return f"muster {health.version} · {now}Z · {health.status} · lag {show_duration(health.lag_ms)} · {jobs}"


def _plus(sight: Sight) -> str:
    """Whether there are more than were looked at."""
    return "+" if sight.is_cut else ""


def _wrong(sight: Sight, most: int) -> list[Row]:
    """What somebody who was woken up wants to know first: what is not as it should be, and whom it hit."""
    found: list[Row] = []
    if not sight.health.leader:
        found.append(Row("! no leader: changes do not get through; `muster doctor` says why"))
    troubled = [node for node in sight.nodes if node.phase != "up" or node.bars or node.lacks is not None]
    found += [Row(f"! {_show_trouble(node)}", Subject("node", node.name)) for node in troubled]
    hit = [job for job in sight.live if job.epoch > 1 and _is_recent(job)]
    found += [_row_of(job, f"was started again, as try {job.epoch}") for job in hit]
    found += [_row_of(job, show_end(job)) for job in sight.failed]
    if not found:
        return [Row("nothing is wrong")]
    more = [Row(f"! … and {len(found) - most} more")] if len(found) > most else []
    return [*found[:most], *more]


def _show_trouble(node: NodeView) -> str:
    parts = (
        node.phase if node.phase != "up" else "",
        show_bars(node.bars),
        "lacks hardware that it joined with" if node.lacks is not None else "",
    )
    return f"node {node.name}: {'; '.join(filter(None, parts))}, {node.jobs} job{'s' if node.jobs != 1 else ''} there"


def _row_of(job: JobView, what: str) -> Row:
    name = f" {show_plain(job.name)}" if job.name else ""
    return Row(f"! job {job.id}{name} {what}, {show_ago(job.since_ms)} ago", Subject("job", str(job.id)))


def _is_recent(job: JobView) -> bool:
    return job.since_ms > _recently()


def _recently() -> int:
    return int(time.time() * 1000) - RECENT_MS


def _room(nodes: Sequence[NodeView]) -> list[Row]:
    if not nodes:
        return [Row("no node has reported yet")]
    up = [node for node in nodes if node.phase == "up"]
    alone = Subject("node", nodes[0].name) if len(nodes) == 1 else None
    lines = [Row(f"nodes {len(up)} up of {len(nodes)}", alone)]
    for word, field, show in (("GPUs", "gpus", str), ("CPUs", "cpu_milli", show_cpus)):
        whole = sum(getattr(node.capacity, field) for node in up)
        free = sum(getattr(node.free, field) for node in up)
        if whole:
            filled = METER * (whole - free) // whole
            meter = "█" * filled + "░" * (METER - filled)
            lines.append(Row(f"{word}  {meter}  {show(whole - free)} of {show(whole)} in use"))
    return lines


def _jobs(sight: Sight, rows: int, width: int) -> list[Row]:
    order = {"running": 0, "starting": 1, "stopping": 2, "queued": 3}
    jobs = sorted(sight.live, key=lambda job: (order.get(job.phase, 9), job.id))
    if not jobs:
        return [Row("no job runs or waits")]
    heads = ("JOB", "NAME", "TENANT", "PHASE", "TASKS", "EACH", "SINCE", "WHERE")
    head, *lines = spell_table(heads, [_cells(job) for job in jobs[:rows]], width).splitlines()
    about = [Row(line, Subject("job", str(job.id))) for line, job in zip(lines, jobs, strict=False)]
    more = [Row(f"… and {len(jobs) - rows}{_plus(sight)} more: muster ls")] if len(jobs) > rows else []
    return [Row(head), *about, *more]


def _cells(job: JobView) -> tuple[str, ...]:
    nodes = ",".join(place.node for place in job.places[:3]) + show_extra(job)
    where = (
        show_progress(job)
        or ", ".join(word for word in (nodes, show_mark(job)) if word)
        or ("held" if job.held else f"muster why {job.id}" if job.phase == "queued" else "-")
    )
    each = (str(job.id), job.name or "-", job.tenant, job.phase, str(job.tasks), show_ask(job.ask))
    return (*each, show_ago(job.since_ms), where)


COMMANDS = {"top": top}
