"""The supervisor's loop: one thread, one selector over the listening socket, the engines' connections and the pidfds.

It carries frames to the supervisor and its news to every engine that has said Hello. It never waits for an engine: one
that does not read is cut off, and learns everything anew when it comes back.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import selectors
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from muster.engines.local.frames import (
    EVENTS_PER_FRAME_MAX,
    Ack,
    Asked,
    Happened,
    Hello,
    Inventory,
    Shutdown,
    TaskEvent,
    Told,
    asked_inbox,
    encode_frame,
)
from muster.engines.local.layout import LOCK, SOCKET
from muster.engines.local.supervisor import Run, Supervisor
from muster.model.errors import EngineError

UNREAD_BYTES_MAX: Final = 64 * 1024 * 1024
READ_BYTES: Final = 256 * 1024
BACKLOG: Final = 16
IDLE_S: Final = 3.0
"""How long a supervisor that holds nothing waits for an engine before it leaves; the next engine starts another."""
ENGINES_MAX: Final = 16  # one body, and whoever looks at it; each costs a descriptor

_log = logging.getLogger(__name__)


def serve(root: Path, own: Mapping[str, str], lock: int | None = None, idle_s: float = IDLE_S) -> bool:
    """Supervise `root` until told to leave, or unused for `idle_s`; False at once if somebody else does.

    `lock` is one that was taken beforehand.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chdir(root)  # a socket's path may have 107 bytes, a root's many more
    root = Path.cwd()
    held = _find_lock() if lock is None else lock
    if held is None:
        return False
    os.set_inheritable(held, False)  # a shim that held it would keep the next supervisor out
    with selectors.DefaultSelector() as selector, _listen() as listener:
        supervisor = Supervisor(root, selector, own)
        supervisor.adopt_all()
        _Loop(supervisor, selector, listener, idle_s).run()
        Path(SOCKET).unlink(missing_ok=True)
    os.close(held)
    return True


def _find_lock() -> int | None:
    handle = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


def _listen() -> socket.socket:
    Path(SOCKET).unlink(missing_ok=True)  # ours to remove: we hold the lock
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)  # put back at once: tasks inherit it
    try:
        listener.bind(SOCKET)
    finally:
        os.umask(mask)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


class _Engine:
    """One connection: what it sent and what it has not read yet."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.inbox = asked_inbox()
        self.node: str | None = None
        self.ack = 0
        self._unread = bytearray()

    def tell(self, frame: Told) -> None:
        """Send, or keep what does not go out now; OSError if the engine has stopped reading."""
        self._unread += encode_frame(frame)
        self.send()
        if len(self._unread) > UNREAD_BYTES_MAX:
            raise ConnectionAbortedError("the engine does not read")

    def send(self) -> None:
        """Send what the engine will take."""
        while self._unread:
            try:
                del self._unread[: self.link.send(self._unread)]
            except BlockingIOError:
                return

    @property
    def interest(self) -> int:
        """What to wait for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unread else 0)


class _Loop:
    """Turns until Shutdown, or until there is nothing to hold and nobody to hold it for."""

    def __init__(
        self, supervisor: Supervisor, selector: selectors.BaseSelector, listener: socket.socket, idle_s: float
    ) -> None:
        self._supervisor = supervisor
        self._idle_s = idle_s
        self._selector = selector
        self._listener = listener
        self._engines: list[_Engine] = []
        self._leaving = False
        selector.register(listener, selectors.EVENT_READ)

    def run(self) -> None:
        """Take turns; every turn ends by telling what happened in it."""
        while not self._leaving:
            self._turn()
        for engine in list(self._engines):
            self._drop(engine)

    def _turn(self) -> None:
        is_unused = not self._engines and self._supervisor.is_empty()
        ready = self._selector.select(self._idle_s if is_unused else self._supervisor.delay_s())
        self._leaving = is_unused and not ready
        ended = []
        for key, mask in ready:
            if isinstance(key.data, Run):
                ended.append(key.data)
            elif isinstance(key.data, _Engine):
                self._serve_engine(key.data, mask)
            else:
                self._accept()
        self._supervisor.shims_ended(ended)
        self._supervisor.tend()
        self._tell_all(self._supervisor.take_events())

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            link, _ = self._listener.accept()
            if len(self._engines) >= ENGINES_MAX:
                link.close()
                return
            link.setblocking(False)
            engine = _Engine(link)
            self._engines.append(engine)
            self._selector.register(link, selectors.EVENT_READ, engine)

    def _serve_engine(self, engine: _Engine, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                engine.send()
            if mask & selectors.EVENT_READ:
                self._read(engine)
            self._selector.modify(engine.link, engine.interest, engine)
        except (OSError, EngineError) as error:
            _log.info("an engine's connection ended: %s", error)
            self._drop(engine)

    def _read(self, engine: _Engine) -> None:
        data = engine.link.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the engine")
        for frame in engine.inbox.feed(data):
            self._take(engine, frame)
        if engine.ack:
            engine.tell(Ack(engine.ack))

    def _take(self, engine: _Engine, frame: Asked) -> None:
        if isinstance(frame, Hello):
            engine.node = frame.node
            engine.tell(Inventory(self._supervisor.held()))
            _tell_events(engine, self._supervisor.retell())
        elif isinstance(frame, Shutdown):
            self._leaving = True
        elif engine.node is None:
            raise ConnectionAbortedError("an order before Hello")
        else:
            self._supervisor.carry_out(frame.instruction, engine.node)
            engine.ack = frame.number

    def _tell_all(self, events: list[TaskEvent]) -> None:
        if not events:
            return
        for engine in [engine for engine in self._engines if engine.node is not None]:
            try:
                _tell_events(engine, events)
                self._selector.modify(engine.link, engine.interest, engine)
            except (OSError, EngineError) as error:
                _log.info("an engine's connection ended: %s", error)
                self._drop(engine)

    def _drop(self, engine: _Engine) -> None:
        self._engines.remove(engine)
        self._selector.unregister(engine.link)
        engine.link.close()


def _tell_events(engine: _Engine, events: list[TaskEvent]) -> None:
    for at in range(0, len(events), EVENTS_PER_FRAME_MAX):
        engine.tell(Happened(events[at : at + EVENTS_PER_FRAME_MAX]))
