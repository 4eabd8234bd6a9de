"""The desk: its routes are those of the moment, and a trial says what became of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from muster.control.desk import Desk
from muster.control.follower import Follower
from muster.control.herald import Route
from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.stores.memory import MemoryStore
from muster.testing.receivers import Ear
from muster.wire.notices import Kind
from muster.world.world import World

PATIENCE_S = 30.0


class File:
    """What the admin wrote, and when."""

    def __init__(self, *routes: Route) -> None:
        self.routes: list[Route] | None = list(routes)
        self.stamp = 1

    def write(self, *routes: Route, is_bad: bool = False) -> None:
        self.routes = None if is_bad else list(routes)
        self.stamp += 1

    def read(self) -> list[Route]:
        if self.routes is None:
            raise RejectedError(Reason(Code.BAD_SETTINGS, "notify.toml", detail="no TOML"))
        return self.routes

    def find_stamp(self) -> int:
        return self.stamp


class Still:
    """A clock that stands."""

    def now_ms(self) -> int:
        return 1000


def make_desk(root: Path, file: File) -> Desk:
    follower = Follower(World(), MemoryStore(), Still(), root / "leader.sock")
    return Desk(follower, file.read(), file.read, file.find_stamp, look_s=0.001)


def route(name: str, ear: Ear) -> Route:
    return Route(name, ear, frozenset({Kind.JOB_ENDED}))


def test_a_route_that_was_just_written_is_there(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, file := File(route("old", Ear())))
    with pytest.raises(RejectedError, match="M335"):
        desk.get("new")
    file.write(new := route("new", Ear()))
    assert desk.get("new") is new
    with pytest.raises(RejectedError, match="M335"):
        desk.get("old")


def test_a_file_that_is_not_in_order_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    desk = make_desk(tmp_path, file := File(old := route("old", Ear())))
    file.write(is_bad=True)
    desk.refresh()
    assert desk.get("old") is old
    assert "no TOML" in caplog.text


def test_whoever_tells_takes_up_the_new_routes(tmp_path: Path) -> None:
    desk = make_desk(tmp_path, file := File())
    fresh = route("new", Ear())

    async def tell() -> None:
        telling = asyncio.ensure_future(desk.run())
        await asyncio.sleep(0)
        file.write(fresh)
        async with asyncio.timeout(PATIENCE_S):
            while list(desk.routes) != [fresh]:
                assert not telling.done()
                await asyncio.sleep(0.001)
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)

    asyncio.run(tell())


def test_a_trial_is_sent_once_and_says_what_became_of_it(tmp_path: Path) -> None:
    ear = Ear(refusals=1)
    desk = make_desk(tmp_path, File(route("team", ear)))
    assert asyncio.run(desk.attempt("team"))[1] == "not now"
    notice, words = asyncio.run(desk.attempt("team"))
    assert (words, ear.heard, ear.tries) == ("", [notice], 2)
    assert notice.kind is Kind.TRIAL
