"""The supervisor's loop: one thread, one selector over the listening socket, the engines' connections and the keepers'.

It carries frames between engines, supervisor and keepers, and starts a keeper that is not there. It never waits for
anybody: whoever does not read is cut off, and learns everything anew when it comes back.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from muster.engines.local.channel import Channel, find_connection, listen
from muster.engines.local.detaching import find_lock, start_detached
from muster.engines.local.frames import (
    EVENTS_PER_FRAME_MAX,
    Ack,
    Asked,
    Happened,
    Hello,
    Inventory,
    KeeperAsked,
    KeeperTold,
    Kept,
    Leave,
    Meet,
    Shutdown,
    TaskEvent,
    asked_inbox,
    keeper_told_inbox,
)
from muster.engines.local.layout import KEEPERS, SUPERVISOR, keeper_name
from muster.engines.local.supervisor import Supervisor
from muster.model.errors import EngineError

IDLE_S: Final = 3.0
"""How long a supervisor that holds nothing waits for an engine before it leaves; the next engine starts another."""
ENGINES_MAX: Final = 16  # one body, and whoever looks at it; each costs a descriptor
ACK_S: Final = 0.01
"""How long the word that an order is recorded waits for company: each word wakes an engine."""
KEEPER_LOOK_S: Final = 0.01
KEEPER_START_S: Final = 2.0
"""How long a keeper may take to come up before another is tried; the lock keeps them from being two."""
KEEPER_AGAIN_S: Final = 0.05

_log = logging.getLogger(__name__)


def serve(root: Path, lock: int | None = None, idle_s: float = IDLE_S) -> bool:
    """Supervise `root` until told to leave, or unused for `idle_s`; False at once if somebody else does.

    `lock` is one that was taken beforehand.
    """
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chdir(root)  # a socket's path may have 107 bytes, a root's many more
    root = Path.cwd()
    held = find_lock(root / f"{SUPERVISOR}.lock") if lock is None else lock
    if held is None:
        return False
    os.set_inheritable(held, False)
    name = f"{SUPERVISOR}.sock"
    with selectors.DefaultSelector() as selector, listen(name) as listener:
        supervisor = Supervisor(root)
        supervisor.adopt_all()
        _Loop(root, supervisor, selector, listener, idle_s).run()
        Path(name).unlink(missing_ok=True)
    os.close(held)
    return True


class _Engine(Channel[Asked]):
    """One engine: whom it speaks for, what it can be told is recorded, and by when it must be told."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__(link, asked_inbox())
        self.node: str | None = None
        self.ack = 0
        self.ack_by = math.inf

    def record(self, number: int, now: float) -> None:
        """An order is recorded: to be told with the next thing that happens, or soon."""
        self.ack, self.ack_by = number, min(self.ack_by, now + ACK_S)

    def tell_news(self, events: list[TaskEvent]) -> None:
        """What is recorded, and then what came of it."""
        acks = [] if self.ack_by == math.inf else [Ack(self.ack)]
        self.ack_by = math.inf
        self.tell(*acks, *_frames_of(events))


