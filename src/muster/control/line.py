"""The line to the leader: a follower's end of the socket. It carries asks out and brings answers in.

A broken line fails every ask that waits for an answer: the asker must know that it does not know. So does one at whose
other end nobody has spoken for long: a leader that decides says so now and then. It never retries an ask by itself,
since only the asker knows whether that is safe. An answer that has come is given to its asker when what it rests on is
folded here, and by then nothing can take it back.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias, cast

import msgspec

from muster.control.frames import Splitter, short_path
from muster.model.access import OfAccess, Principal
from muster.model.errors import MusterError, RejectedError
from muster.model.reason import Code, Reason
from muster.wire.link import Answer, Ask, Committed, Registered, Request, ToFollower, frame, replies_decoder

BACKOFF_FIRST_S: Final = 0.05
BACKOFF_MAX_S: Final = 1.0
ANSWER_PATIENCE_S: Final = 30.0
SILENCE_MAX_S: Final = 10.0
"""A leader speaks every other second; the slowest thing that it does in one go takes less than this."""

Waiter: TypeAlias = asyncio.Future[Answer] | asyncio.Future[Answer | int]
"""Whoever waits for an answer, or for whatever else they may get instead of one."""

_log = logging.getLogger(__name__)


class Line:
    """Keeps a connection to whoever leads, and tells how far the journal and the records are durable."""

    def __init__(
        self,
        socket_path: Path,
        on_news: Callable[[Committed | Registered], None],
        folded_seq: int = 0,
        silence_max_s: float = SILENCE_MAX_S,
    ) -> None:
        self._socket_path = socket_path
        self._on_news = on_news
        self._silence_max_s = silence_max_s
        self._end: _End | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[Waiter, float]] = {}
        self._folded_seq = folded_seq
        self._ahead: deque[list[tuple[Answer, Waiter]]] = deque()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether a leader hears us, and spoke lately."""
        return self._end is not None and time.monotonic() - self._end.heard_at < self._silence_max_s

    async def keep(self) -> None:
        """Connect, and connect again whenever the line breaks, for ever."""
        delay_s = BACKOFF_FIRST_S
        while True:
            end = await self._connect()
            if end is not None:
                _log.info("the leader is there")
                self._end = end
                delay_s = BACKOFF_FIRST_S
                try:
                    await self._mind(end)
                finally:
                    self._hang_up(end)
                _log.warning("the leader is away")
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, BACKOFF_MAX_S)

    async def _mind(self, end: _End) -> None:
        """Until the line breaks. Whoever waits for a leader that fell silent is told so; it may speak again."""
        is_silent = False
        while not end.lost.done():
            await asyncio.wait([end.lost], timeout=self._silence_max_s / 4)
            was_silent, is_silent = is_silent, not self.is_open
            if is_silent != was_silent:
                _log.warning("the leader is silent" if is_silent else "the leader speaks again")
            for number in list(self._waiting) if is_silent else ():
                self._fail(number)

    async def ask(self, request: Request | OfAccess, by: Principal | None = None, match: str = "") -> Answer:
        """The leader's answer; NO_LEADER if it is away, or if the line breaks before the answer."""
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.post([(request, waiting)], by, match)
        return await waiting

    def post(
        self,
        requests: Sequence[tuple[Request | OfAccess, Waiter]],
        by: Principal | None = None,
        match: str = "",
    ) -> None:
        """The same for several who wait already, and of whom each alone hears of whatever is wrong with its own."""
        end, loop = self._end, asyncio.get_running_loop()
        if end is None or not self.is_open:
            for _, waiting in requests:
                waiting.set_exception(no_leader())
            return
        until, asks = loop.time() + ANSWER_PATIENCE_S, list[Ask]()
        if self._alarm is None:
            self._alarm = loop.call_at(until, self._give_up)
        for request, waiting in requests:
            number = next(self._numbers)
            self._waiting[number] = waiting, until
            asks.append(Ask(number, request, by, match))
        end.send(asks)

    def seal(self, asks: list[Ask]) -> bytes:
        """Asks as they leave together. One that cannot be expressed goes nowhere, and harms nobody it came with."""
        try:
            return frame(*asks)
        except Exception as error:  # noqa: BLE001 - of whatever kind: whoever asked must hear of it
            if len(asks) > 1:
                return b"".join(self.seal([ask]) for ask in asks)
            self._fail(asks[0].number, error)
            return b""

    def take(self, messages: Iterable[ToFollower]) -> None:
        """The leader says something: how far the journal is before what rests on it, and in order."""
        letter, waiting = list[tuple[Answer, Waiter]](), self._waiting
        for message in messages:
            if not isinstance(message, Answer):
                self._on_news(message)
            elif message.number in waiting:
                letter.append((message, waiting.pop(message.number)[0]))
        if letter:
            self._ahead.append(letter)
            self.release(self._folded_seq)

    def release(self, folded_seq: int) -> None:
        """Entries up to this one are folded here: give the answers that rest on them."""
        self._folded_seq, ahead = folded_seq, self._ahead
        while ahead and ahead[0][-1][0].seq <= folded_seq:
            for answer, waiting in ahead.popleft():
                if not waiting.done():
                    waiting.set_result(answer)

    async def _connect(self) -> _End | None:
        loop = asyncio.get_running_loop()
        try:
            with short_path(self._socket_path) as path:
                _, end = await loop.create_unix_connection(lambda: _End(self), path)
        except OSError:
            return None
        return end

    def _hang_up(self, end: _End) -> None:
        self._end = None
        end.close()
        for number in list(self._waiting):
            self._fail(number)

    def _give_up(self) -> None:
        """Fail whoever has waited for too long: the first in line. One alarm for all, since most are answered soon."""
        loop, self._alarm = asyncio.get_running_loop(), None
        while self._waiting:
            number, (_, until) = next(iter(self._waiting.items()))
            if until > loop.time():
                self._alarm = loop.call_at(until, self._give_up)
                return
            self._fail(number)

    def _fail(self, number: int, error: Exception | None = None) -> None:
        waiting, _ = self._waiting.pop(number, (None, 0.0))
        if waiting is not None and not waiting.done():
            waiting.set_exception(error or no_leader())


class _End(asyncio.Protocol):
    """One connection. What is sent in one turn of the loop leaves together."""

    def __init__(self, line: Line) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.heard_at = time.monotonic()
        self._line = line
        self._splitter = Splitter()
        self._unsent: list[Ask] = []
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        if not self.lost.done():
            self.lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        self.heard_at = time.monotonic()
        try:
            for body in self._splitter.feed(data):
                self._line.take(replies_decoder.decode(body))
        except (RejectedError, msgspec.MsgspecError) as error:
            _log.error("the leader is not understood: %s", error)
            self.close()

    def send(self, asks: list[Ask]) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent += asks

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        asks, self._unsent = self._unsent, []
        if self._transport is not None:
            self._transport.write(self._line.seal(asks))


def no_leader() -> MusterError:
    """Nobody leads, or nobody answered: whether the ask was taken is not known."""
    return MusterError(Reason(Code.NO_LEADER))
