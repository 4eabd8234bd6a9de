"""A real HTTP server on a port of the system's choice that answers from a script, for tests of the client."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import msgspec
import pytest

from muster.sdk import Client
from muster.sdk.home import Address


class Answer(NamedTuple):
    """One scripted answer; `hang_up` closes the connection without one."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = {}
    hang_up: bool = False


class Seen(NamedTuple):
    """One request as the server saw it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class ScriptedServer:
    """Answers each request with the next item of the script, the last one for ever."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.seen: list[Seen] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(handler) -> None:  # noqa: N805 - `self` is the script's owner
                self._answer(handler)

            do_GET = do_POST = do_PUT = do_DELETE = handle_any  # noqa: N815 - the names are the standard library's

            def log_message(handler, format: str, *args: object) -> None:  # noqa: A002, N805 - the library's signature
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.address = Address("127.0.0.1", self._http.server_address[1])

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.seen.append(Seen(handler.command, handler.path, headers, body))
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if answer.hang_up:
            handler.close_connection = True
            return
        data = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
        handler.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(data))}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    @contextmanager
    def serving(self) -> Iterator[ScriptedServer]:
        """Serve inside the block."""
        thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            thread.join()
            self._http.server_close()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server that a test scripts."""
    with ScriptedServer().serving() as running:
        yield running


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    """A client of it."""
    with Client(address=server.address, token="secret") as made:  # noqa: S106 - the scripted server's
        yield made
