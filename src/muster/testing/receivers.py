"""Those who are told: a Notifier that remembers, and a real HTTP receiver on this machine for webhooks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple

import msgspec

from muster.ports.notifier import NotDeliveredError
from muster.wire.notices import Notice

ARRIVED: Final = 204
POLL_S: Final = 0.01
"""How soon it notices that it is to end."""


class Ear:
    """A Notifier that remembers, and refuses as often as it is told to."""

    def __init__(self, refusals: int = 0, *, is_final: bool = False) -> None:
        self.heard: list[Notice] = []
        self.refusals = refusals
        self.tries = 0
        self.is_final = is_final
        self._lock = threading.Lock()

    def deliver(self, number: str, body: bytes) -> None:
        """Take a notice, or refuse it."""
        with self._lock:
            self.tries += 1
            if self.refusals:
                self.refusals -= 1
                raise NotDeliveredError("not now", is_final=self.is_final)
            notice = msgspec.json.decode(body, type=Notice)
            assert notice.id == number  # noqa: S101 - of the kit: what it says of itself is what it was sent as
            self.heard.append(notice)


class Heard(NamedTuple):
    """One request: its headers, their names in lower case, and its body."""

    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent, and answers each request as `judge` says of how many there were before it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.judge: Callable[[int], int] = lambda before: ARRIVED  # noqa: ARG005 - always the same
        self.heard: list[Heard] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)  # noqa: S101 - made by it alone
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.judge(len(self.server.heard))
        self.server.heard.append(Heard({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens."""
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
