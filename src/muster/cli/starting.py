"""Starting the server's processes: those that are missing, each detached, and waiting until they serve.

The leader and the follower are separate programs that log to their own files. If one of them ends instead of serving,
its own words are shown, and what was started beside it is stopped again.
"""

from __future__ import annotations

import fcntl
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from muster.cli.failing import SERVER_ERROR, USAGE, ServerFailedError
from muster.model.errors import ConflictError, MusterError
from muster.model.reason import Code, Reason
from muster.sdk.client import HEALTH_WITHIN_S, Client
from muster.sdk.home import Home
from muster.sdk.listen_file import ListenFile, read_listen_file, write_listen_file
from muster.sdk.node_file import read_node_file, write_node_file
from muster.sdk.processes import find_server_process

ROLES: Final = ("leader", "follower")
READY_WITHIN_S: Final = 120.0
SLOW_AFTER_S: Final = 15.0
COMPILING: Final = "compiling for this machine, once; it takes a minute or two"
LOOK_AGAIN_S: Final = 0.03
LOG_LINES_SHOWN: Final = 15


class Started(NamedTuple):
    """A process that we started, and where its words begin in its log."""

    role: str
    process: subprocess.Popen[bytes]
    log: Path
    log_from: int


def start_missing(
    home: Home,
    port: int | None,
    node: Mapping[str, Any] | None = None,
    history_ms: int | None = None,
    listen: ListenFile | None = None,
    learns: bool | None = None,
) -> list[str]:
    """Start the roles that are not there and wait until all serve; which were started. `node` is what this machine
    shall say of itself from now on, besides what it said before; `history_ms` for how long it remembers, `listen` where
    it listens, and `learns` whether it learns run times."""
    home.prepare()
    with _alone(home):
        missing = [role for role in ROLES if not _is_there(home, role)]
        if port is not None and "follower" not in missing:
            _check_port(home, port)
        before = read_listen_file(home.listen_file)
        if listen is not None:
            _change_listening(home, listen, "follower" in missing)
        if node:
            _describe_node(home, node, "leader" in missing)
        if history_ms is not None:
            _keep_history(home, history_ms, "leader" in missing)
        if learns is not None:
            _set_learning(home, learns, "follower" in missing)
        started = [_start(home, role, port) for role in missing]
        try:
            _await_ready(home, started)
        except (ServerFailedError, KeyboardInterrupt):
            for one in started:
                one.process.terminate()
            if listen is not None:  # what could not be served is not remembered
                write_listen_file(home.listen_file, before)
            raise
        return missing


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Two `muster up` at once start one server: the second waits here and finds nothing missing."""
    with home.up_lock_file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_there(home: Home, role: str) -> bool:
    process = find_server_process(home, role)
    if process is None:
        return False
    with process:
        return True


def _check_port(home: Home, port: int) -> None:
    address = home.find_address()
    if address is not None and address.port != port:
        where = f"{home.root}, at port {address.port}"
        raise ConflictError(Reason(Code.ALREADY_SERVED, str(home.root), detail=where))


def _describe_node(home: Home, node: Mapping[str, Any], is_down: bool) -> None:
    """Change what the node says of itself. A leader reads it when it starts, so it must not run yet."""
    known = read_node_file(home.node_file)
    wanted = msgspec.structs.replace(known, **node)
    if wanted == known:
        return
    if not is_down:
        raise ServerFailedError("a node changes when its server starts: `muster down` first, then this again", USAGE)
    write_node_file(home.node_file, wanted)


def _keep_history(home: Home, span_ms: int, is_down: bool) -> None:
    if span_ms == home.read_history_ms():
        return
    _check_down(is_down)
    home.write_history(span_ms)


def _set_learning(home: Home, wanted: bool, is_down: bool) -> None:
    if wanted != home.learns:
        _check_down(is_down)
        home.set_learning(wanted)


def _check_down(is_down: bool) -> None:
    if not is_down:
        raise ServerFailedError("this changes when the server starts: `muster down` first, then this again", USAGE)


def _change_listening(home: Home, listen: ListenFile, is_down: bool) -> None:
    if listen == read_listen_file(home.listen_file):
        return
    if not is_down:
        raise ServerFailedError("where it listens changes when it starts: `muster down` first, then this again", USAGE)
    write_listen_file(home.listen_file, listen)


def _start(home: Home, role: str, port: int | None) -> Started:
    program = [sys.executable, "-P", "-m", "muster.app", role, "--home", str(home.root.absolute())]
    if role == "follower" and port is not None:
        program += ["--port", str(port)]
    if role == "follower":
        program += read_listen_file(home.listen_file).words()
    log = home.log_file(role)
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        log_from = os.fstat(handle).st_size
        process = subprocess.Popen(
            program,
            cwd=home.root,  # not the user's directory, which would be pinned for as long as the server lives
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            start_new_session=True,
        )
    finally:
        os.close(handle)
    return Started(role, process, log, log_from)


class _Patience:
    """For how long a start is waited for, and what is said meanwhile. A machine that compiles has all the time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._was_told = False
        self._give_up_at = self._slow_at = 0.0
        self._begin()

    def look(self) -> None:
        """Say what is to be said by now; raise if it is too long."""
        now = time.monotonic()
        if _is_compiling(self._home):
            if not self._was_told:
                click.echo(COMPILING, err=True)
            self._was_told = True
            self._begin()
        elif now > self._give_up_at:
            words = f"the server is not ready after {READY_WITHIN_S:.0f} s; see {self._home.root}"
            raise ServerFailedError(words, SERVER_ERROR)
        elif now > self._slow_at:
            self._slow_at = math.inf
            click.echo("the server is there, and not ready yet; `muster doctor` says more", err=True)

    def _begin(self) -> None:
        now = time.monotonic()
        self._give_up_at, self._slow_at = now + READY_WITHIN_S, now + SLOW_AFTER_S


def _await_ready(home: Home, started: list[Started]) -> None:
    patience = _Patience(home)
    with Client(home, token=home.read_token(), patience_s=0, answer_s=HEALTH_WITHIN_S) as client:
        while not (_is_ready(client) and all(_is_settled(home, one) for one in started)):
            for one in started:
                if one.process.poll() is not None and not _is_there(home, one.role):
                    raise _explain_end(one)
            patience.look()
            time.sleep(LOOK_AGAIN_S)


def _is_compiling(home: Home) -> bool:
    """Whether one of the two has compiled what the other waits for, too: who does holds a lock."""
    try:
        with home.compile_lock_file.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _is_settled(home: Home, one: Started) -> bool:
    """Whether what we started plays its role, or has left it to another that somebody started beside us."""
    if one.process.poll() is not None:
        return True
    playing = find_server_process(home, one.role)
    if playing is None:
        return False
    with playing:
        return playing.pid == one.process.pid


def _is_ready(client: Client) -> bool:
    """Writes get through, our token is known (so it is our server), and there is a node to run on."""
    try:
        return client.health().leader and any(node.phase == "up" for node in client.nodes())
    except MusterError:
        return False


def _explain_end(one: Started) -> ServerFailedError:
    """The process's own words, as far as it had any."""
    with one.log.open("rb") as log:
        log.seek(one.log_from)
        lines = log.read().decode(errors="replace").splitlines()
    told = [line for line in lines if line.startswith(("error", "help:", "more:"))] or lines[-LOG_LINES_SHOWN:]
    for line in told:
        click.echo(line, err=True)
    code = one.process.returncode
    message = f"the {one.role} ended with exit code {code}; its log is {one.log}"
    return ServerFailedError(message, USAGE if code == USAGE else SERVER_ERROR)
