"""One HTTP request to the outside, with limits on everything: where it goes, how long it takes, how much comes back.

A name is resolved once; every address it has must be allowed, and the connection goes to one of those that were looked
at, so that a name cannot lead elsewhere a moment later. No redirect is followed and no proxy asked. It blocks: whoever
has a loop calls it in a thread.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from muster.outward.addresses import EVERYWHERE, Network, is_allowed, is_loopback

REPLY_BYTES_MAX: Final = 256 * 1024
PATIENCE_S: Final = 10.0
URL_CHARS_MAX: Final = 2048


class OutwardError(OSError):
    """A request was not made, or came to nothing; the words say why."""


class ForbiddenError(OutwardError):
    """A request that may not be made, now or later."""


class Reply(NamedTuple):
    """What came back; a long body is cut off."""

    status: int
    body: bytes


class Target(NamedTuple):
    """An address of ours to ask: the parts of a URL that are used."""

    is_tls: bool
    host: str
    port: int
    path: str


def read_target(url: str) -> Target:
    """The parts of a URL; ForbiddenError if it is not one that may be asked."""
    parts = _split(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or parts.username is not None or parts.password is not None:
        raise ForbiddenError("only http:// and https:// with a host, and no name or password in it")
    is_tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(is_tls, host, parts.port or (443 if is_tls else 80), path)


def _split(url: str) -> SplitResult:
    if len(url) > URL_CHARS_MAX or not url.isascii() or not url.isprintable() or " " in url:
        raise ForbiddenError("a URL is printable ASCII of at most 2,048 characters")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ForbiddenError(f"not a URL: {error}") from error
    return parts


def send(
    url: str,
    allowed: Sequence[Network],
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    patience_s: float = PATIENCE_S,
) -> Reply:
    """Make a request; OutwardError if it cannot be made or takes too long."""
    target = read_target(url)
    try:
        connection = _Pinned(target, _resolve(target, allowed), patience_s)
        with contextlib.closing(connection), connection.deadline(patience_s):
            connection.request(method, target.path, body, {"User-Agent": "muster", **(headers or {})})
            reply = connection.getresponse()
            data = reply.read(REPLY_BYTES_MAX)
            if reply.length and len(data) < REPLY_BYTES_MAX:
                raise OutwardError(f"{target.host}: the answer was cut short")
            return Reply(reply.status, data)
    except OutwardError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise OutwardError(f"{target.host}: {str(error) or type(error).__name__}") from error


def fetch(url: str) -> bytes:
    """A document that the admin named: from anywhere, but by TLS unless it is on this machine; OutwardError if it does
    not come whole."""
    target = read_target(url)
    if not target.is_tls and not is_loopback(target.host):
        raise ForbiddenError(f"{url} is neither https nor on this machine")
    reply = send(url, EVERYWHERE)
    if reply.status != 200 or len(reply.body) >= REPLY_BYTES_MAX:
        raise OutwardError(f"{url} answered {reply.status}, {len(reply.body)} bytes")
    return reply.body


def check_address(url: str, allowed: Sequence[Network]) -> None:
    """ForbiddenError if a URL names an address, in whatever spelling, that may not be asked. Where a name leads is not
    known before it is asked for: nobody is asked here."""
    target = read_target(url)
    if target.host == "localhost":
        target = target._replace(host="127.0.0.1")
    try:
        _resolve(target, allowed, socket.AI_NUMERICHOST)
    except socket.gaierror:
        return


def _resolve(target: Target, allowed: Sequence[Network], flags: int = 0) -> str:
    """An address of the host's; ForbiddenError if any of them is not allowed."""
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, flags=flags)
    addresses = [str(info[4][0]).partition("%")[0] for info in found]
    for address in addresses:
        if not is_allowed(ipaddress.ip_address(address), allowed):
            raise ForbiddenError(f"{target.host} is {address}, which may not be asked from here")
    return addresses[0]


class _Pinned(http.client.HTTPConnection):
    """A connection to one address, whatever the host's name leads to by now."""

    def __init__(self, target: Target, address: str, patience_s: float) -> None:
        super().__init__(target.host, target.port, timeout=patience_s)
        self._target = target
        self._address = address

    def connect(self) -> None:
        plain = socket.create_connection((self._address, self._target.port), self.timeout)
        self.sock = plain
        if self._target.is_tls:
            try:
                self.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=self._target.host)
            except BaseException:
                plain.close()
                raise

    @contextlib.contextmanager
    def deadline(self, patience_s: float) -> Iterator[None]:
        """Whoever sends a byte now and then would hold us for ever: cut the line when time is up."""
        timer = threading.Timer(patience_s, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cut(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self.sock.shutdown(socket.SHUT_RDWR)
