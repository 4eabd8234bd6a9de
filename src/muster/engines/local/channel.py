"""One non-blocking connection: frames in, frames out, and what the other side has not read yet, up to a limit."""

from __future__ import annotations

import os
import selectors
import socket
from pathlib import Path
from typing import Final, Generic

from muster.engines.local.frames import AnyFrame, Frame, Inbox, encode_frame

UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024
READ_BYTES: Final = 64 * 1024
"""So much fits where small objects lie: of more, each read would map its memory and give it back."""
BACKLOG: Final = 16


class Channel(Generic[Frame]):
    """Never waits for the other side: one that does not read is cut off, and learns everything anew when it comes back.

    Every failure is an OSError or an EngineError: the connection is of no more use.
    """

    def __init__(self, link: socket.socket, inbox: Inbox[Frame]) -> None:
        link.setblocking(False)
        self.link = link
        self._inbox = inbox
        self._unread = bytearray()

    def tell(self, *frames: AnyFrame) -> None:
        """Send, or keep what does not go out now."""
        self._unread += b"".join(map(encode_frame, frames))
        self.send()
        if len(self._unread) > UNREAD_BYTES_MAX:
            raise ConnectionAbortedError("the other side does not read")

    def send(self) -> None:
        """Send what the other side will take."""
        while self._unread:
            try:
                del self._unread[: self.link.send(self._unread)]
            except BlockingIOError:
                return

    def read(self) -> list[Frame] | None:
        """The frames that came, or None if nothing did; ConnectionResetError at the end of them."""
        try:
            data = self.link.recv(READ_BYTES)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionResetError("closed by the other side")
        return list(self._inbox.feed(data))

    def take_turn(self, mask: int) -> list[Frame]:
        """Do what the selector says is possible; the frames that came."""
        if mask & selectors.EVENT_WRITE:
            self.send()
        return (self.read() or []) if mask & selectors.EVENT_READ else []

    @property
    def is_behind(self) -> bool:
        """Whether something waits for the other side to read."""
        return bool(self._unread)

    @property
    def interest(self) -> int:
        """What to wait for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self.is_behind else 0)


def listen(name: str) -> socket.socket:
    """Listen at `name` in the current directory, which the caller has locked for itself."""
    Path(name).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)  # put back at once: tasks inherit it
    try:
        listener.bind(name)
    finally:
        os.umask(mask)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def find_connection(root: Path, name: str, timeout_s: float | None = None) -> socket.socket | None:
    """A connection to whoever listens as `name` in `root`, if somebody does."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        directory = os.open(root, os.O_PATH | os.O_DIRECTORY)
        try:
            # Through the descriptor, because a socket's path may have 107 bytes only.
            connection.connect(f"/proc/self/fd/{directory}/{name}.sock")
        finally:
            os.close(directory)
    except OSError:
        connection.close()
        return None
    return connection
