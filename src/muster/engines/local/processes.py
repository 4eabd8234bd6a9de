"""Looking at processes and signalling them, exactly: never by a pid alone, which the kernel may have given away.

A process is held by a pidfd first and looked at second, so what was looked at is what gets the signal. This knows
sessions and nothing of tasks.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

_STAT_BYTES_MAX: Final = 4096
_GONE: Final = (b"Z", b"X")


class Process(NamedTuple):
    """The part of /proc/PID/stat that matters here. (pid, started) is unique for as long as the machine is up."""

    pid: int
    state: bytes
    group: int
    session: int
    started: int


def read_boot_id() -> str:
    """Names the machine's present life; another one after every reboot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def find_stat(line: bytes) -> Process | None:
    """Read a stat line, if it is one. The name in brackets may hold anything, so fields count from the last bracket."""
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    try:
        return Process(int(head.split(b" ", 1)[0]), fields[0], int(fields[2]), int(fields[3]), int(fields[19]))
    except (ValueError, IndexError):
        return None


def find_process(pid: int) -> Process | None:
    """The process with this pid at this moment, if there is one."""
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        return find_stat(os.read(handle, _STAT_BYTES_MAX))
    except OSError:  # it went away between the open and the read
        return None
    finally:
        os.close(handle)


def find_members(sessions: Collection[int]) -> dict[int, list[Process]]:
    """For each session, the processes in it, without its leader. One walk over /proc for all of them."""
    members: dict[int, list[Process]] = {session: [] for session in sessions}
    if members:
        for entry in os.scandir("/proc"):
            process = find_process(int(entry.name)) if entry.name.isdigit() else None
            if process is not None and process.session in members and process.pid != process.session:
                members[process.session].append(process)
    return members


def signal_member(pid: int, session: int, number: int, marks: Collection[bytes] = ()) -> bool:
    """Signal `pid` if it lives, is of `session` and carries all of `marks` in its environment; say whether it was."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        process = find_process(pid)
        if process is None or process.session != session or process.state in _GONE or not _carries(pid, marks):
            return False
        with contextlib.suppress(PermissionError):  # a set-uid program: it is there, and not ours to end
            signal.pidfd_send_signal(handle, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)


def signal_group(group: int, number: int) -> None:
    """Signal a process group whose leader the caller knows to be its own, alive or not yet reaped."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _carries(pid: int, marks: Collection[bytes]) -> bool:
    if not marks:
        return True
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return set(marks) <= set(environment.split(b"\0"))
