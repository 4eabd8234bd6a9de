"""`muster up`, `down` and `status`: the server of one home as a whole.

`down` ends the server and not the work: jobs are processes of their own, and the next `up` takes them over.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from muster import __version__
from muster.cli.failing import NO_SERVER, OK, SERVER_ERROR, ServerFailedError
from muster.cli.printing import detail_options, print_detail, print_fields
from muster.cli.starting import ROLES, start_missing
from muster.model.errors import MusterError
from muster.sdk.client import HEALTH_WITHIN_S, Client
from muster.sdk.errors import ContestedError
from muster.sdk.home import Home
from muster.sdk.listen_file import ListenFile
from muster.sdk.processes import find_server_process
from muster.units import HOUR_MS, parse_duration, show_duration
from muster.wire.views import JobView

HISTORY_MIN_MS: Final = HOUR_MS
"""Jobs that are over stay in the world for a while; who forgets them sooner would forget what is still there."""
POLITE_S: Final = 30.0
JOBS_END_WITHIN_S: Final = 120.0
LOOK_AGAIN_S: Final = 0.1
PAGE: Final = 1000
SHOWN_MAX: Final = 10


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help="Where to listen (default: the last one, or any free).")
@click.option(
    "--keep-history", metavar="TIME", help="Forget jobs that ended longer ago: 90d, unless it was said otherwise."
)
@click.option("--host", metavar="ADDRESS", help="Where to listen: beyond this machine only with a certificate.")
@click.option("--tls-cert", type=click.Path(path_type=Path), metavar="FILE", help="A certificate (PEM).")
@click.option("--tls-key", type=click.Path(path_type=Path), metavar="FILE", help="Its key (PEM).")
@click.option("--learn/--no-learn", "learns", default=None, help="Learn for how long jobs run (default: as before).")
@click.option("--flavor", metavar="NAME", help="What kind of capacity this machine is.")
@click.option(
    "--capacity",
    multiple=True,
    metavar="K=N,...",
    help="What it has, where that is not found: gpus=8,cpus=64,memory=1Ti.",
)
@click.option("--region", metavar="NAME", help="The region that it stands in.")
@click.option("--cluster", metavar="NAME", help="The cluster.")
@click.option("--block", metavar="NAME", help="The block.")
@click.option("--rack", metavar="NAME", help="The rack.")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="A label of it; all of them, if any is named.")
@click.option("--taint", "taints", multiple=True, metavar="NAME", help="A taint of it; all of them, if any is named.")
def up(
    port: int | None,
    keep_history: str | None,
    host: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    learns: bool | None,
    **said: Any,
) -> None:
    """Start the server, or what is missing of it. Where it listens is remembered."""
    home = Home()
    home.check_own()
    history_ms = None if keep_history is None else _parse_history(keep_history)
    listen = _describe_listening(host, tls_cert, tls_key)
    started = start_missing(home, port, _describe(said), history_ms, listen, learns)
    words = f"started {' and '.join(started)}" if started else "already up"
    click.echo(f"{words}: {_show_url(home)}  home: {home.root}")
    if not started:
        _tell_other_version(home)


def _tell_other_version(home: Home) -> None:
    """What runs goes on with the code that it began with, whatever was installed meanwhile."""
    with Client(home, patience_s=1, answer_s=HEALTH_WITHIN_S) as client:
        version = client.health().version
    if version != __version__:
        words = f"it is version {version}, this is {__version__}: `muster down` and `muster up` start the new one"
        click.echo(words, err=True)


def _describe_listening(host: str | None, cert: Path | None, key: Path | None) -> ListenFile | None:
    """Where it is to listen from now on, all of it; None if nothing is said."""
    if (cert is None) != (key is None):
        raise click.UsageError("give --tls-cert and --tls-key, or neither")
    if host is None and cert is None:
        return None
    paths = ("" if path is None else str(path.absolute()) for path in (cert, key))
    return ListenFile(host or "", *paths)


def _parse_history(text: str) -> int:
    span_ms = parse_duration(text)
    if span_ms < HISTORY_MIN_MS:
        raise click.UsageError(f"--keep-history {text}: at least {show_duration(HISTORY_MIN_MS)}")
    return span_ms


def _describe(said: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of this machine as a node; what is not named stays as it was."""
    named = {field: value for field, value in said.items() if value is not None and value != ()}
    if "labels" in named:
        named["labels"] = dict(_parse_label(text) for text in named["labels"])
    if "capacity" in named:
        named["capacity"] = ",".join(named["capacity"])
    if "taints" in named:
        named["taints"] = list(named["taints"])
    return named


