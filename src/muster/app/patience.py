"""Patience with slow clients: for how long the follower's HTTP server waits for a request's head, for its body, and for
somebody who does not read. Whoever takes longer is answered M324, if that is still possible, and hung up on; who asks
nothing more is let go in silence. And with heads: one that is too large, or is none, is refused before anybody has to
say who they are, in words as every refusal is.

A connection only notes since when it waits; one look every second finds who is overdue. A request that is being worked
on, a long poll and a watch that is read are never overdue. It knows no route and no token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from muster.api.problems import describe_problem
from muster.model.reason import Code, Reason

HEAD_S: Final = 10.0
"""From the connection, or from the first byte after an answer, to the end of the headers."""
BODY_S: Final = 60.0
"""From there to the end of the body: 32 MiB need half a megabyte a second."""
READ_S: Final = 60.0
"""For how long a client may leave an answer unread once its buffers are full."""
IDLE_S: Final = 5.0
"""For how long a connection is kept for another request after an answer."""
LOOK_S: Final = 1.0
HEAD_BYTES_MAX: Final = 64 * 1024
"""What the names and values of the headers may have together; a token of an identity provider has up to 16 KiB."""
TARGET_BYTES_MAX: Final = 8 * 1024
"""What the address of a request may have, with its query."""
UNSENT_BYTES_MAX: Final = 64 * 1024
"""How much may wait for the end of a turn."""

NO_REQUEST: Final = Reason(Code.BAD_SPEC, "request", detail="it is not HTTP/1.1, or its address is none")

NOTHING: Final = ""
"""What is waited for by whoever works on a request, or has answered it."""


class PatientProtocol(HttpToolsProtocol):
    """One connection of uvicorn's, which knows when it becomes overdue."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._heard_by: float | None = None
        self._read_by: float | None = None
        self._waits_for = NOTHING
        self._head_bytes = 0
        self._refused: tuple[Reason, int] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Somebody is there: a request is to follow."""
        super().connection_made(cast("asyncio.Transport", Envelope(transport, self.loop)))
        self._expect("headers", HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._heard_by = self._read_by = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came; what is not yet a request is one that is to come, whatever it is."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._waits_for == "headers" and self._head_bytes > HEAD_BYTES_MAX + TARGET_BYTES_MAX:
            self._refused = self._judge_head(self._head_bytes)
            self.send_400_response("")
        if not self._waits_for and self._has_answered():
            self._expect("headers", HEAD_S)

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._expect("headers", HEAD_S)

    def on_headers_complete(self) -> None:
        """Its head is there; only one that came in many bytes is looked at."""
        if self._head_bytes > TARGET_BYTES_MAX:
            self._refused = self._judge_head(sum(len(name) + len(value) for name, value in self.headers))
            if self._refused is not None:
                raise ValueError(self._refused)  # the parser ends here, and has `send_400_response` called
        self._head_bytes = 0
        self._expect("body", BODY_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of it is there: from here on it is we who take our time."""
        self._heard_by, self._waits_for, self._head_bytes = None, NOTHING, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """It is answered. uvicorn would set an alarm for each answer, and take it back with the next request."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._expect(NOTHING, IDLE_S)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's own words for what the parser refused
        """Refuse what is no request, or has too large a head, and hang up."""
        if self.transport.is_closing():
            return
        if self._has_answered() or not self.cycle.response_started:
            self.transport.write(_refusal(*(self._refused or (NO_REQUEST, 400))))
        self.transport.close()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._read_by = self.loop.time() + READ_S

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self._read_by = None

    def is_overdue(self, now: float) -> bool:
        """Whether the client had its time."""
        return any(by is not None and now >= by for by in (self._heard_by, self._read_by))

    def hang_up(self) -> None:
        """End it; whoever has not been answered is told why."""
        if self._read_by is not None:
            self.transport.abort()  # what it does not read, it need not get
            return
        if self._waits_for and (self._has_answered() or not self.cycle.response_started):
            patience_s = HEAD_S if self._waits_for == "headers" else BODY_S
            self.transport.write(_refusal(Reason(Code.SLOW_CLIENT, self._waits_for, available=int(patience_s)), 408))
        self.transport.close()

    def _judge_head(self, size: int) -> tuple[Reason, int] | None:
        """What is wrong with a head whose headers have so many bytes, as far as it is known."""
        if len(self.url) > TARGET_BYTES_MAX:
            return Reason(Code.TOO_LARGE, "the address", needed=len(self.url), available=TARGET_BYTES_MAX), 414
        if size > HEAD_BYTES_MAX:
            return Reason(Code.TOO_LARGE, "the head", needed=size, available=HEAD_BYTES_MAX), 431
        return None

    def _has_answered(self) -> bool:
        """Whether nobody is being answered; before the first request, uvicorn has no cycle."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _expect(self, what: str, patience_s: float) -> None:
        self._waits_for = what
        self._heard_by = self.loop.time() + patience_s


class Envelope:
    """A connection on which all that is written in one turn of the loop leaves together, in one call of the system and
    one packet; and so close to what others are sent in that turn that whoever has many connections is woken once."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._unsent = b""
        self.is_closing = transport.is_closing  # asked for with every answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send this when the turn is over, or now if it is much: only what was sent is known to find no reader."""
        if not self._unsent:
            self._loop.call_soon(self.send)
        self._unsent += data
        if len(self._unsent) > UNSENT_BYTES_MAX:
            self.send()

    def send(self) -> None:
        """Send what was written, as long as the connection lasts."""
        data, self._unsent = self._unsent, b""
        if data and not self.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """End the connection once it has been sent everything."""
        self.send()
        self._transport.close()


async def keep_looking(connections: Iterable[object]) -> None:
    """Hang up on whoever is overdue, for ever."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_S)
        end_overdue(connections, loop.time())


def end_overdue(connections: Iterable[object], now: float) -> int:
    """Hang up on those of the connections that are overdue; how many were."""
    overdue = [one for one in connections if isinstance(one, PatientProtocol) and one.is_overdue(now)]
    for one in overdue:
        one.hang_up()
    return len(overdue)


def _refusal(reason: Reason, status: int) -> bytes:
    body = msgspec.json.encode(describe_problem(reason, status))
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/problem+json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
