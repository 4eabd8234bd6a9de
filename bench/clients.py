"""Closed-loop HTTP clients: many connections in one process, each with one request at a time, cheaply.

`python -m bench.clients PLAN` is run beside the server, so that what the clients cost is not on its interpreter. A plan
may pace the requests: then each is due at a time of its own, and a late answer counts from when it was due.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import cast

import msgspec


class Plan(msgspec.Struct, frozen=True):
    """What to send where, by how many, for how long; `per_s` 0 is as fast as answers come."""

    host: str
    port: int
    requests: list[bytes]
    clients: int = 64
    seconds: float = 3.0
    warm_s: float = 0.5
    per_s: float = 0.0


class Tally(msgspec.Struct, frozen=True):
    """What came of it: answers per second, and how long each took, in milliseconds; refusals are counted apart."""

    per_s: float
    took_ms: list[float]
    refused: int = 0

    def percentile(self, share: float) -> float:
        """How long so many of the answers took at most."""
        ordered = sorted(self.took_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def send(plan: Plan) -> subprocess.Popen[bytes]:
    """Start the clients in a process of their own."""
    running = subprocess.Popen([sys.executable, "-m", "bench.clients"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdin is not None
    running.stdin.write(msgspec.msgpack.encode(plan))
    running.stdin.close()
    return running


def read(running: subprocess.Popen[bytes]) -> Tally:
    """Wait for the clients, and see what came of it."""
    assert running.stdout is not None
    data = running.stdout.read()
    if running.wait():
        raise RuntimeError("the clients failed")
    return msgspec.msgpack.decode(data, type=Tally)


def run(plan: Plan) -> Tally:
    """Both."""
    return read(send(plan))


def post(path: str, token: str, body: bytes, *headers: str) -> bytes:
    """One request as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    lines += [f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def get(path: str, token: str) -> bytes:
    """The same, to read."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


class _Client(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self, crowd: _Crowd, requests: Sequence[bytes]) -> None:
        self._crowd = crowd
        self._requests = requests
        self._sent = 0
        self._due = 0.0
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.next()

    def next(self) -> None:
        """Send the next request, now or when it is due."""
        due = self._crowd.next_due()
        if due <= time.perf_counter():
            self._send(due)
        else:
            asyncio.get_running_loop().call_later(due - time.perf_counter(), self._send, due)

    def _send(self, due: float) -> None:
        assert self._transport is not None
        self._due = due
        self._transport.write(self._requests[self._sent % len(self._requests)])
        self._sent += 1

    def data_received(self, data: bytes) -> None:
        self._rest += data
        head = self._rest.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._rest.find(b"ontent-length: ", 0, head) + 15
        length = int(self._rest[at : self._rest.find(b"\r\n", at)])
        if len(self._rest) < head + 4 + length:
            return
        self._crowd.note(self._due, is_good=self._rest[9:10] == b"2")
        self._rest = b""
        if not self._crowd.is_over:
            self.next()


class _Crowd:
    """What the connections share: when requests are due, and what was measured."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._begin = time.perf_counter()
        self._since = self._begin + plan.warm_s
        self._until = self._since + plan.seconds
        self._count = 0
        self._took: list[float] = []
        self._refused = 0

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self._until

    def next_due(self) -> float:
        if not self._plan.per_s:
            return time.perf_counter()
        self._count += 1
        return self._begin + self._count / self._plan.per_s

    def note(self, due: float, *, is_good: bool) -> None:
        now = time.perf_counter()
        if self._since <= now < self._until:
            self._refused += not is_good
            if is_good:
                self._took.append(1000 * (now - due))

    def tally(self) -> Tally:
        return Tally(len(self._took) / self._plan.seconds, self._took, self._refused)


async def _run(plan: Plan) -> Tally:
    loop = asyncio.get_running_loop()
    crowd = _Crowd(plan)
    links = []
    for number in range(plan.clients):
        client = partial(_Client, crowd, plan.requests[number :: plan.clients])
        links.append((await loop.create_connection(client, plan.host, plan.port))[0])
    await asyncio.sleep(plan.warm_s + plan.seconds)
    await asyncio.sleep(0.3)
    for link in links:
        link.abort()
    return crowd.tally()


if __name__ == "__main__":
    read_plan = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Plan)
    sys.stdout.buffer.write(msgspec.msgpack.encode(asyncio.run(_run(read_plan))))
