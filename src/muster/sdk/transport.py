"""One HTTP connection to the server, and the rule of trying again.

Every request that this client sends may be sent twice without harm (reads, keyed submits, cancels, whole quotas), so a
broken connection, a 429 and a 503 are tried again with a growing pause until the client's patience is over. A server
that this client has never reached is reported at once: then nothing runs, and waiting would only hide it.

It knows addresses, tokens and status codes; not what the bodies mean.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from muster.sdk.ear import EAR
from muster.sdk.errors import NoServerError, make_error, strange_answer
from muster.sdk.exchange import Answer, Connection, Silence
from muster.sdk.whereabouts import Address
from muster.units import SECOND_MS, show_duration
from muster.wire.views import Problem

PAUSE_FIRST_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
TELL_AFTER_S: Final = 1.0
ANSWER_TIMEOUT_S: Final = 90.0
SILENT_AFTER_S: Final = 5.0
"""For how long nobody wonders why there is no answer."""
OVERLOADED: Final = 429
TRY_AGAIN: Final = frozenset({OVERLOADED, 503})


class Request(msgspec.Struct, frozen=True):
    """What is asked: it can be sent again as it is. The server is given `wait_s` to begin its answer."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    wait_s: float = 0


class Reply(Answer, frozen=True):
    """What came back, if it was not a problem."""

    def number(self, name: str) -> int | None:
        """A header that holds a number, if it is there."""
        text = self.headers.get(name.lower(), "")
        return int(text) if text.isdigit() else None


class Patience:
    """How long a failure is put up with, counted from the first one on: whatever was asked for may have taken long
    before it, because that was asked for. The pauses between two tries grow."""

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._since: float | None = None
        self._pause_s = PAUSE_FIRST_S
        self._is_told = False

    def pause(self, least_s: float = 0, what: str = "the server is busy") -> bool:
        """Wait before the next try; False, and at once, if there is to be none. If it takes long, what is the matter is
        told once."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        left_s = self._since + self._span_s - now
        if left_s <= 0:
            return False
        if now - self._since >= TELL_AFTER_S and not self._is_told:
            self._is_told = True
            EAR.hear(f"{what}; trying again for {show_duration(round(left_s) * SECOND_MS)}")
        time.sleep(min(max(self._pause_s, least_s), left_s))
        self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
        return True


class Transport:
    """Sends requests over one connection that is kept. Not for several threads at once."""

    def __init__(
        self,
        find_address: Callable[[], Address | None],
        read_token: Callable[[], str],
        where: str,
        patience_s: float,
        answer_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        self._find_address = find_address
        self._read_token = read_token
        self._where = where
        self.patience_s = patience_s
        self._answer_s = answer_s
        self._is_silent = False
        self._connection: Connection | None = None
        self._reached = False

    def send(self, request: Request) -> Reply:
        """The reply, after as many tries as patience allows; AnsweredError or NoServerError otherwise."""
        patience = Patience(self.patience_s)
        while True:
            reply = self._try(request)
            if reply is not None and reply.status not in TRY_AGAIN:
                return _check(reply)
            if (reply is not None or self._reached) and patience.pause(_asked_pause_s(reply), _excuse(reply)):
                continue
            if reply is None:
                raise NoServerError(self._where, int(self._answer_s) if self._is_silent else 0)
            return _check(reply)

    def close(self) -> None:
        """Hang up; the next request connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _try(self, request: Request) -> Reply | None:
        """One exchange; None if there was nobody, or the connection broke on the way."""
        try:
            connection = self._connect()
            if connection is None:
                return None
            headers = {**request.headers, "Authorization": f"Bearer {self._read_token()}"}
            silence = self._bear(request.wait_s)
            answer = connection.exchange(request.method, request.path, headers, request.body, silence)
        except OSError as error:
            self._is_silent = isinstance(error, TimeoutError)
            self.close()
            return None
        self._reached = True
        return Reply(answer.status, answer.headers, answer.body)

    def _bear(self, wait_s: float) -> Silence | None:
        """After how much silence somebody is told that it will be waited for; None if the end of it comes first."""
        after_s = wait_s + SILENT_AFTER_S
        if after_s >= self._answer_s:
            return None
        left = show_duration(round(self._answer_s - after_s) * SECOND_MS)
        words = f"the server is there and has not answered for {show_duration(round(after_s) * SECOND_MS)}"
        return Silence(after_s, lambda: EAR.hear(f"{words}; waiting for {left} more"))

    def _connect(self) -> Connection | None:
        if self._connection is None:
            address = self._find_address()
            if address is None:
                return None
            self._connection = Connection(address, self._answer_s)
        return self._connection


def _asked_pause_s(reply: Reply | None) -> int:
    """How long an overloaded server wants to be left alone. A missing leader may be back at any moment."""
    return (reply.number("Retry-After") or 0) if reply is not None and reply.status == OVERLOADED else 0


def _excuse(reply: Reply | None) -> str:
    """What is the matter, in the server's words if it has any."""
    if reply is None:
        return "the server went away"
    with contextlib.suppress(msgspec.MsgspecError):
        return msgspec.json.decode(reply.body, type=Problem).detail
    return f"the server answers HTTP {reply.status}"


def _check(reply: Reply) -> Reply:
    """The reply itself, unless it is a problem."""
    if reply.status < 400:
        return reply
    with contextlib.suppress(msgspec.MsgspecError):
        raise make_error(msgspec.json.decode(reply.body, type=Problem))
    raise make_error(strange_answer(reply.body, f"HTTP {reply.status}"))
