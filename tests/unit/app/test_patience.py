"""Slow clients: a connection is ended when it is overdue and not a moment sooner; what is worked on never is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from muster.app.patience import (
    BODY_S,
    HEAD_BYTES_MAX,
    HEAD_S,
    IDLE_S,
    READ_S,
    TARGET_BYTES_MAX,
    UNSENT_BYTES_MAX,
    Envelope,
    PatientProtocol,
    end_overdue,
)
from muster.app.serve import configure
from muster.wire.views import Problem

SOON = 0.001


class Wire(asyncio.Transport):
    """A connection of which a test holds the other end."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.is_closed = False

    @property
    def sent(self) -> bytes:
        return b"".join(self.pieces)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class HandLoop(asyncio.SelectorEventLoop):
    """A loop whose clock a test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 100.0

    def time(self) -> float:
        return self.at


async def never_answers(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.get_running_loop().create_future()


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"yes")(scope, receive, send)


async def stream(scope: Scope, receive: Receive, send: Send) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.get_running_loop().create_future()

    await StreamingResponse(parts())(scope, receive, send)


@pytest.fixture
def loop() -> Iterator[HandLoop]:
    loop = HandLoop()
    yield loop
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def connect(loop: HandLoop, app: ASGIApp = never_answers) -> tuple[PatientProtocol, Wire]:
    config = configure(app)
    config.load()
    wire = Wire()
    protocol = PatientProtocol(config, ServerState(), {}, loop)
    protocol.connection_made(wire)
    return protocol, wire


def check_ended_after(loop: HandLoop, patience_s: float, protocol: PatientProtocol, wire: Wire, what: str) -> None:
    assert end_overdue([protocol], loop.at + patience_s - SOON) == 0
    assert wire.sent == b""
    assert end_overdue([protocol], loop.at + patience_s) == 1
    assert wire.is_closed
    head, _, body = wire.sent.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    problem = msgspec.json.decode(body, type=Problem)
    assert (problem.code, what in problem.detail) == ("M324", True)


def test_who_says_nothing_is_hung_up_on(loop: HandLoop) -> None:
    check_ended_after(loop, HEAD_S, *connect(loop), "headers")


def test_headers_that_trickle_have_one_patience_for_all(loop: HandLoop) -> None:
    protocol, wire = connect(loop)
    protocol.data_received(b"POST /v1/jobs HTTP/1.1\r\n")
    begun = loop.at
    for number in range(5):
        loop.at += HEAD_S / 10
        protocol.data_received(b"X-%d: y\r\n" % number)
    loop.at = begun
    check_ended_after(loop, HEAD_S, protocol, wire, "headers")


def test_a_body_that_does_not_come_is_not_waited_for(loop: HandLoop) -> None:
    protocol, wire = connect(loop)
    loop.at += HEAD_S - SOON
    protocol.data_received(b"POST /v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12")
    check_ended_after(loop, BODY_S, protocol, wire, "body")


def refused(wire: Wire) -> tuple[int, str]:
    """With what status and code somebody was refused and hung up on."""
    assert wire.is_closed
    head, _, body = wire.sent.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json\r\n" in head
    problem = msgspec.json.decode(body, type=Problem)
    assert head.startswith(b"HTTP/1.1 %d " % problem.status)
    return problem.status, problem.code


@pytest.mark.parametrize("size", [100, 256 * 1024])
def test_headers_without_an_end_are_refused_while_they_come(loop: HandLoop, size: int) -> None:
    protocol, wire = connect(loop, answer)
    protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
    for _ in range(2 * HEAD_BYTES_MAX // size + 2):
        if not wire.is_closing():
            protocol.data_received(size * b"x")
    assert refused(wire) == (431, "M104")


@pytest.mark.parametrize("asked_before", [False, True])
def test_headers_may_have_so_many_bytes_and_not_one_more(loop: HandLoop, asked_before: bool) -> None:
    for more, status in ((0, b"200"), (1, b"431")):
        protocol, wire = connect(loop, answer)
        if asked_before:
            ask(loop, protocol)
            wire.pieces.clear()
        value = (HEAD_BYTES_MAX - len("HostaX") + more) * b"x"
        protocol.data_received(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + value + b"\r\n\r\n")
        for _ in range(5):
            loop.run_until_complete(asyncio.sleep(0))
        assert wire.sent.split()[1] == status


def test_an_address_may_have_so_many_bytes_and_not_one_more(loop: HandLoop) -> None:
    for more, status in ((0, b"200"), (1, b"414")):
        protocol, wire = connect(loop, answer)
        target = b"/?" + (TARGET_BYTES_MAX - 2 + more) * b"x"
        protocol.data_received(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
        for _ in range(5):
            loop.run_until_complete(asyncio.sleep(0))
        assert wire.sent.split()[1] == status


def test_a_large_body_is_no_head(loop: HandLoop) -> None:
    protocol, wire = connect(loop, answer)
    size = 4 * HEAD_BYTES_MAX
    protocol.data_received(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size + (size - 9) * b"x")
    protocol.data_received(9 * b"x" + b"GET / HTTP/1.1\r\nHost: ")
    protocol.data_received(b"a\r\n\r\n")
    for _ in range(9):
        loop.run_until_complete(asyncio.sleep(0))
    assert wire.sent.count(b"yes") == 2


@pytest.mark.parametrize("said", [b"FOO / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"])
def test_what_is_no_request_is_refused_in_words(loop: HandLoop, said: bytes) -> None:
    protocol, wire = connect(loop, answer)
    protocol.data_received(said)
    assert refused(wire) == (400, "M101")


def test_what_is_worked_on_is_never_overdue(loop: HandLoop) -> None:
    protocol, wire = connect(loop)
    protocol.data_received(b"GET /v1/jobs/1?wait_ms=60000 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert end_overdue([protocol], loop.at + 1e6) == 0
    assert not wire.is_closed


def test_who_does_not_read_is_cut_off(loop: HandLoop) -> None:
    protocol, wire = connect(loop)
    protocol.data_received(b"GET /v1/watch HTTP/1.1\r\nHost: a\r\n\r\n")
    protocol.pause_writing()
    assert end_overdue([protocol], loop.at + READ_S - SOON) == 0
    protocol.resume_writing()
    assert end_overdue([protocol], loop.at + READ_S) == 0
    protocol.pause_writing()
    assert end_overdue([protocol], loop.at + READ_S) == 1
    assert (wire.is_closed, wire.sent) == (True, b"")


def ask(loop: HandLoop, protocol: PatientProtocol, method: bytes = b"GET") -> None:
    protocol.data_received(method + b" / HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))


def test_bytes_that_are_no_request_do_not_keep_a_connection(loop: HandLoop) -> None:
    protocol, wire = connect(loop, answer)
    ask(loop, protocol)
    wire.pieces.clear()
    loop.at += IDLE_S - SOON
    protocol.data_received(b"\r\n")
    check_ended_after(loop, HEAD_S, protocol, wire, "headers")


def test_who_asks_nothing_more_is_let_go_in_silence(loop: HandLoop) -> None:
    protocol, wire = connect(loop, answer)
    for _ in range(2):
        loop.at += IDLE_S - SOON
        ask(loop, protocol)
    wire.pieces.clear()
    assert end_overdue([protocol], loop.at + IDLE_S - SOON) == 0
    assert end_overdue([protocol], loop.at + IDLE_S) == 1
    assert (wire.is_closed, wire.sent) == (True, b"")


def test_requests_sent_ahead_are_answered_in_order(loop: HandLoop) -> None:
    protocol, wire = connect(loop, answer)
    protocol.data_received(2 * b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    for _ in range(5):
        loop.run_until_complete(asyncio.sleep(0))
    assert wire.sent.count(b"yes") == 2


def test_an_answer_leaves_in_one_piece(loop: HandLoop) -> None:
    protocol, wire = connect(loop, answer)
    ask(loop, protocol)
    [whole] = wire.pieces
    assert whole.endswith(b"\r\n\r\nyes")


def test_a_head_without_a_body_is_sent_all_the_same(loop: HandLoop) -> None:
    protocol, wire = connect(loop, answer)
    ask(loop, protocol, b"HEAD")
    assert wire.sent.endswith(b"content-length: 3\r\n\r\n")


def test_the_head_of_a_stream_does_not_wait_for_it(loop: HandLoop) -> None:
    protocol, wire = connect(loop, stream)
    ask(loop, protocol)
    head, _, first = wire.sent.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert first == b"5\r\nfirst\r\n"


def test_what_is_written_in_one_turn_leaves_at_its_end_and_in_order(loop: HandLoop) -> None:
    wires = [Wire(), Wire()]
    envelopes = [Envelope(wire, loop) for wire in wires]
    for number in (b"1", b"2"):
        for envelope in envelopes:
            envelope.write(number)
    assert [wire.pieces for wire in wires] == [[], []]
    loop.run_until_complete(asyncio.sleep(0))
    assert [wire.pieces for wire in wires] == [[b"12"], [b"12"]]


def test_what_is_much_does_not_wait_for_the_end_of_a_turn(loop: HandLoop) -> None:
    wire = Wire()
    envelope = Envelope(wire, loop)
    for _ in range(4):
        envelope.write(bytes(UNSENT_BYTES_MAX // 2))
    assert len(wire.sent) > UNSENT_BYTES_MAX
    loop.run_until_complete(asyncio.sleep(0))
    assert len(wire.sent) == 4 * (UNSENT_BYTES_MAX // 2)


def test_a_connection_that_is_closed_is_sent_everything_and_one_that_is_cut_off_nothing(loop: HandLoop) -> None:
    closed, cut = Wire(), Wire()
    envelopes = [Envelope(wire, loop) for wire in (closed, cut)]
    for envelope in envelopes:
        envelope.write(b"last words")
    envelopes[0].close()
    envelopes[1].abort()
    loop.run_until_complete(asyncio.sleep(0))
    assert (closed.sent, cut.sent) == (b"last words", b"")


def test_others_who_are_in_the_same_set_are_left_alone() -> None:
    assert end_overdue([object()], 1e9) == 0
