"""Submits that come together go together, and everybody hears of what becomes of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from control_kit import DEADLINE_S, GateStore, Stage, eventually, followed, led, spec

from muster.control import line
from muster.control.follower import Follower
from muster.model.errors import MusterError, StoreError
from muster.model.event import Submit
from muster.model.reason import Code, Done, Reason, Refused
from muster.wire.link import Answer


class CountingStore(GateStore):
    """A store that notes how many keys it was asked for at once, and may be unreadable."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.is_unreadable = False

    def find_jobs(self, keys: Sequence[tuple[str, str]]) -> list[int | None]:
        self.asked.append(len(keys))
        if self.is_unreadable:
            raise StoreError(Reason(Code.JOURNAL_DAMAGED, "keys"))
        return super().find_jobs(keys)


async def submit(follower: Follower, *keys: str) -> list[int]:
    """The jobs that these keys made, in one turn of the loop."""
    await eventually(lambda: follower.is_led)
    answers = await asyncio.gather(*[follower.submit(spec(), key, "test") for key in keys])
    assert await follower.at_least(max(answer.seq for answer in answers), DEADLINE_S)
    return [answer.reply.job for answer in answers if isinstance(answer.reply, Done)]


def test_keys_that_come_together_are_asked_for_at_once(tmp_path: Path) -> None:
    async def scenes(stage: Stage, store: CountingStore) -> None:
        async with led(stage), followed(stage) as follower:
            assert await submit(follower, "a", "b", "", "c") == [1, 2, 3, 4]
            assert store.asked == [3], "whoever has no key is not looked for"
            assert await submit(follower, "c", "d", "a", "") == [4, 5, 1, 6]
            assert store.asked == [3, 3]

    store = CountingStore()
    asyncio.run(scenes(Stage(tmp_path, store), store))


def test_a_key_that_comes_twice_at_once_makes_one_job(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage), followed(stage) as follower:
            assert await submit(follower, "a", "a") == [1, 1]
            other = await asyncio.gather(*[follower.submit(spec("false"), "a", "test") for _ in range(2)])
            for answer in other:
                assert isinstance(answer.reply, Refused)
                assert answer.reply.reason.code == Code.KEY_REUSED

    asyncio.run(scenes(Stage(tmp_path)))


def test_all_hear_that_keys_cannot_be_read_and_none_is_passed_on(tmp_path: Path) -> None:
    async def scenes(stage: Stage, store: CountingStore) -> None:
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            store.is_unreadable = True
            gone = asyncio.ensure_future(follower.submit(spec(), "z", "test"))
            tries = [follower.submit(spec(), key, "test") for key in ("a", "b")]
            asyncio.get_running_loop().call_soon(gone.cancel)
            heard = await asyncio.gather(*tries, gone, return_exceptions=True)
            assert [type(error) for error in heard] == [StoreError, StoreError, asyncio.CancelledError]
            store.is_unreadable = False
            assert await submit(follower, "a") == [1]

    store = CountingStore()
    asyncio.run(scenes(Stage(tmp_path, store), store))


def test_one_that_cannot_be_sent_harms_nobody_who_came_with_it(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            tries = [follower.submit(spec(), key, "test") for key in ("a", "\ud800", "b")]
            first, broken, last = await asyncio.gather(*tries, return_exceptions=True)
            assert isinstance(broken, UnicodeEncodeError)
            for answer, job in ((first, 1), (last, 2)):
                assert isinstance(answer, Answer)
                assert answer.reply == Done(job)

    asyncio.run(scenes(Stage(tmp_path)))


def test_patience_ends_for_each_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "ANSWER_PATIENCE_S", 0.02)

    async def scenes(stage: Stage) -> None:
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            stage.store.shut()
            first = asyncio.ensure_future(follower.ask(Submit(spec())))
            assert await asyncio.to_thread(stage.store.entered.wait, DEADLINE_S)
            second = asyncio.ensure_future(follower.submit(spec(), "key", "test"))
            for late in await asyncio.gather(first, second, return_exceptions=True):
                assert isinstance(late, MusterError)
                assert late.reason.code == Code.NO_LEADER
            monkeypatch.setattr(line, "ANSWER_PATIENCE_S", DEADLINE_S)
            stage.store.gate.set()
            assert await submit(follower, "key") == [2], "it was taken, though nobody heard"

    asyncio.run(scenes(Stage(tmp_path)))


def test_whoever_comes_leaves_once_as_many_have_come_as_are_under_way(tmp_path: Path) -> None:
    async def scenes(stage: Stage, store: CountingStore) -> None:
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            store.shut()
            tries = []
            for key in "abcdefg":
                tries.append(asyncio.ensure_future(follower.submit(spec(), key, "test")))
                for _ in range(3):  # turns of the loop: it comes, it leaves, it is passed on
                    await asyncio.sleep(0)
            assert store.asked == [1, 1, 2], "one, another one, then two beside these two; three more are too few"
            store.gate.set()
            answers = await asyncio.gather(*tries)
            assert [answer.reply for answer in answers] == [Done(job) for job in range(1, 8)]
            assert store.asked == [1, 1, 2, 3]
            assert await submit(follower, "h") == [8], "nobody counts as under way for ever"

    store = CountingStore()
    asyncio.run(scenes(Stage(tmp_path, store), store))
