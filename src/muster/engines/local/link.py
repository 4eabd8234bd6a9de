"""The engine's way to its supervisor: find it, start it if nobody holds the lock, and carry frames.

It knows sockets, and nothing of what the frames mean.
"""

from __future__ import annotations

import os
import selectors
import socket
from pathlib import Path
from typing import Final

from muster.engines.local.channel import READ_BYTES, find_connection
from muster.engines.local.detaching import start_detached
from muster.engines.local.frames import Asked, Shutdown, Told, encode_frame, told_inbox
from muster.engines.local.layout import SUPERVISOR

TIMEOUT_S: Final = 10.0


class Link:
    """A connection to the supervisor. Every failure is an OSError or an EngineError."""

    def __init__(self, connection: socket.socket, wake: int) -> None:
        self._connection = connection
        self._inbox = told_inbox()
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)
        self._selector.register(wake, selectors.EVENT_READ)

    def send(self, frame: Asked) -> None:
        """Send one frame; it is in the kernel's hands afterwards."""
        self._connection.sendall(encode_frame(frame))

    def wait(self) -> list[Told]:
        """Wait until frames came, or until the descriptor `wake` becomes readable."""
        ready = self._selector.select()
        if not any(key.fileobj is self._connection for key, _ in ready):
            return []
        data = self._connection.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the supervisor")
        return list(self._inbox.feed(data))

    def close(self) -> None:
        """Hang up."""
        self._selector.close()
        self._connection.close()


def find_link(root: Path, wake: int) -> Link | None:
    """A connection, if a supervisor listens; `wake` is a descriptor that ends a wait when it becomes readable."""
    connection = find_connection(root, SUPERVISOR, TIMEOUT_S)
    return None if connection is None else Link(connection, wake)


def start_supervisor(root: Path) -> bool:
    """Start a supervisor unless one is there or on its way; whether it was started."""
    return start_detached(root, SUPERVISOR, "muster.engines.local")


def shut_down(root: Path) -> bool:
    """Tell the supervisor to leave and wait until it has; False if there is none. What runs goes on running."""
    never, other = os.pipe()
    link = find_link(root, never)
    try:
        if link is None:
            return False
        link.send(Shutdown())
        while True:
            link.wait()
    except OSError:
        return True
    finally:
        if link is not None:
            link.close()
        os.close(never)
        os.close(other)
