"""LocalEngine: one node, this machine. It carries instructions to the supervisor and its reports back.

One thread finds the supervisor and listens to it; who has instructions sends them, as far as they go at once. An
instruction stays here until the supervisor has acknowledged it, and is sent again over a new connection; the supervisor
does it once. The engine runs nothing itself and decides nothing.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from muster.engines.local.capacity import discover_capacity
from muster.engines.local.frames import Ack, Happened, Hello, Inventory, Order, Told
from muster.engines.local.launch import keys_on
from muster.engines.local.layout import Key, log_path
from muster.engines.local.link import Link, find_link, shut_down, start_supervisor
from muster.engines.local.ranges import merge_held
from muster.model.errors import EngineError
from muster.model.event import Event, Held, NodeGone, NodeSeen
from muster.model.instruction import Instruction, Start
from muster.model.node import PLAIN, Traits, address_of
from muster.ports.engine import Report
from muster.ports.failpoint import failpoint
from muster.units import Resources

__all__ = ["LocalEngine", "discover_capacity", "log_path", "shut_down"]

BACKOFF_FIRST_S: Final = 0.05
BACKOFF_MAX_S: Final = 2.0

_log = logging.getLogger(__name__)


class LocalEngine:
    """The Engine of this machine. Several may be opened on one root, one after the other, in any process.

    `former` are the addresses under which this machine was known before: nothing runs there that is not here.
    """

    def __init__(
        self,
        root: Path,
        node: str,
        capacity: Resources,
        traits: Traits = PLAIN,
        devices: tuple[str, ...] = (),
        former: Sequence[str] = (),
    ) -> None:
        self._root = root.absolute()
        self._name = node
        self._node = address_of(node, traits.place)
        self._capacity = capacity
        self._traits = traits
        self._devices = devices
        self._former = list(former)
        self._lock = threading.Lock()
        self._orders: deque[Order] = deque()  # unacknowledged; bounded by what the kernel has in flight on this node
        self._number = self._sent = 0
        self._link: Link | None = None
        self._wake: int | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, report: Report) -> None:
        """Begin to observe: connect, start the supervisor if there is none, report the node."""
        if self._thread is not None:
            raise RuntimeError("the engine is open already")
        self._closing.clear()
        wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        with self._lock:
            self._wake = wake
        self._thread = threading.Thread(target=self._run, args=(report, wake), name=f"engine-{self._node}", daemon=True)
        self._thread.start()

    def carry_out(self, instructions: Sequence[Instruction]) -> None:
        """Queue instructions, and send them in order as far as they go: it waits for nobody."""
        with self._lock:
            for instruction in instructions:
                self._number += 1
                self._orders.append(Order(self._number, instruction))
            if self._link is not None:
                self._send_at_once(self._link)

    def close(self) -> None:
        """Hang up. The supervisor and the tasks go on."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._closing.set()
        with self._lock:
            wake, self._wake = self._wake, None
            if wake is not None:
                os.eventfd_write(wake, 1)
        thread.join()
        if wake is not None:
            os.close(wake)

    def _run(self, report: Report, wake: int) -> None:
        delay_s = BACKOFF_FIRST_S
        while not self._closing.is_set():
            link = self._find_link(wake)
            if link is not None and self._talk_until_lost(link, report, wake):
                delay_s = BACKOFF_FIRST_S
            self._closing.wait(delay_s)
            delay_s = min(2 * delay_s, BACKOFF_MAX_S)

    def _find_link(self, wake: int) -> Link | None:
        link = find_link(self._root, wake)
        if link is None:
            try:
                start_supervisor(self._root)
            except (OSError, ValueError) as error:
                _log.warning("cannot start the supervisor of %s: %s", self._node, error)
        return link

    def _talk_until_lost(self, link: Link, report: Report, wake: int) -> bool:
        """Talk until the connection breaks or the engine closes; whether the supervisor ever answered."""
        answered = False
        try:
            self._greet(link)
            while not self._closing.is_set():
                for frame in link.wait():
                    answered = True
                    self._take(frame, report)
                _drain(wake)
                with self._lock:
                    link.send()
        except (OSError, EngineError) as error:
            _log.warning("lost the supervisor of %s: %s", self._node, error)
        finally:
            with self._lock:
                self._link = None
            link.close()
        return answered

    def _greet(self, link: Link) -> None:
        with self._lock:
            link.tell(Hello(self._node))
            self._link, self._sent = link, 0
            self._send_orders(link)

    def _send_at_once(self, link: Link) -> None:
        """What does not go out is the thread's, and so is a link that breaks; the caller holds the lock."""
        try:
            self._send_orders(link)
        except (OSError, EngineError) as error:
            _log.info("an order could not be sent: %s", error)
            link.hang_up()
        if link.is_behind and self._wake is not None:
            os.eventfd_write(self._wake, 1)

    def _send_orders(self, link: Link) -> None:
        """Those that this link does not have yet; the caller holds the lock."""
        skipped = max(0, self._sent + 1 - self._orders[0].number) if self._orders else 0
        orders = list(itertools.islice(self._orders, skipped, None))
        if orders:
            failpoint("engine.before_send")
            link.tell(*orders)
            self._sent = orders[-1].number

    def _take(self, frame: Told, report: Report) -> None:
        if isinstance(frame, Ack):
            with self._lock:
                while self._orders and self._orders[0].number <= frame.number:
                    self._orders.popleft()
        elif isinstance(frame, Inventory):
            held = tuple(self._add_promised(frame.held))
            events: list[Event] = [NodeGone(name, cause=f"it is {self._node} now") for name in self._former]
            self._former.clear()
            report([*events, NodeSeen(self._name, self._capacity, held, "", self._traits, self._devices)])
        elif isinstance(frame, Happened):
            report(frame.events)

    def _add_promised(self, held: list[Held]) -> list[Held]:
        """What the supervisor holds, and what it will as soon as it has our unacknowledged starts: neither is lost."""
        with self._lock:
            starts = [order.instruction for order in self._orders if isinstance(order.instruction, Start)]
        if not starts:
            return held
        keys = {Key(part.job, part.epoch, part.first + task) for part in held for task in range(part.count)}
        for start in starts:
            keys.update(keys_on(start, self._node))
        return merge_held(keys)


def _drain(wake: int) -> None:
    try:
        os.eventfd_read(wake)
    except BlockingIOError:
        return
