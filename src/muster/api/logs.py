"""Reading a log in pieces. What a task left in its place may be anything, so only a plain file is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

LOG_BYTES_MAX: Final = 256 * 1024


class Piece(NamedTuple):
    """Bytes of a log, and where the next piece begins. A piece that is not full is the last for now."""

    data: bytes
    next_offset: int
    is_last: bool


def read_piece(path: Path | None, offset: int) -> Piece:
    """What is there from `offset` on. A middle that was given back to the disk is skipped, and said to be."""
    nothing = Piece(b"", offset, is_last=True)
    if path is None:
        return nothing
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return nothing
    try:
        size = os.fstat(handle).st_size if stat.S_ISREG(os.fstat(handle).st_mode) else 0
        return _read_from(handle, offset, size) if offset < size else nothing
    finally:
        os.close(handle)


def _read_from(handle: int, offset: int, size: int) -> Piece:
    begin = os.lseek(handle, offset, os.SEEK_DATA)
    until = min(os.lseek(handle, begin, os.SEEK_HOLE), begin + LOG_BYTES_MAX)
    data = os.pread(handle, until - begin, begin)
    left_out = f"\n[{begin - offset} bytes of output were not kept]\n".encode() if begin > offset else b""
    return Piece(left_out + data, begin + len(data), is_last=begin + len(data) >= size)
