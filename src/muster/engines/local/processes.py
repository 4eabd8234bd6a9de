"""Looking at processes and signalling them, exactly: never by a pid alone, which the kernel may have given away.

A process is held by a pidfd first and looked at second, so what was looked at is what gets the signal. This knows
sessions and families, and nothing of tasks.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

_STAT_BYTES_MAX: Final = 4096
_GONE: Final = (b"Z", b"X")


class Process(NamedTuple):
    """The part of /proc/PID/stat that matters here. (pid, started) is unique for as long as the machine is up."""

    pid: int
    state: bytes
    parent: int
    group: int
    session: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Whether it can still do something."""
        return self.state not in _GONE


def read_boot_id() -> str:
    """Names the machine's present life; another one after every reboot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def find_stat(line: bytes) -> Process | None:
    """Read a stat line, if it is one. The name in brackets may hold anything, so fields count from the last bracket."""
    head, _, tail = line.rpartition(b")")
    fields = tail.split()
    try:
        numbers = (int(fields[index]) for index in (1, 2, 3, 19))
        return Process(int(head.split(b" ", 1)[0]), fields[0], *numbers)
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


def list_processes() -> Iterator[Process]:
    """Everybody, one after the other: not one moment's picture."""
    for entry in os.scandir("/proc"):
        process = find_process(int(entry.name)) if entry.name.isdigit() else None
        if process is not None:
            yield process


def list_children() -> list[int]:
    """Our own children, those that were left to us included."""
    own = os.getpid()
    try:
        return [int(word) for word in Path(f"/proc/self/task/{own}/children").read_text().split()]
    except OSError:  # a kernel without that file
        return [process.pid for process in list_processes() if process.parent == own]


def is_handled(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(caught, 16) >> (number - 1) & 1)


def find_family(leaders: Collection[int]) -> dict[int, list[Process]]:
    """For each leader of a session, the living ones in that session and the living descendants of the leader, without
    the leader. One walk over /proc for all of them."""
    families: dict[int, list[Process]] = {leader: [] for leader in leaders}
    if not families:
        return families
    everybody = {process.pid: process for process in list_processes()}
    for process in everybody.values():
        leader = _find_leader(process, families, everybody)
        if leader is not None and process.pid != leader and process.is_alive:
            families[leader].append(process)
    return families


def _find_leader(
    process: Process, families: Mapping[int, list[Process]], everybody: Mapping[int, Process]
) -> int | None:
    """Whose family a process is of: its session's, or that of the nearest leader above it."""
    seen: Process | None = process
    for _ in range(len(everybody)):
        if seen is None or seen.pid <= 1:
            return None
        if seen.session in families:
            return seen.session
        if seen.pid in families:
            return seen.pid
        seen = everybody.get(seen.parent)
    return None


def signal_process(known: Process, number: int) -> bool:
    """Signal a process if it is still the same one and alive; say whether it was."""
    try:
        handle = os.pidfd_open(known.pid)
    except OSError:
        return False
    try:
        process = find_process(known.pid)
        if process is None or process.started != known.started or not process.is_alive:
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


def read_environment(pid: int) -> frozenset[bytes]:
    """The environment that a process was started with; nothing if we may not see it."""
    try:
        return frozenset(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return frozenset()
