"""`python -m muster.engines.local.keeping ROOT NUMBER`: the loop of a keeper.

One thread, one selector over the listening socket, the supervisor's connection and a socket that every end of a child
writes to. It stays as long as it has something to keep, whether or not a supervisor is there.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Final

from muster.engines.local.channel import Channel, listen
from muster.engines.local.detaching import find_lock
from muster.engines.local.frames import Keep, KeeperAsked, Kept, Leave, Meet, News, keeper_asked_inbox
from muster.engines.local.keeper import Keeper, become_reaper
from muster.engines.local.layout import LOGS, PROGRESS, STARTS, SUPERVISOR_LOG, keeper_name
from muster.engines.local.log_file import start_log
from muster.engines.local.spawning import bound_tasks
from muster.model.errors import EngineError
from muster.model.instruction import Stop

IDLE_S: Final = 3.0
"""How long a keeper that has nothing waits for a supervisor before it leaves; the next supervisor starts another."""
SUPERVISORS_MAX: Final = 8
NEWS_MAX: Final = 4096
NEWS_S: Final = 0.1
"""For how long a keeper that has more to start gathers its news: what it has not come to yet keeps the machine busy.
Each piece of them is a batch of the leader's: a sync, an entry, and orders that come back here."""
STARTS_S: Final = 0.01
"""For how long the news that runs were started wait for what else is to be said: of a short run all comes together, and
whoever is told does not take the CPU from what has just begun."""

_log = logging.getLogger(__name__)


