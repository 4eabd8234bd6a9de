"""The engine's way to its supervisor: find it, start it if nobody holds the lock, and wait for what it says.

It knows sockets, and nothing of what the frames mean.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from pathlib import Path
from typing import Final

from muster.engines.local.channel import Channel, find_connection
from muster.engines.local.detaching import start_detached
from muster.engines.local.frames import Shutdown, Told, told_inbox
from muster.engines.local.layout import SUPERVISOR

TIMEOUT_S: Final = 10.0


class Link(Channel[Told]):
    """A connection to the supervisor. Whoever tells it something that does not go out at once wakes who waits."""

    def __init__(self, connection: socket.socket, wake: int) -> None:
        super().__init__(connection, told_inbox())
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)
        self._selector.register(wake, selectors.EVENT_READ)

    def wait(self) -> list[Told]:
        """Wait until frames came, or there is room for more of ours, or the descriptor `wake` becomes readable."""
        self._selector.modify(self.link, self.interest)
        ready = self._selector.select()
        has_come = any(key.fileobj is self.link and mask & selectors.EVENT_READ for key, mask in ready)
        return (self.read() or []) if has_come else []

    def hang_up(self) -> None:
        """Let whoever waits see the end of it."""
        with contextlib.suppress(OSError):
            self.link.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Be done with it."""
        self._selector.close()
        self.link.close()


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
        link.tell(Shutdown())
        while True:
            link.wait()
    except OSError:
        return True
    finally:
        if link is not None:
            link.close()
        os.close(never)
        os.close(other)
