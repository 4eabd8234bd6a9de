"""`muster top`: the whole fleet on one screen, live. What is wrong comes first; then the room, then who runs and waits.

Plain text and a few escape sequences: it draws a frame again every two seconds and leaves with `q`. Without a terminal
it prints one frame.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

import click

from muster.cli.bars import show_bars
from muster.cli.printing import is_terminal, show_ago, show_ask, show_end, show_progress, spell_table
from muster.sdk.client import Client
from muster.units import show_cpus, show_duration, show_instant
from muster.wire.views import Health, JobView, NodeView

EVERY_S: Final = 2.0
PAGE: Final = 1000
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
    """Watch the fleet: what is wrong, the room there is, who runs and who waits. Leave with q."""
    with Client() as client:
        if once or not (is_terminal() and sys.stdin.isatty()):
            click.echo(draw(_look(client), ROWS_PLAIN, 200), nl=False)
            return
        with _screen():
            while not _left(EVERY_S if _show(client) else 0.0):
                pass


def _show(client: Client) -> bool:
    size = os.get_terminal_size()
    frame = draw(_look(client), max(4, size.lines - 16), size.columns).splitlines()[: size.lines - 2]
    body = "".join(f"{line}\x1b[K\r\n" for line in frame)
    click.echo(f"\x1b[H{body}\x1b[J\x1b[7m q \x1b[0m leave", nl=False, color=True)
    return True


@contextmanager
def _screen() -> Iterator[None]:
    """A screen of its own, with single keys; whatever happens, the old one comes back."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    click.echo("\x1b[?1049h\x1b[?25l\x1b[2J", nl=False, color=True)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        click.echo("\x1b[?25h\x1b[?1049l", nl=False, color=True)


def _left(span_s: float) -> bool:
    """Wait for a key, at most so long; whether it was one to leave with."""
    import select

    ready, _, _ = select.select([sys.stdin], [], [], span_s)
    return bool(ready) and os.read(sys.stdin.fileno(), 1) in (b"q", b"Q", b"\x03", b"\x1b", b"")


def _look(client: Client) -> Sight:
    health = client.health()
    live = client.list(limit=PAGE)
    failed = client.list(state="over", phase="failed", limit=PAGE).jobs
    recent = [job for job in failed if job.since_ms > int(time.time() * 1000) - RECENT_MS]
    return Sight(health, live.jobs, recent, client.nodes(), live.next_after is not None)


def draw(sight: Sight, rows: int, width: int) -> str:
    """One frame as text; `rows` is how many jobs it has room for."""
    parts = [_head(sight), _wrong(sight, rows // 2), _room(sight.nodes), _jobs(sight, rows, width)]
    return "\n".join(part for part in parts if part)


def _head(sight: Sight) -> str:
    health, now = sight.health, show_instant(int(time.time() * 1000))[:19]
    running = sum(job.phase == "running" for job in sight.live)
    waiting = sum(job.phase == "queued" for job in sight.live)
    more = "+" if sight.is_cut else ""
    jobs = f"{running} running, {waiting} waiting{more}"
    return f"muster {health.version} · {now}Z · {health.status} · lag {show_duration(health.lag_ms)} · {jobs}\n"


def _wrong(sight: Sight, most: int) -> str:
    """What somebody who was woken up wants to know first."""
    found: list[str] = []
    if not sight.health.leader:
        found.append("no leader: changes do not get through; `muster up` starts it")
    for node in sight.nodes:
        if node.phase != "up" or node.bars or node.lacks is not None:
            what = "; ".join(
                part
                for part in (
                    node.phase if node.phase != "up" else "",
                    show_bars(node.bars),
                    "lacks hardware that it joined with" if node.lacks is not None else "",
                )
                if part
            )
            found.append(f"node {node.name}: {what}, {node.jobs} job{'s' if node.jobs != 1 else ''} there")
    found += [f"job {job.id} {job.name} {show_end(job)}, {show_ago(job.since_ms)} ago" for job in sight.failed[::-1]]
    if not found:
        return "nothing is wrong\n"
    more = [f"… and {len(found) - most} more"] if len(found) > most else []
    return "".join(f"! {line}\n" for line in [*found[:most], *more])


def _room(nodes: Sequence[NodeView]) -> str:
    if not nodes:
        return "no node has reported yet\n"
    up = [node for node in nodes if node.phase == "up"]
    lines = [f"nodes {len(up)} up of {len(nodes)}"]
    for word, field, show in (("GPUs", "gpus", str), ("CPUs", "cpu_milli", show_cpus)):
        whole = sum(getattr(node.capacity, field) for node in up)
        free = sum(getattr(node.free, field) for node in up)
        if whole:
            filled = METER * (whole - free) // whole
            meter = "█" * filled + "░" * (METER - filled)
            lines.append(f"{word}  {meter}  {show(whole - free)} of {show(whole)} in use")
    return "\n".join(lines) + "\n"


def _jobs(sight: Sight, rows: int, width: int) -> str:
    order = {"running": 0, "starting": 1, "stopping": 2, "queued": 3}
    jobs = sorted(sight.live, key=lambda job: (order.get(job.phase, 9), job.id))
    if not jobs:
        return "no job runs or waits\n"
    table = spell_table(
        ("JOB", "NAME", "TENANT", "PHASE", "TASKS", "EACH", "SINCE", "WHERE"),
        [_row(job) for job in jobs[:rows]],
        width,
    )
    return table + (f"… and {len(jobs) - rows} more: muster ls\n" if len(jobs) > rows else "")


def _row(job: JobView) -> tuple[str, ...]:
    where = show_progress(job) or ",".join(place.node for place in job.places[:3]) or ("held" if job.held else "-")
    each = (str(job.id), job.name or "-", job.tenant, job.phase, str(job.tasks), show_ask(job.ask))
    return (*each, show_ago(job.since_ms), where)


COMMANDS = {"top": top}
