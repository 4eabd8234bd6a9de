"""The server's processes as their home knows them: found by their file, never trusted by a process id alone.

A process file names a pid and the time that process started. Only if both still agree is it the one that wrote the
file; a signal goes through a pidfd that was opened before looking, so a recycled pid is never hit.
"""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path
from types import TracebackType

import msgspec

from muster.sdk.home import Home

_START_FIELD = 19  # of /proc/PID/stat, counted after the name in brackets: field 22 in the manual


class Note(msgspec.Struct, frozen=True):
    """What a role writes about its own process."""

    pid: int
    start_time: int


class Process:
    """A living process, held so that it stays the one that was looked at."""

    def __init__(self, pid: int, handle: int) -> None:
        self.pid = pid
        self._handle = handle

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._handle)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal; one that has ended meanwhile is as good."""
        try:
            signal.pidfd_send_signal(self._handle, number)
        except ProcessLookupError:
            return

    def is_over_within(self, limit_s: float) -> bool:
        """Wait for its end, at most so long; whether it came."""
        return bool(select.select([self._handle], [], [], limit_s)[0])


def find_server_process(home: Home, role: str) -> Process | None:
    """The living process of a role (leader, follower), if there is one. Close it, or use it in a `with`."""
    try:
        note = msgspec.json.decode(home.process_file(role).read_bytes(), type=Note)
        handle = os.pidfd_open(note.pid)
    except (OSError, msgspec.MsgspecError):
        return None
    if find_start_time(note.pid) == note.start_time and not _has_ended(handle):
        return Process(note.pid, handle)
    os.close(handle)
    return None


def find_start_time(pid: int) -> int | None:
    """When the process with this pid started, in ticks since boot; None if there is none."""
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(line.rpartition(b")")[2].split()[_START_FIELD])


def _has_ended(handle: int) -> bool:
    return bool(select.select([handle], [], [], 0)[0])
