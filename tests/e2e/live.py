"""A real server in a directory of its own, driven by the real command line; and how to end every process of it.

Whatever belongs to the directory is found by the directory's name in its command line. Names of test directories are
unique, so nothing else is ever signalled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from muster.engines.local.processes import find_family, signal_process
from muster.sdk import Client
from muster.sdk.home import Home
from muster.sdk.processes import find_server_process

DEADLINE_S: Final = 120.0
BIN: Final = Path(sys.executable).parent


class LiveHome:
    """One home directory with its server."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = Home(root)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        path = f"{BIN}:{os.environ['PATH']}"
        self.env = {**kept, "PATH": path, "MUSTER_HOME": str(root), "NO_COLOR": "1"}

    def muster(self, *arguments: str, code: int | None = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one command line; its exit code must be `code`, unless that is None."""
        ran = subprocess.run(
            ["muster", *arguments], env=self.env, input=stdin, capture_output=True, text=True, timeout=300
        )
        if code is not None:
            assert ran.returncode == code, f"muster {arguments} left with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran

    def client(self, patience_s: float = 30.0) -> Client:
        """A client of this server."""
        return Client(self.home, patience_s=patience_s)

    def find_pid(self, role: str) -> int | None:
        """The process of a role, if it lives: leader, follower or supervisor."""
        if role == "supervisor":
            programs = (pid for pid, words in self._processes() if "muster.engines.local" in words)
            return next(programs, None)
        process = find_server_process(self.home, role)
        if process is None:
            return None
        with process:
            return process.pid

    def find_pids(self, role: str) -> list[int]:
        """Every living process that was started to play a role, whether or not it is the one that plays it."""
        return [pid for pid, words in self._processes() if "muster.app" in words and role in words]

    def kill(self, role: str) -> int | None:
        """SIGKILL a role and wait until it is gone; its pid, or None if it was not there."""
        pid = self.find_pid(role)
        if pid is None:
            return None
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        await_true(lambda: self.find_pid(role) != pid, f"{role} is gone")
        return pid

    def end_all(self) -> None:
        """End whatever belongs to this home: server, supervisor, and the sessions of its tasks."""
        self.muster("down", code=None)
        while living := list(self._processes()):
            for pid, words in living:
                if "muster.engines.local.keeping" in words:  # the parent of tasks
                    for process in find_family({pid})[pid]:
                        signal_process(process, signal.SIGKILL)
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(os.getsid(pid), signal.SIGKILL)
            time.sleep(0.02)

    def _processes(self) -> Iterator[tuple[int, list[str]]]:
        """Living processes, other than this one, whose command line names the home."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if any(str(self.root) in word for word in words) and os.getsid(int(entry.name)) != os.getsid(0):
                    yield int(entry.name), words


@contextmanager
def serving(root: Path, capacity: str = "gpus=8,cpus=32,memory=64Gi") -> Iterator[LiveHome]:
    """A server that is up inside the block, on a machine that has what is declared; afterwards nothing of it is left
    running."""
    live = LiveHome(root)
    try:
        live.muster("up", "--capacity", capacity)
        yield live
    finally:
        live.end_all()


def await_true(is_true: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Look until it is true; the deadline is generous, because a slow machine is not a failure."""
    give_up_at = time.monotonic() + deadline_s
    while not is_true():
        assert time.monotonic() < give_up_at, f"not within {deadline_s:.0f} s: {what}"
        time.sleep(0.02)
