"""The clients of benchmarks: one request at a time each, of which the answer is heard whole."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from bench.clients import Plan, _Caller, _is_whole, get

GOOD = b"HTTP/1.1 201 Created\r\ncontent-length: 5\r\n\r\n12345"
EMPTY = b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n"


@pytest.fixture
def ends() -> Iterator[tuple[_Caller, socket.socket]]:
    """A caller with two requests, and who answers it."""
    asked = [get(f"/{number}", "token") for number in range(2)]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        caller = _Caller(Plan("127.0.0.1", listening.getsockname()[1], asked, clients=1), asked)
        server, _ = listening.accept()
        with caller.line, server:
            yield caller, server


@pytest.mark.parametrize("answer", [GOOD, EMPTY])
def test_an_answer_is_whole_with_its_last_byte(answer: bytes) -> None:
    assert [_is_whole(answer[:length]) for length in range(len(answer))] == [False] * len(answer)
    assert _is_whole(answer)


def test_an_answer_that_comes_in_pieces_is_heard_once(ends: tuple[_Caller, socket.socket]) -> None:
    caller, server = ends
    caller.ask(1.5)
    assert server.recv(1 << 16) == get("/0", "token")
    server.sendall(GOOD[:30])
    assert caller.hear() == b""
    server.sendall(GOOD[30:])
    assert (caller.hear(), caller.due) == (GOOD, 1.5)
    caller.ask(2.5)
    assert server.recv(1 << 16) == get("/1", "token")
    server.sendall(EMPTY)
    assert (caller.hear(), caller.due) == (EMPTY, 2.5)


def test_a_server_that_hangs_up_is_not_taken_for_one_that_is_slow(ends: tuple[_Caller, socket.socket]) -> None:
    caller, server = ends
    server.close()
    with pytest.raises(ConnectionError):
        caller.hear()
