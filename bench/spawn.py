"""`bench spawn`: how many commands a second, as an array through the whole service, beside the machine's bare spawns?

Bare: two processes, two spawns in flight each, that `posix_spawn` the same command in a session of its own with a log
file that is new, as a task's is, and `wait4`. (Where many files were deleted in the last minutes, a new one may cost
the file system as much as the process; one that is there costs nothing.) The service: submit, journal, follower,
leader, supervisor, two keepers, exit codes and usage, all durable. The two take turns; the ratio is the median of the
rounds, by wall time, since both use both cores.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.report import Metric, Result, median
from bench.server import running_server
from muster.model.spec import Spec
from muster.sdk.client import Client
from muster.sdk.home import Home
from muster.units import Resources

COMMANDS: Final = 10_000
ROUNDS: Final = 4
SPAWNERS: Final = 2
IN_FLIGHT: Final = 2
GOAL: Final = 0.7
PROGRAM: Final = "/bin/true"


def run(seed: int) -> Result:  # noqa: ARG001 - nothing here is random
    """Interleave parts of an array with as many bare spawns."""
    each = COMMANDS // ROUNDS
    with running_server() as home, Client(Home(home)) as client, tempfile.TemporaryDirectory() as place:
        _through_service(client, 100)
        rounds = [(_through_service(client, each), _bare(each, Path(place) / str(turn))) for turn in range(ROUNDS)]
    ratio = median([service / bare for service, bare in rounds])
    service, bare = (median(list(column)) for column in zip(*rounds, strict=True))
    metrics = {"spawn_ratio": Metric(ratio, "of bare", GOAL), "spawns_per_s": Metric(service, "1/s")}
    return Result("spawn", metrics, {"bare_spawns_per_s": bare})


def _through_service(client: Client, tasks: int) -> float:
    """Commands a second, from the submit to the end of the last."""
    spec = Spec((PROGRAM,), array=tasks, ask=Resources(cpu_milli=1), workdir="/")
    begin = time.monotonic()
    view = client.wait(client.submit(spec).job)
    elapsed = time.monotonic() - begin
    if view.phase != "succeeded":
        raise RuntimeError(f"the array ended otherwise: {view}")
    return tasks / elapsed


def _bare(commands: int, place: Path) -> float:
    place.mkdir()
    begin = time.monotonic()
    spawners = []
    for number in range(SPAWNERS):
        pid = os.fork()
        if not pid:
            _spawn_many(commands // SPAWNERS, place / str(number))
            os._exit(0)
        spawners.append(pid)
    for pid in spawners:
        os.waitpid(pid, 0)
    return commands / (time.monotonic() - begin)


def _spawn_many(commands: int, place: Path) -> None:
    """Two in flight, each with a log file of its own as a task has."""
    place.mkdir()
    live = 0
    for number in range(commands):
        os.posix_spawn(
            PROGRAM,
            [PROGRAM],
            {"PATH": "/usr/bin:/bin"},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(place / str(number)), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        live += 1
        if live == IN_FLIGHT:
            os.wait4(-1, 0)
            live -= 1
    while live:
        os.wait4(-1, 0)
        live -= 1
