"""Keeping the output of tasks within bounds, however endless it is.

A task writes straight into its log file, so that nobody of ours stands between it and its output, and what it wrote
survives us all. When a log is too large, its middle is given back to the disk: the file keeps its length, so that
whoever follows it is not confused, and has a hole. The beginning and the end stay.
"""

from __future__ import annotations

import ctypes
import logging
import os
from pathlib import Path
from typing import Final

LOG_BYTES_MAX: Final = 256 * 1024 * 1024
LOG_VARIABLE: Final = "MUSTER_LOG_BYTES_MAX"
FREE_BYTES_MIN: Final = 64 * 1024 * 1024
"""With less than this free on their disk, logs are cut to a small part."""
SCARCE_BYTES_MAX: Final = 1024 * 1024
_BLOCK: Final = 4096
_PUNCH: Final = 0x02 | 0x01  # FALLOC_FL_PUNCH_HOLE, and keep the size

_log = logging.getLogger(__name__)


def open_log(path: Path) -> int:
    """A descriptor to write output to; nowhere if there is no room, since a task can do without its log. What is there
    is of a job that had the number before a backup was restored, and nobody else's to read."""
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        _log.error("cannot open %s, so its output is not kept: %s", path, error)
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


def most_kept(logs: Path, most: int) -> int:
    """How many bytes a log may have at present."""
    room = os.statvfs(logs)
    return min(most, SCARCE_BYTES_MAX) if room.f_bavail * room.f_frsize < FREE_BYTES_MIN else most


def trim_log(path: Path, most: int) -> bool:
    """Give back the middle of a log that occupies more than `most` bytes; whether that was done."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        state = os.fstat(handle)
        first = -(-most // 4 // _BLOCK) * _BLOCK
        end = (state.st_size - most // 2) // _BLOCK * _BLOCK
        if state.st_blocks * 512 <= most or end <= first:
            return False
        _punch(handle, first, end - first)
        return True
    finally:
        os.close(handle)


def _punch(handle: int, first: int, length: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(handle, _PUNCH, ctypes.c_int64(first), ctypes.c_int64(length)):
        os.ftruncate(handle, 0)  # a file system without holes: better nothing than a full disk
