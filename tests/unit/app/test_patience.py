"""Slow clients: a connection is ended when it is overdue and not a moment sooner; what is worked on never is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from uvicorn.server import ServerState

from muster.app.patience import BODY_S, HEAD_S, READ_S, PatientProtocol, end_overdue
from muster.app.serve import configure
from muster.wire.views import Problem

SOON = 0.001


class Wire(asyncio.Transport):
    """A connection of which a test holds the other end."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

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


async def never_answers(scope: object, receive: object, send: object) -> None:
    await asyncio.get_running_loop().create_future()


@pytest.fixture
def loop() -> Iterator[HandLoop]:
    loop = HandLoop()
    yield loop
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def connect(loop: HandLoop) -> tuple[PatientProtocol, Wire]:
    config = configure(never_answers)
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


def test_bytes_that_are_no_request_do_not_keep_a_connection(loop: HandLoop) -> None:
    protocol, wire = connect(loop)
    protocol._heard_by = None  # as after an answer
    protocol.data_received(b"\r\n")
    check_ended_after(loop, HEAD_S, protocol, wire, "headers")


def test_others_who_are_in_the_same_set_are_left_alone() -> None:
    assert end_overdue([object()], 1e9) == 0
