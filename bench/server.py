"""A real server in a home of its own, for benchmarks: started and stopped through the command line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from muster.model.job import BarKind
from muster.sdk.client import Client
from muster.sdk.errors import ContestedError
from muster.sdk.home import Home
from muster.sdk.processes import find_server_process

PLACED: Final = ("starting", "running", "stopping")


def muster(*words: str, home: Path) -> subprocess.CompletedProcess[bytes]:
    """Run one command of `muster` to its end."""
    program = Path(sys.executable).with_name("muster")
    environment = os.environ | {"MUSTER_HOME": str(home)}
    return subprocess.run([program, *words], env=environment, capture_output=True, check=True)


@contextmanager
def running_server(capacity: str = "") -> Iterator[Path]:
    """A leader and a follower that are up, on a machine that has what is declared; gives their home. What waits at the
    end is left: it may be a long queue."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name:
        home = Path(name)
        muster("up", "--capacity", capacity, home=home)
        try:
            yield home
        finally:
            _end(home)


def _end(home: Path) -> None:
    """Let nothing start any more, cancel what runs, then end the server; what waits goes with the home."""
    with Client(Home(home)) as client:
        for node in client.nodes():
            client.bar(node.name, BarKind.CORDON)
        while running := [job for phase in PLACED for job in client.list(phase=phase).jobs]:
            for job in running:
                with suppress(ContestedError):  # it ended by itself meanwhile
                    client.cancel(job.id)
            time.sleep(0.05)
    muster("down", home=home)


def pids_of(home: Path) -> dict[str, int]:
    """The processes of a home's server, by role."""
    return {role: _pid(home, role) for role in ("leader", "follower")}


def cpu_of(home: Path) -> dict[str, float]:
    """The CPU seconds that each has used so far."""
    tick = os.sysconf("SC_CLK_TCK")
    fields = {
        role: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for role, pid in pids_of(home).items()
    }
    return {role: (int(each[11]) + int(each[12])) / tick for role, each in fields.items()}


def _pid(home: Path, role: str) -> int:
    process = find_server_process(Home(home), role)
    assert process is not None
    with process:
        return process.pid
