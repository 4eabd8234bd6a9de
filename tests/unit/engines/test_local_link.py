"""Instructions leave as they are given, wait for nobody who does not read, and come again over a new connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.engines.local.channel import listen
from muster.engines.local.engine import LocalEngine
from muster.engines.local.frames import Ack, Asked, Hello, Inventory, Order, Told, asked_inbox, encode_frame
from muster.model.instruction import Start
from muster.model.spec import Spec
from muster.units import Resources

PATIENCE_S = 30.0
LARGE = "x" * 1_000_000
LARGE_COUNT = 8
"""More than a socket holds."""


class Listener:
    """Somebody in a supervisor's place, who reads when the test says."""

    def __init__(self, listening: socket.socket) -> None:
        listening.settimeout(PATIENCE_S)
        self._listening = listening
        self._open: list[socket.socket] = []
        self._heard: list[Asked] = []
        self.reported = threading.Event()

    def accept(self) -> None:
        link, _ = self._listening.accept()
        link.settimeout(PATIENCE_S)
        self._open.append(link)
        self._inbox = asked_inbox()
        self._heard.clear()
        assert self.hear(1) == [Hello("here")]

    def hear(self, count: int) -> list[Asked]:
        while len(self._heard) < count:
            self._heard += self._inbox.feed(self._open[-1].recv(65536))
        heard, self._heard = self._heard[:count], self._heard[count:]
        return heard

    def hear_numbers(self, count: int) -> list[int]:
        return [frame.number for frame in self.hear(count) if isinstance(frame, Order)]

    def tell(self, *frames: Told) -> None:
        self._open[-1].sendall(b"".join(map(encode_frame, frames)))

    def is_hung_up_on(self) -> bool:
        while self._open[-1].recv(65536):
            pass
        return True

    def hang_up(self) -> None:
        self._open[-1].close()

    def close(self) -> None:
        for link in self._open:
            link.close()


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    monkeypatch.chdir(tmp_path)
    with listen("supervisor.sock") as listening:
        listening.setblocking(True)
        made = Listener(listening)
        yield made
        made.close()


@pytest.fixture
def engine(listener: Listener, tmp_path: Path) -> Iterator[LocalEngine]:
    made = LocalEngine(tmp_path, "here", Resources(cpu_milli=1))
    made.open(lambda _: listener.reported.set())
    listener.accept()
    yield made
    made.close()


def start(task: int, text: str = "") -> Start:
    return Start(1, 1, Spec(("true",), array=100, env={"TEXT": text}), task, ["here"], [1], [0])


def test_instructions_come_in_order(engine: LocalEngine, listener: Listener) -> None:
    engine.carry_out([start(0), start(1)])
    engine.carry_out([start(2)])
    assert listener.hear_numbers(3) == [1, 2, 3]


def test_who_does_not_read_keeps_nobody_waiting_and_gets_all_of_it(engine: LocalEngine, listener: Listener) -> None:
    for task in range(LARGE_COUNT):
        engine.carry_out([start(task, LARGE)])
    engine.carry_out([start(LARGE_COUNT)])
    assert listener.hear_numbers(LARGE_COUNT + 1) == list(range(1, LARGE_COUNT + 2))


def test_what_was_not_acknowledged_comes_again_over_a_new_connection(engine: LocalEngine, listener: Listener) -> None:
    engine.carry_out([start(0), start(1), start(2)])
    assert listener.hear_numbers(3) == [1, 2, 3]
    listener.tell(Ack(1), Inventory([]))
    assert listener.reported.wait(PATIENCE_S), "so the word before it was heard, too"
    listener.hang_up()
    engine.carry_out([start(3)])
    listener.accept()
    assert listener.hear_numbers(3) == [2, 3, 4]


def test_who_never_reads_is_hung_up_on(
    engine: LocalEngine, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.engines.local.channel.UNREAD_BYTES_MAX", len(LARGE))
    for task in range(LARGE_COUNT):
        engine.carry_out([start(task, LARGE)])
    assert listener.is_hung_up_on()
