"""Asking: one server, and the rule that a client reads its own writes.

It remembers the newest entry that an answer rested on, and asks for at least that. What is asked it does not know.
"""

from __future__ import annotations

import os
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeVar

import msgspec

from muster.sdk.errors import make_error, strange_answer
from muster.sdk.paths import add_query
from muster.sdk.transport import ANSWER_TIMEOUT_S, Reply, Request, Transport
from muster.sdk.whereabouts import Address, default_root, find_server, find_token

if TYPE_CHECKING:  # the caller brings it along
    from muster.sdk.home import Home

PATIENCE_S: Final = 15.0

T = TypeVar("T")


class Asking:
    """Talks to one server: that of `home` (default: MUSTER_HOME or ~/.muster), or which it is logged in to; or the one
    at `address`. It waits `answer_s` for each answer, and `patience_s` for a server that went away."""

    def __init__(
        self,
        home: Home | str | os.PathLike[str] | None = None,
        *,
        address: Address | None = None,
        token: str | None = None,
        patience_s: float = PATIENCE_S,
        answer_s: float = ANSWER_TIMEOUT_S,
    ) -> None:
        if address is not None and not isinstance(address, Address):
            raise TypeError(f"an address is an Address(host, port), not {address!r}; `muster login` takes a URL")
        named = home if home is None or isinstance(home, str | os.PathLike) else home.root
        root = default_root() if named is None else os.fspath(named)
        self._transport = Transport(
            find_address=partial(find_server, root) if address is None else lambda: address,
            read_token=partial(find_token, root) if token is None else lambda: token,
            where=root if address is None else f"{address.host}:{address.port}",
            patience_s=patience_s,
            answer_s=answer_s,
        )
        self._seq = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def be_patient(self, patience_s: float) -> None:
        """Wait so long from now on for a server that went away."""
        self._transport.patience_s = patience_s

    def close(self) -> None:
        """Hang up; a later call connects again."""
        self._transport.close()

    def _get(self, kind: type[T], path: str, query: dict[str, str] | None = None) -> T:
        wait_s = int((query or {}).get("wait_ms", 0)) / 1000
        return self._ask(kind, Request("GET", add_query(path, query or {}), wait_s=wait_s))

    def _list(self, kind: type[tuple[T, ...]], path: str, query: dict[str, str] | None = None) -> tuple[T, ...]:
        """A whole listing, page after page."""
        rows: tuple[T, ...] = ()
        asked = dict(query or {})
        while True:
            reply = self._send(Request("GET", add_query(path, asked)))
            rows += self._read(kind, reply)
            after = reply.headers.get("muster-next-after")
            if after is None:
                return rows
            asked["after"] = after

    def _ask(self, kind: type[T], request: Request) -> T:
        return self._read(kind, self._send(request))

    def _read(self, kind: type[T], reply: Reply) -> T:
        try:
            return msgspec.json.decode(reply.body, type=kind)
        except msgspec.MsgspecError as error:
            raise make_error(strange_answer(reply.body, "not what was asked for")) from error

    def _send(self, request: Request) -> Reply:
        if self._seq and request.method == "GET":
            headers = {**request.headers, "Muster-At-Least": str(self._seq)}
            request = msgspec.structs.replace(request, headers=headers)
        reply = self._transport.send(request)
        self._seq = max(self._seq, reply.number("Muster-Seq") or 0)
        return reply
