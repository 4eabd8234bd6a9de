"""The engine's way to its supervisor: find it, start it if nobody holds the lock, and carry frames.

It knows sockets and processes, and nothing of what the frames mean.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from muster.engines.local.frames import Asked, Shutdown, Told, encode_frame, told_inbox
from muster.engines.local.launch import KEPT
from muster.engines.local.layout import LOCK, SOCKET, SUPERVISOR_LOG
from muster.ports.failpoint import VARIABLE

TIMEOUT_S: Final = 10.0
READ_BYTES: Final = 256 * 1024

# The shell leaves at once, so that the supervisor is nobody's child and its end no zombie of the server's.
_DETACH: Final = '"$@" &'


class Link:
    """A connection to the supervisor. Every failure is an OSError or an EngineError."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._inbox = told_inbox()

    def send(self, frame: Asked) -> None:
        """Send one frame; it is in the kernel's hands afterwards."""
        self._connection.sendall(encode_frame(frame))

    def wait(self, wake: int) -> list[Told]:
        """Wait until frames came, or until the descriptor `wake` becomes readable."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            ready = selector.select()
        if not any(key.fileobj is self._connection for key, _ in ready):
            return []
        data = self._connection.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the supervisor")
        return list(self._inbox.feed(data))

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def find_link(root: Path) -> Link | None:
    """A connection, if a supervisor listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(TIMEOUT_S)
    try:
        directory = os.open(root, os.O_PATH | os.O_DIRECTORY)
        try:
            # Through the descriptor, because a socket's path may have 107 bytes only.
            connection.connect(f"/proc/self/fd/{directory}/{SOCKET}")
        finally:
            os.close(directory)
    except OSError:
        connection.close()
        return None
    return Link(connection)


def start_supervisor(root: Path) -> bool:
    """Start a supervisor unless one is there or on its way; whether it was started.

    The lock is taken here and handed down already held, so that two engines, or two tries, never start two.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _spawn(root, lock)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def shut_down(root: Path) -> bool:
    """Tell the supervisor to leave and wait until it has; False if there is none. What runs goes on running."""
    link = find_link(root)
    if link is None:
        return False
    never, other = os.pipe()
    try:
        link.send(Shutdown())
        while True:
            link.wait(never)
    except OSError:
        return True
    finally:
        os.close(never)
        os.close(other)
        link.close()


def _spawn(root: Path, lock: int) -> None:
    program = [sys.executable, "-P", "-m", "muster.engines.local", "--lock-fd", str(lock), str(root)]
    with (root / SUPERVISOR_LOG).open("ab") as log:
        subprocess.run(
            ["/bin/sh", "-c", _DETACH, "muster", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=_environment(os.environ),
            pass_fds=[lock],
            start_new_session=True,
            check=True,
        )


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    """No secret of the server: tasks run as the same user and could read it from the supervisor."""
    kept = {*KEPT, VARIABLE, "PYTHONPATH", "PYTHONHOME"}
    return {name: value for name, value in own.items() if name in kept}
