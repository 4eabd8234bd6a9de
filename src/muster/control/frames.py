"""Frames: bytes as they come from a socket, cut into the messages that `muster.wire.link` has framed.

It knows lengths and nothing of what is inside. A length above the limit is refused before anything is kept of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.wire.link import FRAME_MAX, HEADER_BYTES


class Splitter:
    """Feed it what arrives; it gives back each message that is complete."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies of the frames that `data` completes."""
        rest = self._rest
        rest += data
        begin = 0
        while len(rest) - begin >= HEADER_BYTES:
            size = int.from_bytes(rest[begin : begin + HEADER_BYTES], "big")
            if size > FRAME_MAX:
                raise RejectedError(Reason(Code.TOO_LARGE, "frame", needed=size, available=FRAME_MAX))
            end = begin + HEADER_BYTES + size
            if len(rest) < end:
                break
            yield bytes(rest[begin + HEADER_BYTES : end])
            begin = end
        del rest[:begin]


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Another name of a socket's path, because a socket's path may have 107 bytes only."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
