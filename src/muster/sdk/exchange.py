"""One HTTP/1.1 exchange at a time over one kept connection, parsed by httptools.

Why not `http.client`: it brings the mail and TLS packages along, a quarter of what a short command costs to start.
It knows bytes and headers; not which requests may be sent twice.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import httptools
import msgspec

from muster.sdk.whereabouts import Address

READ_BYTES: Final = 256 * 1024
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024


class Answer(msgspec.Struct, frozen=True):
    """What came back; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Silence(NamedTuple):
    """How long an answer may need to begin, and what is called when it needs longer; it is waited for all the same."""

    after_s: float
    tell: Callable[[], None]


class Connection:
    """A connection to one server. Every failure is an OSError, and the connection is then of no more use."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        host, port = address.host, address.port
        self._host = f"{host}:{port}"
        # As bytes: for text, the tables of international names would be loaded, a fiftieth of a short command.
        name = host.encode("ascii" if host.isascii() else "idna")
        self._link = socket.create_connection((name, port), timeout_s)  # type: ignore[arg-type]  # the stubs forget bytes
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.cert or address.is_tls:
            self._link = _secure(self._link, host, address.cert)

    def exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, silence: Silence | None = None
    ) -> Answer:
        """Send a request and wait for its answer; if that does not begin for a while, somebody may be told."""
        self.ask(method, path, headers, body)
        if silence is not None and not self._speaks_within(silence.after_s):
            silence.tell()
        reading = _Reading()
        parser = httptools.HttpResponseParser(reading)
        try:
            while not reading.is_complete:
                parser.feed_data(self.take())
        except httptools.HttpParserError as error:
            raise ConnectionError(f"not an HTTP answer: {error}") from error
        return Answer(parser.get_status_code(), reading.headers, bytes(reading.body))

    def _speaks_within(self, span_s: float) -> bool:
        looking = select.poll()
        looking.register(self._link, select.POLLIN)
        return bool(looking.poll(span_s * 1000))

    def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a request, and leave what comes back to whoever takes it."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._link.sendall("\r\n".join((*lines, "", "")).encode("latin-1") + body)

    def fileno(self) -> int:
        """What `select` wants to know."""
        return self._link.fileno()

    def close(self) -> None:
        """Hang up."""
        self._link.close()

    def take(self) -> bytes:
        """The next bytes that come."""
        data = self._link.recv(READ_BYTES)
        if not data:
            raise ConnectionResetError("closed by the server")
        return data


def _secure(link: socket.socket, host: str, cert: str) -> socket.socket:
    import ssl  # most servers are on this machine, and loading it would be felt

    context = ssl.create_default_context()
    if cert:
        context.load_verify_locations(cert)
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # that certificate itself is trusted, whoever signed it
    return context.wrap_socket(link, server_hostname=host)


class _Reading:
    """What the parser has found so far; its method names are the parser's own."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.is_complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        if len(self.body) + len(data) > ANSWER_BYTES_MAX:
            raise ConnectionError("the answer is too large")
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True
