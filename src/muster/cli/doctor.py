"""`muster doctor`: is everything in order here? Each check says what it found, and what to do if it is not well.

It looks at the home, the processes, the server's answers and this machine; it changes nothing.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click

from muster import __version__
from muster.cli.failing import JOB_FAILED, OK
from muster.cli.printing import Listing, listing_options, show_listing
from muster.model.errors import MusterError
from muster.model.reason import Code
from muster.sdk.client import HEALTH_WITHIN_S, Client
from muster.sdk.errors import AnsweredError, words_of
from muster.sdk.home import Home
from muster.sdk.node_file import read_node_file
from muster.sdk.processes import find_server_process
from muster.sdk.whereabouts import find_server
from muster.units import show_bytes, show_duration, show_resources

FREE_LEAST: Final = 1024**3
LAG_MOST_MS: Final = 1000
STUCK: Final = "its disk may hang: see `dmesg` and its log; `muster down` and `muster up` start another, and jobs go on"
CLOCK_SLACK_S: Final = 5.0


class Finding(NamedTuple):
    """What one check found: ok, warning or wrong."""

    check: str
    state: str
    words: str
    fix: str = ""


@click.command()
@listing_options
def doctor(output: str, watch: bool) -> int:
    """Check the home, the server, this machine and its clock; each trouble comes with its fix."""
    state = OK

    def look() -> Listing:
        nonlocal state
        found = list(examine(Home()))
        state = JOB_FAILED if any(one.state == "wrong" for one in found) else OK
        return _list(found)

    show_listing(look, output, watch)
    return state


def _list(found: list[Finding]) -> Listing:
    return Listing(
        heads=("CHECK", "STATE", "FOUND", "FIX"),
        rows=found,
        value=[one._asdict() for one in found],
        names=[one.check for one in found if one.state != "ok"],
        spare=frozenset({"FIX"}),
    )


def examine(home: Home) -> Iterator[Finding]:
    """Every check, in the order in which troubles follow from each other."""
    of_a_server = (_disk, _clock, _leader, _follower, _gpus, _limits)
    for check in (_python, _home, _token, *(of_a_server if home.find_login() is None else ())):
        yield check(home)
    yield from _server(home)


def _python(_: Home) -> Finding:
    words = f"Python {sys.version.split()[0]}, Muster {__version__}"
    return Finding("versions", "ok", words)


def _home(home: Home) -> Finding:
    root = home.root
    if not root.exists():
        return Finding("home", "warning", f"{root} is not there yet", "`muster up` makes it")
    mode = stat.S_IMODE(root.stat().st_mode)
    if not os.access(root, os.W_OK):
        return Finding("home", "wrong", f"{root} cannot be written", "chown it to you, or choose another with --home")
    if mode & 0o077:
        return Finding("home", "wrong", f"{root} is open to others ({mode:o})", f"chmod 700 {root}")
    return Finding("home", "ok", str(root))


def _token(home: Home) -> Finding:
    path = home.token_file if home.find_login() is None else home.login_file
    if not path.exists():
        return Finding("token", "warning", "there is none yet", "`muster up` makes one")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding("token", "wrong", f"others may read it ({mode:o})", f"chmod 600 {path}")
    return Finding("token", "ok", "only you can read it")


def _disk(home: Home) -> Finding:
    place = home.root if home.root.exists() else home.root.parent
    free = shutil.disk_usage(place if place.exists() else "/").free
    if free < FREE_LEAST:
        return Finding("disk", "wrong", f"{show_bytes(free)} free", "make room: the journal must be able to grow")
    return Finding("disk", "ok", f"{show_bytes(free)} free")


def _clock(home: Home) -> Finding:
    """The journal cannot have been written later than now."""
    if not home.journal_file.exists():
        return Finding("clock", "ok", "there is nothing to compare it with yet")
    ahead_s = home.journal_file.stat().st_mtime - time.time()
    if ahead_s > CLOCK_SLACK_S:
        words = f"the journal was written {show_duration(int(ahead_s * 1000))} from now: the clock went back"
        return Finding("clock", "wrong", words, "set the clock (`timedatectl`), or wait: time stands still until then")
    return Finding("clock", "ok", "not behind the journal")


def _process(home: Home, role: str) -> Finding:
    process = find_server_process(home, role)
    if process is None:
        return Finding(role, "wrong", "not running", f"`muster up` starts it; why it ended is in {home.log_file(role)}")
    with process:
        return Finding(role, "ok", f"process {process.pid}")


def _leader(home: Home) -> Finding:
    return _process(home, "leader")


def _follower(home: Home) -> Finding:
    return _process(home, "follower")


def _gpus(home: Home) -> Finding:
    try:
        declared = read_node_file(home.node_file).capacity
    except MusterError as error:
        return Finding("gpus", "wrong", str(error), f"mend or remove {home.node_file}")
    if "gpus" in declared:
        fix = "after `muster down`, `muster up --capacity ''` looks for what is there"
        return Finding("gpus", "warning", f"declared: counted, not looked at ({declared})", fix)
    if shutil.which("nvidia-smi") is None:
        return Finding("gpus", "ok", "no nvidia-smi here: this machine counts as one without GPUs")
    return Finding("gpus", "ok", "nvidia-smi is here")


def _limits(_: Home) -> Finding:
    """Who holds tasks to the memory they asked for. It only looks: the server makes groups, as who it runs."""
    places = [Path(os.environ.get("MUSTER_CGROUP") or "/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")]
    place = next((each for each in places if (each / "cgroup.controllers").exists()), places[0])
    try:
        controllers = (place / "cgroup.controllers").read_text().split()
        can_bound = "memory" in controllers and os.access(place / "cgroup.procs", os.W_OK)
    except OSError:
        can_bound = False
    if can_bound:
        return Finding("limits", "ok", f"the system holds tasks to their memory, in control groups below {place}")
    words = "no control group (version 2) is ours to make: the engine itself looks at memory, every second"
    return Finding("limits", "ok", words, "delegate a group and name it in MUSTER_CGROUP, for limits that hold at once")


def _server(home: Home) -> Iterator[Finding]:
    """What the server says of itself; if nobody answers, that is the one finding."""
    address = find_server(str(home.root))
    where = "nobody said where it listens" if address is None else address.url
    try:
        with Client(home, patience_s=1, answer_s=HEALTH_WITHIN_S) as client:
            checks: list[Callable[[Client], Finding]] = [_answer(home, where), _lag, _engine]
            for check in checks:
                yield check(client)
    except MusterError as error:
        fix = "`muster up`; if the port is taken: `muster up --port N`"
        if isinstance(error, AnsweredError) or error.reason.code is Code.SERVER_SILENT:  # it is there
            fix = words_of(error).fix
        elsewhere = "ask whoever runs it; `muster login` again if the token is not taken"
        yield Finding("server", "wrong", f"{where}: {error}", fix if home.find_login() is None else elsewhere)


def _answer(home: Home, where: str) -> Callable[[Client], Finding]:
    def check(client: Client) -> Finding:
        health = client.health()
        if health.version != __version__:
            words = f"{where} is version {health.version}, this is {__version__}"
            return Finding("server", "warning", words, "`muster down` and `muster up` start the new one")
        if not health.leader:
            fix = STUCK if _leader(home).state == "ok" else "`muster up`"
            return Finding("server", "wrong", f"{where} answers, but changes do not get through", fix)
        return Finding("server", "ok", f"{where} answers, entry {health.seq}")

    return check


def _lag(client: Client) -> Finding:
    lag_ms = client.health().lag_ms
    words = f"99 of 100 entries are folded within {show_duration(lag_ms)}"
    if lag_ms > LAG_MOST_MS:
        return Finding("lag", "warning", words, "the machine is busy: give the server a core of its own")
    return Finding("lag", "ok", words)


def _engine(client: Client) -> Finding:
    nodes = client.nodes()
    up = [node for node in nodes if node.phase == "up"]
    if not up:
        return Finding("engine", "wrong", "no node is up", "see `muster nodes` and the leader's log")
    whole = ", ".join(show_resources(node.capacity) for node in up[:3])
    if any(node.lacks is not None for node in up):
        return Finding("engine", "warning", "a node lacks what it joined with", "`muster nodes` says which and what")
    return Finding("engine", "ok", f"{len(up)} node{'s' if len(up) != 1 else ''} up: {whole}")


COMMANDS = {"doctor": doctor}
