"""Following a job: its output as it comes, or its progress, until it is over.

A gang's ranks are shown side by side, each line with its rank in front; of a large gang only the first few. When a job
is tried again the output of the new try follows. The server may restart meanwhile: the client waits for it, and says so
if there is nobody who decides.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Final

import click

from muster.cli.explain import foretell
from muster.cli.printing import show_progress
from muster.sdk.client import LONG_PATIENCE_S, Client
from muster.units import show_money
from muster.wire.views import JobView

RANKS_SHOWN_MAX: Final = 8
POLL_MS: Final = 250
LOG_WAIT_MS: Final = 2_000
SAY_WHY_AFTER_S: Final = 1.0
LOOK_AT_LEADER_S: Final = 10.0
WAIT_MS: Final = 10_000


class Tail:
    """The output of one try of one task, from where it was last read. Whole lines only, if it has a prefix."""

    def __init__(self, client: Client, job: int, task: int, epoch: int, prefix: bytes = b"") -> None:
        self._client = client
        self._job = job
        self._task = task
        self._epoch = epoch
        self._prefix = prefix
        self._offset = 0
        self._rest = b""

    def print_more(self, wait_ms: int = 0) -> bool:
        """Print what is new, waiting for it at most so long; whether there was anything."""
        part = self._client.read_log(self._job, self._task, epoch=self._epoch, offset=self._offset, wait_ms=wait_ms)
        self._offset = part.next_offset
        if part.data:
            self._print(part.data)
        return bool(part.data)

    def finish(self) -> None:
        """Print all that is left: nothing more will come."""
        while self.print_more():
            pass
        if self._rest:
            _write(self._prefix + self._rest + b"\n")
            self._rest = b""

    def _print(self, data: bytes) -> None:
        if not self._prefix:
            _write(data)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        _write(b"".join(self._prefix + line + b"\n" for line in lines))


class Vigil:
    """Says that the leader is away, and that it is back: without one nobody tells how a job ends, and reads go on as if
    nothing had happened."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._look_at = time.monotonic() + LOOK_AT_LEADER_S
        self._is_led = True

    def look(self) -> None:
        """Now and then; to be called whenever nothing is new."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_AT_LEADER_S
        is_led = self._client.health().leader
        if is_led != self._is_led:
            words = "the leader is back" if is_led else "the leader is away: nothing starts or ends before `muster up`"
            click.echo(words, err=True)
        self._is_led = is_led


def await_end(client: Client, job: int) -> JobView:
    """The job once it is over, however long that takes."""
    client.be_patient(LONG_PATIENCE_S)
    vigil = Vigil(client)
    while not (view := client.show(job, wait_ms=WAIT_MS)).is_over:
        vigil.look()
    return view


def follow_output(client: Client, job: int, first_epoch: int = 1) -> JobView:
    """Print a gang's output, try after try, until the job is over; the job as it ended."""
    client.be_patient(LONG_PATIENCE_S)
    view = _await_start(client, job)
    if view.price_micros:
        click.echo(f"job {job} costs {show_money(view.price_micros)} an hour", err=True)
    epoch = first_epoch
    while epoch <= view.epoch:
        if epoch > first_epoch:
            click.echo(f"job {job} is tried again, as epoch {epoch}", err=True)
        view = _follow_try(client, view, epoch)
        epoch += 1
    return view


def _await_start(client: Client, job: int) -> JobView:
    """The job once it has begun a try, or is over without one; says why it waits, if it does for long."""
    say_why_at, vigil = time.monotonic() + SAY_WHY_AFTER_S, Vigil(client)
    while True:
        view = client.show(job, wait_ms=POLL_MS)
        if view.epoch or view.is_over:
            return view
        vigil.look()
        if view.phase == "queued" and time.monotonic() > say_why_at:
            say_why_at = float("inf")
            _say_why(client, job)


def _say_why(client: Client, job: int) -> None:
    """What a job waits for, and until when, if it waits in the line; one that is held does not."""
    why = client.why(job)
    if why.words:
        click.echo(f"job {job} is {why.words}", err=True)
    if why.position and (forecast := foretell(client, job)):
        click.echo(f"  {forecast}", err=True)


def _open_tails(client: Client, view: JobView, epoch: int) -> list[Tail]:
    if view.tasks == 1:
        return [Tail(client, view.id, 0, epoch)]
    shown = min(view.tasks, RANKS_SHOWN_MAX)
    if shown < view.tasks:
        click.echo(f"ranks 0 to {shown - 1} of {view.tasks}; others: muster logs {view.id} --task N", err=True)
    return [Tail(client, view.id, rank, epoch, f"[{rank}] ".encode()) for rank in range(shown)]


def _follow_try(client: Client, view: JobView, epoch: int) -> JobView:
    """Print until this try is over; the job then, which may have begun another."""
    tails, vigil = _open_tails(client, view, epoch), Vigil(client)
    while True:
        wait_ms = LOG_WAIT_MS if len(tails) == 1 else 0
        printed = [tail.print_more(wait_ms) for tail in tails]
        if any(printed):
            continue
        view = client.show(view.id, wait_ms=POLL_MS if len(tails) > 1 else 0)
        if view.is_over or view.epoch > epoch:
            for tail in tails:
                tail.finish()
            return view
        vigil.look()


def follow_tasks(client: Client, job: int, tasks: Sequence[int], epoch: int, *, follow: bool) -> None:
    """Print the output of some tasks side by side, each line with its number in front."""
    client.be_patient(LONG_PATIENCE_S)
    tails = [Tail(client, job, task, epoch, f"[{task}] ".encode()) for task in tasks]
    while follow:
        printed = [tail.print_more() for tail in tails]
        if not any(printed) and client.show(job, wait_ms=POLL_MS).is_over:
            break
    for tail in tails:
        tail.finish()


def follow_progress(client: Client, job: int) -> JobView:
    """Show how far an array is until it is over: one line that changes on a terminal, else a line per tenth."""
    client.be_patient(LONG_PATIENCE_S)
    is_terminal = sys.stderr.isatty()
    told, say_why_at, vigil = -1, time.monotonic() + SAY_WHY_AFTER_S, Vigil(client)
    while True:
        view = client.show(job, wait_ms=POLL_MS)
        tenth = _tenths_done(view)
        vigil.look()
        if view.phase == "queued" and time.monotonic() > say_why_at:
            say_why_at = float("inf")
            click.echo("\r\033[K" if is_terminal else "", nl=False, err=True)
            _say_why(client, job)
        if is_terminal:
            click.echo(f"\r\033[K{show_progress(view)}", nl=view.is_over, err=True)
        elif tenth != told:
            click.echo(show_progress(view), err=True)
        told = tenth
        if view.is_over:
            return view


def _tenths_done(view: JobView) -> int:
    counts = view.counts
    if counts is None:
        return 10 if view.is_over else 0
    return (counts.succeeded + counts.failed + counts.cancelled) * 10 // view.tasks


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