def main() -> int:
    """Run until there is nothing to keep and nobody to keep it for; 0 also when another has this number already."""
    parser = argparse.ArgumentParser(prog="python -m muster.engines.local.keeping", description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("number", type=int)
    parser.add_argument("--lock-fd", type=int, help="a descriptor that already holds the keeper's lock")
    arguments = parser.parse_args()
    start_log(arguments.root.absolute() / SUPERVISOR_LOG, logging.WARNING)
    os.chdir(arguments.root)
    name = keeper_name(arguments.number)
    lock = arguments.lock_fd if arguments.lock_fd is not None else find_lock(Path(f"{name}.lock"))
    if lock is None:
        return 0
    os.set_inheritable(lock, False)  # a task that held it would keep the next keeper out
    keep(Path.cwd(), arguments.number)
    return 0


def keep(root: Path, number: int) -> None:
    """Be a keeper, in its root."""
    for name in (STARTS, LOGS, PROGRESS):
        (root / name).mkdir(mode=0o700, exist_ok=True)
    become_reaper()
    bound_tasks()
    wake = _wake_on_children()
    keeper = Keeper(root, number, dict(os.environ))
    keeper.recover()
    name = f"{keeper_name(number)}.sock"
    with selectors.DefaultSelector() as selector, listen(name) as listener:
        _Loop(keeper, selector, listener, wake).run()
        os.chdir(root)
        Path(name).unlink(missing_ok=True)


def _wake_on_children() -> socket.socket:
    """A socket that becomes readable when a child has ended."""
    wake, bell = socket.socketpair()
    wake.setblocking(False)
    bell.setblocking(False)
    signal.set_wakeup_fd(bell.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):  # it has the exit codes of others to write down
        signal.signal(number, signal.SIG_IGN)
    return wake


class _Loop:
    """Turns until there is nothing to keep and nobody to keep it for."""

    def __init__(
        self, keeper: Keeper, selector: selectors.BaseSelector, listener: socket.socket, wake: socket.socket
    ) -> None:
        self._keeper = keeper
        self._selector = selector
        self._listener = listener
        self._wake = wake
        self._supervisors: list[Channel[KeeperAsked]] = []
        self._told: list[Channel[KeeperAsked]] = []
        self._alone_since = time.monotonic()
        self._may_leave = False
        self._told_at = 0.0
        self._started_at: float | None = None
        selector.register(listener, selectors.EVENT_READ)
        selector.register(wake, selectors.EVENT_READ)

    def run(self) -> None:
        """Take turns; what happened is told at the end of one, or of a later one if more is to be expected."""
        while not self._is_done():
            self._turn()

    def _is_done(self) -> bool:
        if not self._keeper.is_idle or self._supervisors:
            return False
        return self._may_leave or time.monotonic() - self._alone_since >= IDLE_S

    def _turn(self) -> None:
        for key, mask in self._selector.select(self._delay_s()):
            if isinstance(key.data, Channel):
                self._serve(key.data, mask)
            elif key.fileobj is self._listener:
                self._accept()
            else:
                with contextlib.suppress(BlockingIOError):
                    self._wake.recv(4096)
        self._keeper.tend()
        if self._has_ripe_news(time.monotonic()):
            self._tell_news()

    def _delay_s(self) -> float | None:
        delays = (
            self._keeper.delay_s(),
            None if self._supervisors else IDLE_S,
            None if self._started_at is None else max(0.0, self._started_at + STARTS_S - time.monotonic()),
        )
        return min((delay for delay in delays if delay is not None), default=None)

    def _has_ripe_news(self, now: float) -> bool:
        """Whether it is time to tell what there is."""
        keeper = self._keeper
        if self._started_at is None and keeper.started:
            self._started_at = now
        if keeper.is_launching:
            return now - self._told_at >= NEWS_S
        if keeper.ended or keeper.marks:
            return True
        return self._started_at is not None and now - self._started_at >= STARTS_S

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):
            link, _ = self._listener.accept()
            if len(self._supervisors) >= SUPERVISORS_MAX:
                link.close()
                return
            channel = Channel(link, keeper_asked_inbox())
            self._supervisors.append(channel)
            self._selector.register(link, selectors.EVENT_READ, channel)

    def _serve(self, channel: Channel[KeeperAsked], mask: int) -> None:
        if channel not in self._supervisors:  # heard out in this very turn
            return
        try:
            for frame in channel.take_turn(mask):
                self._take(channel, frame)
            self._selector.modify(channel.link, channel.interest, channel)
        except (OSError, EngineError) as error:
            _log.info("a supervisor's connection ended: %s", error)
            self._drop(channel)

    def _take(self, channel: Channel[KeeperAsked], frame: KeeperAsked) -> None:
        if isinstance(frame, Meet):
            self._hear_out(channel)
            self._tell_news()  # what is in the answer is no news
            self._told.append(channel)
            channel.tell(Kept(self._keeper.inventory(), self._keeper.last_marks()))
        elif isinstance(frame, Keep):
            self._may_leave = False
            self._keeper.keep(frame.name, frame.first, frame.count)
        elif isinstance(frame, Leave):
            self._may_leave = True
        elif isinstance(frame, Stop):
            self._keeper.stop(frame)
        else:
            self._keeper.forget(frame)

    def _hear_out(self, newcomer: Channel[KeeperAsked]) -> None:
        """What an earlier supervisor still asked comes before the answer to the next: there is one at a time."""
        for channel in [channel for channel in self._supervisors if channel is not newcomer]:
            try:
                while (frames := channel.read()) is not None:
                    for frame in frames:
                        self._take(channel, frame)
            except (OSError, EngineError):
                self._drop(channel)

    def _tell_news(self) -> None:
        keeper, self._told_at, self._started_at = self._keeper, time.monotonic(), None
        while keeper.started or keeper.ended or keeper.marks:
            parts = (keeper.started, keeper.ended, keeper.marks)
            news = News(keeper.started[:NEWS_MAX], keeper.ended[:NEWS_MAX], keeper.marks[:NEWS_MAX])
            for part in parts:
                del part[:NEWS_MAX]
            for channel in list(self._told):
                try:
                    channel.tell(news)
                    self._selector.modify(channel.link, channel.interest, channel)
                except (OSError, EngineError):
                    self._drop(channel)

    def _drop(self, channel: Channel[KeeperAsked]) -> None:
        self._supervisors.remove(channel)
        if channel in self._told:
            self._told.remove(channel)
        self._selector.unregister(channel.link)
        channel.link.close()
        self._alone_since = time.monotonic()


if __name__ == "__main__":
    sys.exit(main())
