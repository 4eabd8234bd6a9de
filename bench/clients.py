"""Closed-loop HTTP clients: many connections in one process, each with one request at a time, cheaply.

`python -m bench.clients` is run beside the server, with a plan on its standard input, so that what the clients cost is
not on its interpreter. It is on its cores, though, and a server of two processes wants both: so there is nothing here
but sockets and one poll. A plan may pace the requests: then each is due at a time of its own, and a late answer counts
from when it was due.
"""

from __future__ import annotations

import itertools
import select
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

RECEIVED_MAX: Final = 1 << 15
LINGER_S: Final = 0.3
"""How long it is waited, once time is up, for the next of the answers that are still missing."""


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


class _Caller:
    """One connection with one request at a time."""

    def __init__(self, plan: Plan, requests: Sequence[bytes]) -> None:
        self.line = socket.create_connection((plan.host, plan.port))
        self.line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.due = 0.0
        self._requests = itertools.cycle(requests)
        self._heard = b""

    def ask(self, due: float) -> None:
        """Send the next request, which is due since then."""
        self.due = due
        self.line.sendall(next(self._requests))

    def hear(self) -> bytes:
        """The answer, once all of it has come."""
        said = self.line.recv(RECEIVED_MAX)
        if not said:
            raise ConnectionError("the server hung up")
        answer, self._heard = self._heard + said, b""
        if _is_whole(answer):
            return answer
        self._heard = answer
        return b""


def _is_whole(answer: bytes) -> bool:
    """Whether an answer has its head, and as much after it as that says."""
    head = answer.find(b"\r\n\r\n")
    if head < 0:
        return False
    at = answer.find(b"ontent-length: ", 0, head) + 15
    return len(answer) >= head + 4 + int(answer[at : answer.find(b"\r\n", at)])


class _Crowd:
    """All callers in one loop, and what was measured. Those who have waited longest ask first; whatever is due by now
    is sent in one turn."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._poll = select.epoll()
        self._callers = dict(self._connect(number) for number in range(plan.clients))
        self._idle = deque(self._callers.values())
        self._asked = 0
        self._begin = time.perf_counter()
        self._since = self._begin + plan.warm_s
        self._until = self._since + plan.seconds
        self._took: list[float] = []
        self._refused = 0

    def run(self) -> Tally:
        """Ask until time is up, then hear what is still missing."""
        while (now := time.perf_counter()) < self._until:
            due = self._ask(now)
            self._hear(max(0.0, min(due, self._until) - time.perf_counter()))
        while len(self._idle) < len(self._callers) and self._hear(LINGER_S):
            pass
        return Tally(len(self._took) / self._plan.seconds, self._took, self._refused)

    def _connect(self, number: int) -> tuple[int, _Caller]:
        caller = _Caller(self._plan, self._plan.requests[number :: self._plan.clients])
        self._poll.register(caller.line, select.EPOLLIN)
        return caller.line.fileno(), caller

    def _ask(self, now: float) -> float:
        """Send what is due; gives when something is to be sent next, whoever is heard before."""
        pace, idle = self._plan.per_s, self._idle
        while idle:
            due = self._begin + (self._asked + 1) / pace if pace else now
            if due > now:
                return due
            self._asked += 1
            idle.popleft().ask(due)
        return self._until

    def _hear(self, patience_s: float) -> bool:
        """Wait for answers, and take those that have come; False if there were none."""
        ready = self._poll.poll(patience_s)
        for number, _ in ready:
            caller = self._callers[number]
            if answer := caller.hear():
                self._note(caller.due, is_good=answer[9:10] == b"2")
                self._idle.append(caller)
        return bool(ready)

    def _note(self, due: float, *, is_good: bool) -> None:
        now = time.perf_counter()
        if self._since <= now < self._until:
            self._refused += not is_good
            if is_good:
                self._took.append(1000 * (now - due))


if __name__ == "__main__":
    read_plan = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Plan)
    sys.stdout.buffer.write(msgspec.msgpack.encode(_Crowd(read_plan).run()))
