"""The guard: who may speak to the API at all. It stands before the router and knows no route but the open ones.

A browser must not be talked into using it: the Host must be a name of this machine (a rebound DNS name is not), and a
request that carries an Origin is a web page's. Then the token says who asks, and the body is bounded. What they may do
is for the gate to say.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster.api.counting import note_answer
from muster.api.gate import OPEN_PATHS, PRINCIPAL
from muster.api.params import DIGITS_MAX, HEADERS
from muster.api.problems import STATUS, ProblemResponse, RefusedError, bad_field, forbidden
from muster.model.access import HOME_OWNER, Principal
from muster.model.reason import Code, Reason

BODY_BYTES_MAX: Final = 1024 * 1024
BULK_BYTES_MAX: Final = 32 * 1024 * 1024
BULK_PATH: Final = "/v1/jobs/bulk"
SCHEME: Final = b"Bearer "

Identify: TypeAlias = Callable[[str], Principal | Reason]


class Guard:
    """ASGI middleware. `token` is that of the home's owner; `hosts` are names that are served besides those of the
    loopback interface."""

    def __init__(self, app: ASGIApp, token: str, identify: Identify, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._owner = token.encode()
        self._identify = identify
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with a bounded body."""
        if scope["type"] != "http":
            return
        try:
            self._check(scope)
        except RefusedError as error:
            note_answer(scope, error.status)
            await ProblemResponse(error.reason, error.status)(scope, receive, send)
            return
        await self._app(scope, _bounded(receive, _most_bytes(scope)), send)

    def _check(self, scope: Scope) -> None:
        said: dict[bytes, list[bytes]] = {}
        scope[HEADERS] = said
        for name, value in scope["headers"]:
            said.setdefault(name, []).append(value)
        hosts = said.get(b"host", ())
        if len(hosts) != 1 or not self._is_ours(_without_port(hosts[0])):
            raise forbidden("Host header", "only this machine's own names are served here")
        if any(said.get(b"origin", ())):
            raise forbidden("Origin header", "requests of web pages are not served")
        if scope["path"] not in OPEN_PATHS:
            scope[PRINCIPAL] = self._find_principal(said.get(b"authorization", ()))
        if any(value.strip().lower() != b"identity" for value in said.get(b"content-encoding", ())):
            raise bad_field("Content-Encoding", "a body comes as it is; nothing is unpacked here", 415)
        most = _most_bytes(scope)
        for length in said.get(b"content-length", ()):
            if not length.isdigit() or int(length[:DIGITS_MAX]) > most:
                raise _too_large(int(length[:DIGITS_MAX]) if length.isdigit() else 0, most)

    def _find_principal(self, fields: Sequence[bytes]) -> Principal:
        if len(fields) != 1 or not fields[0].startswith(SCHEME):
            raise RefusedError(Reason(Code.UNAUTHORISED), 401)
        token = fields[0][len(SCHEME) :]
        if self._owner and hmac.compare_digest(token, self._owner):
            return HOME_OWNER
        found = self._identify(token.decode("latin-1"))
        if isinstance(found, Reason):
            raise RefusedError(found, STATUS[found.code])
        return found

    def _is_ours(self, host: str) -> bool:
        return host in self._hosts or is_loopback(host)


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a name is this machine alone, whatever the network says."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=256)
def _without_port(field: bytes) -> str:
    host = field.decode("latin-1")
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _most_bytes(scope: Scope) -> int:
    return BULK_BYTES_MAX if scope["path"] == BULK_PATH else BODY_BYTES_MAX


def _bounded(receive: Receive, most: int) -> Receive:
    """The same body, until it grows too large: a chunked one does not say beforehand."""
    left = most

    async def receive_bounded() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise _too_large(most - left, most)
        return message

    return receive_bounded


def _too_large(size: int, most: int) -> RefusedError:
    return RefusedError(Reason(Code.TOO_LARGE, "body", needed=size, available=most), 413)
