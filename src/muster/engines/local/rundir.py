"""The directory of one try of one task: everything about it that must outlive the supervisor.

launch   what will be executed; the directory counts from the moment this exists
lock     flocked as long as the shim lives: taken before the spawn, inherited by the shim, never by the command
stat     the shim's own /proc line, written the moment before the command runs
fault    `workdir` or `exec`: why the command could not be run
stop     somebody asked for an end, with this grace in milliseconds
exit     the code, and a note if it was the supervisor who wrote it; terminal

A task runs as the same user and could scribble here: what cannot be read counts as not written, and raises nothing.
Nothing is fsynced: a crash of the machine ends every run anyway, and then whatever has no `exit` is lost by its boot.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from pathlib import Path
from typing import Final

import msgspec

from muster.engines.local.launch import Launch
from muster.engines.local.processes import Process, find_stat
from muster.engines.local.ranges import End

GONE_PREFIX: Final = ".gone."
_WHOLE_END: Final = re.compile(rb"(\d{1,3})(?: ([^\n]*))?\n")
_launch_decoder: Final = msgspec.msgpack.Decoder(Launch)


class RunDirectory:
    """Reads and writes the files of one run. It decides nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, launch: Launch) -> None:
        """Make the run known; a crash on the way leaves a directory without `launch`, which means nothing."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        self._write("launch", msgspec.msgpack.encode(launch))

    def find_launch(self) -> Launch | None:
        """What was recorded, if anything."""
        data = self._find("launch")
        return None if data is None else _launch_decoder.decode(data)

    def find_end(self) -> End | None:
        """How the run ended, if that is written down. The shim's line counts only with its newline."""
        line = _WHOLE_END.fullmatch(self._find("exit") or b"")
        return None if line is None else End(int(line[1]), (line[2] or b"").decode(errors="replace"))

    def write_end(self, end: End) -> None:
        """Write down an end that the shim could not; also of a run that is not known (a tombstone)."""
        self.path.mkdir(mode=0o700, exist_ok=True)
        self._write("exit", f"{end.code} {end.note.replace(chr(10), ' ')}\n".encode())

    def find_fault(self) -> str:
        """`workdir`, `exec` or nothing."""
        return (self._find("fault") or b"").decode().strip()

    def write_stop(self, grace_ms: int) -> None:
        """Remember that this run is to end, also for the next supervisor."""
        self._write("stop", f"{grace_ms}\n".encode())

    def find_stop(self) -> int | None:
        """The grace of a Stop in milliseconds, if one was asked for."""
        data = self._find("stop")
        return int(data) if data is not None and data.strip().isdigit() else None

    def find_shim(self) -> Process | None:
        """Who the shim said it was. Worth nothing unless the lock is held."""
        data = self._find("stat")
        return find_stat(data) if data is not None and data.endswith(b"\n") else None

    def find_lock(self) -> int | None:
        """A descriptor that holds the run's lock, or None if the shim holds it."""
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _can_lock(handle):
            return handle
        os.close(handle)
        return None

    def is_locked(self) -> bool:
        """Whether the shim lives."""
        try:
            handle = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:  # it was never tried
            return False
        try:
            return not _can_lock(handle)
        finally:
            os.close(handle)

    def remove(self) -> None:
        """Forget the run. Renamed first: half a directory could be read as a run that was never started."""
        gone = self.path.with_name(GONE_PREFIX + self.path.name)
        self.path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def _find(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def _write(self, name: str, data: bytes) -> None:
        new = self.path / f"{name}.new"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        new.rename(self.path / name)


def _can_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