class _Keeper:
    """The place of one keeper: whom we are connected to, and when to look for it again if to nobody."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.channel: Channel[KeeperTold] | None = None
        self.look_at = 0.0
        self.start_at = 0.0


class _Loop:
    """Turns until Shutdown, or until there is nothing to hold and nobody to hold it for."""

    def __init__(
        self,
        root: Path,
        supervisor: Supervisor,
        selector: selectors.BaseSelector,
        listener: socket.socket,
        idle_s: float,
    ) -> None:
        self._root = root
        self._supervisor = supervisor
        self._idle_s = idle_s
        self._selector = selector
        self._listener = listener
        self._engines: list[_Engine] = []
        self._keepers = [_Keeper(number) for number in range(KEEPERS)]
        self._leaving = False
        selector.register(listener, selectors.EVENT_READ)

    def run(self) -> None:
        """Take turns; every turn ends by telling what happened in it."""
        while not self._leaving:
            self._turn()
        for engine in list(self._engines):
            self._drop(engine)
        for keeper in self._keepers:
            if keeper.channel is not None:
                with contextlib.suppress(OSError, EngineError):
                    keeper.channel.tell(Leave())
                keeper.channel.link.close()

    def _turn(self) -> None:
        self._find_keepers()
        is_unused = not self._engines and self._supervisor.is_empty()
        ready = self._selector.select(self._delay_s(is_unused))
        self._leaving = is_unused and not ready and self._has_keepers()
        for key, mask in ready:
            if isinstance(key.data, _Engine):
                self._guard(self._serve_engine, key.data, mask)
            elif isinstance(key.data, _Keeper):
                self._serve_keeper(key.data, mask)
            else:
                self._accept()
        self._ask_keepers()  # first: somebody waits for them to start
        self._tell_engines(self._supervisor.take_events())

    def _delay_s(self, is_unused: bool) -> float | None:
        if not self._has_keepers():
            return KEEPER_LOOK_S
        if is_unused:
            return self._idle_s
        ack_by = min((engine.ack_by for engine in self._engines), default=math.inf)
        return None if ack_by == math.inf else max(0.0, ack_by - time.monotonic())

    # Engines.

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            link, _ = self._listener.accept()
            if len(self._engines) >= ENGINES_MAX:
                link.close()
                return
            engine = _Engine(link)
            self._engines.append(engine)
            self._selector.register(link, selectors.EVENT_READ, engine)

    def _guard(self, act: Callable[[_Engine, int], None], engine: _Engine, mask: int = 0) -> None:
        """Do something with an engine's connection; if that breaks, it is of no more use."""
        if engine not in self._engines:
            return
        try:
            act(engine, mask)
            self._selector.modify(engine.link, engine.interest, engine)
        except (OSError, EngineError) as error:
            _log.info("an engine's connection ended: %s", error)
            self._drop(engine)

    def _serve_engine(self, engine: _Engine, mask: int) -> None:
        for frame in engine.take_turn(mask):
            self._take(engine, frame)

    def _take(self, engine: _Engine, frame: Asked) -> None:
        if isinstance(frame, Hello):
            engine.node = frame.node
            engine.tell(Inventory(self._supervisor.held()), *_frames_of(self._supervisor.retell()))
        elif isinstance(frame, Shutdown):
            self._leaving = True
        elif engine.node is None:
            raise ConnectionAbortedError("an order before Hello")
        else:
            self._supervisor.carry_out(frame.instruction, engine.node)
            engine.record(frame.number, time.monotonic())

    def _tell_engines(self, events: list[TaskEvent]) -> None:
        now = time.monotonic()
        for engine in list(self._engines):
            if engine.node is not None and (events or engine.ack_by <= now):
                self._guard(lambda each, _: each.tell_news(events), engine)

    def _drop(self, engine: _Engine) -> None:
        self._engines.remove(engine)
        self._selector.unregister(engine.link)
        engine.link.close()

    # Keepers.

    def _has_keepers(self) -> bool:
        return all(keeper.channel is not None for keeper in self._keepers)

    def _find_keepers(self) -> None:
        """Connect to every keeper, and start those that are not there."""
        now = time.monotonic()
        for keeper in self._keepers:
            if keeper.channel is not None or keeper.look_at > now:
                continue
            keeper.look_at = now + KEEPER_LOOK_S
            name = keeper_name(keeper.number)
            connection = find_connection(self._root, name)
            if connection is not None:
                self._meet(keeper, connection)
            elif keeper.start_at <= now:
                keeper.start_at = now + KEEPER_START_S
                self._start(keeper)

    def _start(self, keeper: _Keeper) -> None:
        try:
            name, module = keeper_name(keeper.number), "muster.engines.local.keeping"
            start_detached(self._root, name, module, [str(keeper.number)])
        except (OSError, ValueError) as error:
            _log.error("cannot start keeper %d: %s", keeper.number, error)

    def _meet(self, keeper: _Keeper, connection: socket.socket) -> None:
        keeper.channel = Channel(connection, keeper_told_inbox())
        self._selector.register(connection, selectors.EVENT_READ, keeper)
        self._tell_keeper(keeper, [Meet()])

    def _serve_keeper(self, keeper: _Keeper, mask: int) -> None:
        channel = keeper.channel
        if channel is None:
            return
        try:
            for frame in channel.take_turn(mask):
                self._hear(keeper, frame)
            self._selector.modify(channel.link, channel.interest, keeper)
        except (OSError, EngineError) as error:
            self._lose(keeper, error)

    def _hear(self, keeper: _Keeper, frame: KeeperTold) -> None:
        if isinstance(frame, Kept):
            self._supervisor.meet(keeper.number, frame)
        else:
            self._supervisor.hear(keeper.number, frame)

    def _ask_keepers(self) -> None:
        for keeper in self._keepers:
            asks = self._supervisor.asks[keeper.number]
            if asks and keeper.channel is not None:
                self._tell_keeper(keeper, asks)
                asks.clear()

    def _tell_keeper(self, keeper: _Keeper, frames: list[KeeperAsked]) -> None:
        channel = keeper.channel
        if channel is None:
            return
        try:
            channel.tell(*frames)
            self._selector.modify(channel.link, channel.interest, keeper)
        except (OSError, EngineError) as error:
            self._lose(keeper, error)

    def _lose(self, keeper: _Keeper, error: Exception) -> None:
        _log.warning("lost keeper %d: %s", keeper.number, error)
        if keeper.channel is not None:
            self._selector.unregister(keeper.channel.link)
            keeper.channel.link.close()
            keeper.channel = None
            keeper.start_at = time.monotonic() + KEEPER_AGAIN_S
            self._supervisor.lose(keeper.number)


def _frames_of(events: list[TaskEvent]) -> list[Happened]:
    return [Happened(events[at : at + EVENTS_PER_FRAME_MAX]) for at in range(0, len(events), EVENTS_PER_FRAME_MAX)]
