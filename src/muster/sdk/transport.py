"""One HTTP connection to the server, and the rule of trying again.

Every request that this client sends may be sent twice without harm (reads, keyed submits, cancels, whole quotas), so a
broken connection, a 429 and a 503 are tried again with a growing pause until the client's patience is over. A server
that this client has never reached is reported at once: then nothing runs, and waiting would only hide it.

It knows addresses, tokens and status codes; not what the bodies mean.
"""

from __future__ import annotations

import contextlib
import http.client
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from muster.sdk.errors import NoServerError, make_error, strange_answer
from muster.sdk.home import Address
from muster.wire.views import Problem

PAUSE_FIRST_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0
ANSWER_TIMEOUT_S: Final = 90.0
BODY_MAX: Final = 64 * 1024 * 1024
TRY_AGAIN: Final = frozenset({429, 503})


class Request(msgspec.Struct, frozen=True):
    """What is asked: it can be sent again as it is."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: bytes = b""


class Reply(msgspec.Struct, frozen=True):
    """What came back, if it was not a problem."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def number(self, name: str) -> int | None:
        """A header that holds a number, if it is there."""
        text = self.headers.get(name.lower(), "")
        return int(text) if text.isdigit() else None


class Transport:
    """Sends requests over one connection that is kept. Not for several threads at once."""

    def __init__(
        self,
        find_address: Callable[[], Address | None],
        read_token: Callable[[], str],
        where: str,
        patience_s: float,
    ) -> None:
        self._find_address = find_address
        self._read_token = read_token
        self._where = where
        self._patience_s = patience_s
        self._connection: http.client.HTTPConnection | None = None
        self._reached = False

    def send(self, request: Request) -> Reply:
        """The reply, after as many tries as patience allows; AnsweredError or NoServerError otherwise."""
        give_up_at = time.monotonic() + self._patience_s
        pause_s = PAUSE_FIRST_S
        while True:
            reply = self._try(request)
            left_s = give_up_at - time.monotonic()
            if reply is not None and (reply.status not in TRY_AGAIN or left_s <= 0):
                return _check(reply)
            if reply is None and (left_s <= 0 or not self._reached):
                raise NoServerError(self._where)
            time.sleep(min(pause_s, max(left_s, 0)))
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

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
            connection.request(request.method, request.path, request.body or None, headers)
            answer = connection.getresponse()
            body = answer.read(BODY_MAX)
        except (OSError, http.client.HTTPException):
            self.close()
            return None
        self._reached = True
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, body)

    def _connect(self) -> http.client.HTTPConnection | None:
        if self._connection is None:
            address = self._find_address()
            if address is None:
                return None
            connection = http.client.HTTPConnection(address.host, address.port, timeout=ANSWER_TIMEOUT_S)
            connection.connect()
            self._connection = connection
        return self._connection


def _check(reply: Reply) -> Reply:
    """The reply itself, unless it is a problem."""
    if reply.status < 400:
        return reply
    with contextlib.suppress(msgspec.MsgspecError):
        raise make_error(msgspec.json.decode(reply.body, type=Problem))
    raise make_error(strange_answer(reply.body, f"HTTP {reply.status}"))