def _parse_label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.UsageError(f"--label {text}: write it as KEY=VALUE")
    return key, value


@click.command()
@click.option("--jobs", "with_jobs", is_flag=True, help="Cancel all jobs first, and leave nothing behind.")
def down(with_jobs: bool) -> None:
    """Stop the server; running jobs go on."""
    home = Home()
    home.check_own()
    running = _end_jobs(home) if with_jobs else _find_running(home)
    ended = [role for role in reversed(ROLES) if _end_role(home, role)]
    click.echo(f"stopped {' and '.join(ended)}" if ended else f"no server was running in {home.root}")
    if running:
        shown = ", ".join(map(str, running[:SHOWN_MAX])) + (", …" if len(running) > SHOWN_MAX else "")
        click.echo(f"still running: job {shown}; `muster up` takes over what runs")


def _find_running(home: Home) -> list[int]:
    """The jobs that hold places, if anybody can say."""
    try:
        with Client(home, patience_s=1, answer_s=HEALTH_WITHIN_S) as client:
            return [job.id for job in _list_live(client) if job.phase != "queued"]
    except MusterError:
        return []


def _end_jobs(home: Home) -> list[int]:
    """Cancel every live job and wait for their ends, so that none is left."""
    asked: set[int] = set()
    give_up_at = time.monotonic() + JOBS_END_WITHIN_S
    with Client(home) as client:
        while live := [job.id for job in _list_live(client)]:
            for job in live:
                if job not in asked:
                    asked.add(job)
                    _cancel(client, job)
            if time.monotonic() > give_up_at:
                raise ServerFailedError(
                    f"jobs are still live after {JOBS_END_WITHIN_S:.0f} s: {live[:10]}", SERVER_ERROR
                )
            time.sleep(LOOK_AGAIN_S)
    click.echo(f"cancelled {len(asked)} job{'s' if len(asked) != 1 else ''}")
    return []


def _cancel(client: Client, job: int) -> None:
    try:
        client.cancel(job)
    except ContestedError:  # it ended by itself meanwhile
        return


def _list_live(client: Client) -> Iterator[JobView]:
    after: int | None = 0
    while after is not None:
        page = client.list(after=after, limit=PAGE, order="oldest")
        yield from page.jobs
        after = page.next_after


def _end_role(home: Home, role: str) -> bool:
    """End one process, politely and then not; whether there was one. Either way nothing acknowledged is lost."""
    process = find_server_process(home, role)
    if process is None:
        return False
    with process:
        process.end(signal.SIGTERM)
        if not process.is_over_within(POLITE_S):
            click.echo(f"the {role} does not leave after {POLITE_S:.0f} s; killing it", err=True)
            process.end(signal.SIGKILL)
            process.is_over_within(POLITE_S)
    return True


@click.command()
@detail_options
def status(output: str) -> int:
    """Say whether the server is fit, and where."""
    home = Home()
    with Client(home, patience_s=1, answer_s=HEALTH_WITHIN_S) as client:
        health = client.health()
    if not print_detail(output, health):
        login = home.find_login()
        url = _show_url(home) if login is None else login.address.url
        fields = [("status", health.status), ("address", url), ("home", str(home.root))]
        fields += [(role, _show_process(home, role, is_fit=health.leader)) for role in ROLES if login is None]
        fields += [("entries", str(health.seq)), ("lag", show_duration(health.lag_ms)), ("version", health.version)]
        print_fields(fields)
    return OK if health.leader else NO_SERVER


def _show_process(home: Home, role: str, *, is_fit: bool) -> str:
    process = find_server_process(home, role)
    if process is None:
        return "not running; `muster up` starts it"
    with process:
        stuck = "" if is_fit or role != "leader" else "; it does not answer: `muster doctor`"
        return f"process {process.pid}{stuck}"


def _show_url(home: Home) -> str:
    address = home.find_address()
    return "" if address is None else address.url


COMMANDS = {"up": up, "down": down, "status": status}
