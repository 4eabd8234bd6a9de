"""A follower holds what the journal holds, asks the leader for changes, and says so when it does not know."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from pathlib import Path

import msgspec
import pytest
from control_kit import DEADLINE_S, NODE, GateStore, RecordingEngine, Stage, eventually, followed, led, spec

from muster.control.batches import Item, make_batch
from muster.control.follower import Follower
from muster.control.frames import short_path
from muster.control.history import write_chapter
from muster.control.loading import load_world
from muster.kernel.kernel import Kernel
from muster.lifecycle.gang import RETAIN_MS
from muster.model.after import After, When
from muster.model.errors import InvariantError, MusterError
from muster.model.event import Cancel, Event, Exited, NodeSeen, SetTenant, Started, Submit
from muster.model.node import Traits
from muster.model.reason import Code, Done, Refused
from muster.model.tenant import Tenant, limits
from muster.units import MINUTE_MS, Resources
from muster.wire.link import Answer, Committed, frame
from muster.world.accounting import keep_diary
from muster.world.snapshot import digest
from muster.world.world import World


def run(scenes: Awaitable[None]) -> None:
    async def to_the_end() -> None:
        await scenes

    asyncio.run(to_the_end())


def write_retired_job(store: GateStore) -> None:
    """A journal whose job 1, made with key `key`, has ended and left the world."""
    kernel = Kernel(World())
    diary = keep_diary(kernel.world)
    node = NodeSeen("node-1", Resources(cpu_milli=8000))
    lives: list[tuple[int, list[Event]]] = [
        (1000, [node, Submit(spec(), "key")]),
        (2000, [Started(1, 1), Exited(1, 1, 0)]),
        (2000 + RETAIN_MS + 2 * MINUTE_MS, []),
    ]
    for at, events in lives:
        outcome = kernel.handle(events, at)
        items = [Item(event) for event in events]
        commit = make_batch(items, outcome, write_chapter(diary, outcome.facts)).commit
        assert commit is not None
        store.append([commit])
    assert not kernel.world.jobs


def test_a_question_rests_on_one_entry_while_the_fold_goes_on(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        asked, go_on = threading.Event(), threading.Event()

        def look_again(places: World, first: int) -> tuple[int, int]:
            asked.set()
            assert go_on.wait(DEADLINE_S)
            return first, places.seq

        async with led(stage) as caller, followed(stage) as follower:
            before = follower.world.seq
            study = asyncio.ensure_future(follower.study(lambda world: world.seq, look_again))
            assert await asyncio.to_thread(asked.wait, DEADLINE_S)
            caller.ask(Submit(spec()))
            assert await follower.at_least((await caller.answered(1))[0].seq, DEADLINE_S)
            go_on.set()
            world, seen = await study
            assert (world.seq, seen) == (before, (before, before))
            assert follower.world.seq > before

    run(scenes(Stage(tmp_path)))


def test_it_folds_what_the_leader_commits(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller, followed(stage) as follower:
            caller.ask(SetTenant("lab", Tenant(lines=limits(gpus=4))), Submit(spec()))
            answer = (await caller.answered(2))[1]
            assert await follower.at_least(answer.seq, DEADLINE_S)
            await eventually(lambda: follower.world.seq == stage.world.seq)
            assert digest(follower.world) == digest(stage.world)
            assert follower.lag_p99_ms() == 0  # the clock stood still

    run(scenes(Stage(tmp_path)))


def test_catching_up_with_what_came_before_it_is_no_lag(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        world = load_world(stage.store)
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            early = (await caller.answered(1))[0]
            stage.clock.at += MINUTE_MS
            async with followed(stage, world) as follower:
                assert await follower.at_least(early.seq, DEADLINE_S)
                assert follower.lag_p99_ms() == 0

    run(scenes(Stage(tmp_path)))


def test_who_is_led_knows_nodes_as_they_are_by_now(tmp_path: Path) -> None:
    """A node that was there before is described otherwise: nobody is served who has not heard of it."""

    async def scenes(stage: Stage) -> None:
        async with led(stage):
            pass
        world = load_world(stage.store)
        stage.engine = RecordingEngine([])
        leading = asyncio.ensure_future(stage.lead())
        await asyncio.wait([leading], timeout=0.2)
        assert not leading.done(), "its engine has said nothing yet"
        stage.engine.report(msgspec.structs.replace(NODE, traits=Traits("h100")))
        await leading
        async with followed(stage, world) as follower:
            await eventually(lambda: follower.is_led)
            assert follower.world.fleet.flavor(0) == "h100"
        await stage.rest()

    run(scenes(Stage(tmp_path)))


def test_it_asks_and_reads_its_own_writes(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            answers = await asyncio.gather(*[follower.submit(spec(), f"key-{n}", "test") for n in range(50)])
            assert sorted(answer.reply.job for answer in answers if isinstance(answer.reply, Done)) == list(
                range(1, 51)
            )
            assert len(follower.world.jobs) == 50

    run(scenes(Stage(tmp_path)))


def test_nobody_is_told_of_what_nobody_could_read_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenes(stage: Stage) -> None:
        may_fold, has_news = asyncio.Event(), asyncio.Event()
        catch_up = Follower._catch_up

        async def catch_up_late(follower: Follower) -> None:
            has_news.set()
            await may_fold.wait()
            await catch_up(follower)

        await stage.lead()
        async with followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            has_news.clear()
            monkeypatch.setattr(Follower, "_catch_up", catch_up_late)
            tries = [asyncio.ensure_future(follower.submit(spec(), "key", "test"))]
            await asyncio.wait_for(has_news.wait(), DEADLINE_S)  # the answer is in the same letter
            tries.append(asyncio.ensure_future(follower.submit(spec(), "key", "test")))  # the journal knows the key
            await eventually(lambda: bool(follower._waiters))
            assert not any(each.done() for each in tries)
            await stage.rest()
            await eventually(lambda: not follower.is_led)  # what was answered stays so without the leader
            may_fold.set()
            first, again = await asyncio.gather(*tries)
            assert first == Answer(1, 2, Done(1))
            assert again.reply == Done(1)
            assert list(follower.world.jobs) == [1]

    run(scenes(Stage(tmp_path)))


def test_without_a_leader_it_reads_and_does_not_write(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            await caller.answered(1)
        async with followed(stage) as follower:
            assert list(follower.world.jobs) == [1]
            assert not follower.is_led
            with pytest.raises(MusterError) as caught:
                await follower.submit(spec(), "", "test")
            assert caught.value.reason.code == Code.NO_LEADER

    run(scenes(Stage(tmp_path)))


def test_it_finds_the_next_leader(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        await stage.lead()
        async with followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            assert (await follower.submit(spec(), "", "test")).reply == Done(1)
            await stage.rest()
            await eventually(lambda: not follower.is_led)
            await stage.lead()
            await eventually(lambda: follower.is_led)
            answer = await follower.submit(spec(), "", "test")
            assert answer.reply == Done(2)
            assert await follower.at_least(answer.seq, DEADLINE_S)
            await stage.rest()

    run(scenes(Stage(tmp_path)))


def test_a_line_that_breaks_before_the_answer_leaves_no_doubt_that_there_is_doubt(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(frame(Committed(0)))
            await reader.read(1)
            writer.close()

        with short_path(stage.socket) as path:
            server = await asyncio.start_unix_server(hang_up, path)
        async with followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            with pytest.raises(MusterError) as caught:
                await asyncio.wait_for(follower.submit(spec(), "key", "test"), DEADLINE_S)
            assert caught.value.reason.code == Code.NO_LEADER
        server.close()
        await server.wait_closed()

    run(scenes(Stage(tmp_path)))


def test_the_key_of_a_retired_job_still_names_it(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        write_retired_job(stage.store)
        async with followed(stage) as follower:  # no leader is needed to know what was
            answer = await follower.submit(spec(), "key", "test")
            assert (answer.reply, answer.seq) == (Done(1), 1)
            reused = await follower.submit(spec("other"), "key", "test")
            assert isinstance(reused.reply, Refused)
            assert (reused.reply.reason.code, reused.reply.reason.needed) == (Code.KEY_REUSED, 1)

    run(scenes(Stage(tmp_path)))


def test_a_retired_job_is_over_and_not_unknown(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        write_retired_job(stage.store)
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            codes = []
            for job in (1, 2):
                reply = (await follower.ask_of_job(Cancel(job, "test"))).reply
                assert isinstance(reply, Refused)
                codes.append(reply.reason.code)
            assert codes == [Code.ALREADY_OVER, Code.UNKNOWN_JOB]

    run(scenes(Stage(tmp_path)))


def test_how_a_retired_job_ended_is_looked_up_for_whoever_is_to_run_after_it(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        write_retired_job(stage.store)
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            fine = msgspec.structs.replace(spec(), after=(After(1),))
            assert (await follower.submit(fine, "", "test")).reply == Done(2)
            never = msgspec.structs.replace(spec(), after=(After(1, When.NOT_SUCCEEDED),))
            refused = (await follower.submit(never, "", "test")).reply
            assert isinstance(refused, Refused)
            assert refused.reason.code == Code.NEVER_AFTER

    run(scenes(Stage(tmp_path)))


def test_waiting_ends_with_the_thing_or_with_patience(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller, followed(stage) as follower:
            waiting = asyncio.ensure_future(follower.until(lambda world: 1 in world.jobs, DEADLINE_S))
            assert not await follower.at_least(99, 0.01)
            caller.ask(Submit(spec()))
            assert await waiting

    run(scenes(Stage(tmp_path)))


def test_a_journal_that_lost_an_entry_stops_the_follower(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async def boast(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(frame(Committed(7)))
            await reader.read()
            writer.close()

        with short_path(stage.socket) as path:
            server = await asyncio.start_unix_server(boast, path)
        follower = Follower(World(), stage.store, stage.clock, stage.socket)
        with pytest.raises(InvariantError):
            await asyncio.wait_for(follower.run(), DEADLINE_S)
        server.close()
        await server.wait_closed()

    run(scenes(Stage(tmp_path)))


def test_cancel_reaches_the_leader(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            await follower.submit(spec(), "", "test")
            assert (await follower.ask(Cancel(1, "test"))).reply == Done(1)

    run(scenes(Stage(tmp_path)))
