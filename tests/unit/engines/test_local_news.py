"""A keeper that has much to start tells its news in larger pieces, else at once, but for starts, which wait a moment;
what is recorded is told with what came of it; and nobody hears a thing twice."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from muster.engines.local import keeping
from muster.engines.local.channel import Channel, listen
from muster.engines.local.frames import Ack, Happened, KeeperTold, Kept, Meet, News, keeper_told_inbox, told_inbox
from muster.engines.local.keeper import Keeper
from muster.engines.local.keeping import NEWS_S, STARTS_S, _Loop
from muster.engines.local.layout import Key
from muster.engines.local.ranges import End
from muster.engines.local.serving import ACK_S, _Engine
from muster.model.event import Started


class BusyKeeper:
    """Starts one task in every turn, and has more to start for as long as the test says."""

    def __init__(self) -> None:
        self.is_launching = True
        self.is_idle = False
        self.begun: list[Key] = []
        self.started: list[Key] = []
        self.ended: list[object] = []
        self.marks: list[object] = []

    def delay_s(self) -> float:
        return 0.0

    def tend(self) -> None:
        key = Key(1, 1, len(self.begun))
        self.begun.append(key)
        self.started.append(key)

    def inventory(self) -> list[tuple[Key, bool, None]]:
        return [(key, True, None) for key in self.begun]

    def last_marks(self) -> list[object]:
        return []


class Scene:
    """A keeper's loop at a time that stands still, and whoever meets it."""

    def __init__(self, selector: selectors.BaseSelector, listener: socket.socket) -> None:
        self.clock = SimpleNamespace(at=100.0)
        self.keeper = BusyKeeper()
        self.wake, self._bell = socket.socketpair()
        self.open: list[socket.socket] = [self.wake, self._bell]
        self.loop = _Loop(cast("Keeper", self.keeper), selector, listener, self.wake)

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.loop._turn()

    def meet(self) -> tuple[Channel[KeeperTold], int]:
        """A supervisor comes; how much it hears that the keeper has."""
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.open.append(link)
        link.connect("keeper.sock")
        channel = Channel(link, keeper_told_inbox())
        channel.tell(Meet())
        self.turn(2)
        [kept] = channel.read() or []
        assert isinstance(kept, Kept)
        return channel, len(kept.runs)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.chdir(tmp_path)
    with selectors.DefaultSelector() as selector, listen("keeper.sock") as listener:
        made = Scene(selector, listener)
        monkeypatch.setattr(keeping, "time", SimpleNamespace(monotonic=lambda: made.clock.at))
        yield made
        for link in (*made.open, *(channel.link for channel in made.loop._supervisors)):
            link.close()


def heard(channel: Channel[KeeperTold]) -> list[int]:
    """The tasks that a supervisor was told are started, by their numbers."""
    return [key.task for news in channel.read() or [] if isinstance(news, News) for key in news.started]


def test_news_are_gathered_while_there_is_more_to_start(scene: Scene) -> None:
    channel, known = scene.meet()
    scene.turn(3)
    assert heard(channel) == []
    scene.clock.at += 2 * NEWS_S
    scene.turn()
    assert heard(channel) == list(range(known, known + 5)), "one more was started in the turn of the meeting"


def test_an_end_is_told_at_once_when_there_is_no_more_to_start_and_starts_with_it(scene: Scene) -> None:
    channel, known = scene.meet()
    scene.keeper.is_launching = False
    scene.turn()
    assert heard(channel) == []
    scene.keeper.ended.append((Key(1, 1, known), End(0)))
    scene.turn()
    assert heard(channel) == [known, known + 1, known + 2]


def test_starts_alone_are_told_a_little_later(scene: Scene) -> None:
    channel, known = scene.meet()
    scene.keeper.is_launching = False
    scene.turn()
    scene.clock.at += STARTS_S / 2
    scene.turn()
    assert heard(channel) == []
    scene.clock.at += STARTS_S
    scene.turn()
    assert heard(channel) == [known, known + 1, known + 2, known + 3]
    scene.turn()
    assert heard(channel) == []


def test_whoever_asks_what_there_is_hears_of_it_once(scene: Scene) -> None:
    first, known = scene.meet()
    scene.turn(3)
    second, known_then = scene.meet()
    assert heard(first) == list(range(known, known_then))
    scene.keeper.is_launching = False
    scene.turn()
    scene.clock.at += 2 * STARTS_S
    scene.turn()
    assert heard(first) == heard(second) == [known_then, known_then + 1, known_then + 2]


def test_what_is_recorded_is_told_once_and_before_what_came_of_it() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        engine, reader = _Engine(ours), Channel(theirs, told_inbox())
        engine.record(4, now=10.0)
        engine.record(5, now=10.5)
        assert engine.ack_by == 10.0 + ACK_S
        engine.tell_news([Started(1, 1, 0, 1, "")])
        engine.tell_news([])
        assert reader.read() == [Ack(5), Happened([Started(1, 1, 0, 1, "")])]
