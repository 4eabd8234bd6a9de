"""Changes: whoever waits goes on when the server says that something happened, and after a while in any case."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import msgspec
import pytest

from muster.sdk import changes
from muster.sdk.changes import Changes
from muster.sdk.whereabouts import Address

LONG_S = 60.0
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: begin\nid: 7\ndata: {}\n\n"
EVENT = b'event: ended\nid: 8\ndata: {"job":1}\n\n'


class Server:
    """Says its words to the one who asks, and notes what was asked."""

    def __init__(self, root: Path, words: bytes) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        host, port = self._listening.getsockname()
        (root / "address.json").write_bytes(msgspec.json.encode(Address(host, port)))
        (root / "token").write_text("secret\n")
        self.asked = b""
        self._words = words
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        link, _ = self._listening.accept()
        with link:
            self.asked = link.recv(65536)
            link.sendall(self._words)
            link.recv(1)  # until the other side hangs up

    def close(self) -> None:
        self._thread.join(LONG_S)
        self._listening.close()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses are noted and not made."""
    slept: list[float] = []
    monkeypatch.setattr("muster.sdk.changes.time.sleep", slept.append)
    return slept


def test_a_stream_is_asked_for_and_its_beginning_is_no_change(tmp_path: Path, at_once: list[float]) -> None:
    server = Server(tmp_path, HEAD)
    with Changes(str(tmp_path)) as changed:
        assert changed._listen() is not None
        assert b"GET /v1/watch HTTP/1.1" in server.asked
        assert b"Authorization: Bearer secret" in server.asked
        assert not changed.wait(0.0)
    server.close()
    assert at_once == [0.0]


def test_what_happens_is_heard(tmp_path: Path, at_once: list[float]) -> None:
    head, event = socket.socketpair()
    with Changes(str(tmp_path)) as changed:
        changed._connection = _Linked(head)  # type: ignore[assignment]  # as after the beginning of a stream
        event.sendall(b": alive\n\n")
        event.sendall(EVENT)
        assert changed.wait(LONG_S)
        assert at_once == [changes.GATHER_S]
    event.close()


class _Linked:
    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.fileno, self.close = link.fileno, link.close

    def take(self) -> bytes:
        return self._link.recv(65536)


def test_without_a_stream_it_only_waits(tmp_path: Path, at_once: list[float]) -> None:
    with Changes(str(tmp_path)) as changed:
        assert not changed.wait(LONG_S)
    server = Server(tmp_path, b"HTTP/1.1 429 Too Many\r\n\r\n")
    with Changes(str(tmp_path)) as changed:
        assert not changed.wait(LONG_S)
        assert changed._connection is None, "a refusal was taken for a stream"
    server.close()
    assert len(at_once) == 2
    assert all(0.0 < pause <= LONG_S for pause in at_once)
