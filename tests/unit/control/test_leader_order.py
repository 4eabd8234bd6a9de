"""The leader releases nothing that is not durable, and everything in order."""

from __future__ import annotations

import asyncio
import stat
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from control_kit import DEADLINE_S, RecordingEngine, Stage, eventually, led, spec

from muster.control import leader as leader_module
from muster.control.batches import Batch
from muster.control.leader import draw
from muster.control.loading import load_world
from muster.control.writer import Picture, Writer
from muster.kernel.kernel import Kernel
from muster.model.event import Cancel, Exited, HoldJob, NodeSeen, Progressed, SetTenant, Started, Submit
from muster.model.goodput import Mark
from muster.model.instruction import Forget, Start, Stop
from muster.model.reason import Code, Done, Refused
from muster.model.tenant import Tenant, limits
from muster.units import Resources
from muster.wire.link import Committed
from muster.world.snapshot import digest, restore
from muster.world.world import World

Play: TypeAlias = Callable[[Stage], Awaitable[None]]


def play(root: Path, scenes: Play, engine: RecordingEngine | None = None) -> Stage:
    stage = Stage(root, engine=engine)
    asyncio.run(_to_the_end(scenes(stage)))
    return stage


def _has_jobs(stage: Stage, count: int) -> bool:
    return len(stage.world.jobs) == count


async def _to_the_end(scenes: Awaitable[None]) -> None:
    await scenes


def test_an_answer_comes_with_its_entry(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            [answer] = await caller.answered(1)
            assert answer.reply == Done(1)
            assert answer.seq == 2  # the node's entry came first
            assert caller.heard == [Committed(1), Committed(2), answer]  # the first was told on arrival
            await eventually(lambda: any(isinstance(told, Start) for told in stage.engine.told))

    play(tmp_path, scenes)


def test_a_mark_of_a_gang_that_is_not_all_up_waits_until_it_is(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec(gang=2)))
            await caller.answered(1)
            stage.engine.report(Started(1, 1, 0, 1), Progressed(1, 1, 3, checkpointed=True))
            stage.engine.report(Progressed(1, 1, 4))
            caller.ask(Submit(spec()))
            await caller.answered(2)
            assert not stage.world.goodput.marks
            stage.engine.report(Started(1, 1, 1, 1))
            await eventually(lambda: stage.world.goodput.marks.get(1, Mark(0)).step == 4)
            assert stage.world.goodput.marks[1].saved_step == 3

    play(tmp_path, scenes)


def test_nothing_is_released_before_it_is_durable(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            stage.store.shut()
            caller.ask(Submit(spec("one")))
            await eventually(stage.store.entered.is_set)
            caller.ask(Submit(spec("two")))
            await eventually(lambda: len(stage.world.jobs) == 2)  # handled while the first one syncs
            assert caller.heard == [Committed(1)]
            assert stage.engine.told == []
            stage.store.gate.set()
            first, second = await caller.answered(2)
            assert (first.reply, second.reply) == (Done(1), Done(2))
            assert first.seq < second.seq
            await eventually(lambda: len(stage.engine.told) == 2)
            assert [told.job for told in stage.engine.told] == [1, 2]

    play(tmp_path, scenes)


def test_what_queues_behind_a_sync_is_committed_as_one_group(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            stage.store.shut()
            for number in range(1, 5):
                caller.ask(Submit(spec()))
                await eventually(partial(_has_jobs, stage, number))
                await eventually(stage.store.entered.is_set)  # the first is on its way before the second comes
            stage.store.gate.set()
            assert [answer.reply for answer in await caller.answered(4)] == [Done(1), Done(2), Done(3), Done(4)]
            assert stage.store.groups == [1, 1, 3]  # the node, the first job, all that waited for it

    play(tmp_path, scenes)


def test_a_repeat_of_a_key_waits_for_the_commit_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[Batch | Picture] = []
    put = Writer.put

    def put_and_note(writer: Writer, work: Batch | Picture) -> None:
        handed.append(work)
        put(writer, work)

    monkeypatch.setattr(Writer, "put", put_and_note)

    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            stage.store.shut()
            caller.ask(Submit(spec(), "key"))
            await eventually(stage.store.entered.is_set)
            again = await stage.call()
            again.ask(Submit(spec(), "key"), Cancel(99))  # no facts: nothing to commit
            await eventually(lambda: sum(len(work.items) for work in handed if isinstance(work, Batch)) == 4)
            assert handed[-1].commit is None  # type: ignore[union-attr]  # the last batch, which needs no commit
            assert caller.answers == again.answers == []
            stage.store.gate.set()
            [first] = await caller.answered(1)
            repeat, refused = await again.answered(2)
            assert first.reply == repeat.reply == Done(1)
            assert isinstance(refused.reply, Refused)
            assert len(stage.world.jobs) == 1
            await again.close()

    play(tmp_path, scenes)


def test_a_store_that_refuses_stops_the_leader(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            stage.store.shut()
            stage.store.is_broken = True
            caller.ask(Submit(spec()))
            await eventually(stage.store.entered.is_set)
            caller.ask(Submit(spec()))
            await eventually(lambda: len(stage.world.jobs) == 2)
            stage.store.gate.set()
            assert await stage.exit_code() == 3
            replies = [answer.reply for answer in await caller.answered(2)]
            assert [reply.reason.code for reply in replies if isinstance(reply, Refused)] == [Code.STORE_REFUSED] * 2
            assert stage.engine.told == []
            assert load_world(stage.store).jobs == {}

    play(tmp_path, scenes)


def _break_over(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    """Let every event of a kind change the world by half and then break a law."""
    from muster.kernel.reactors import REACTORS
    from muster.model.errors import InvariantError

    def break_law(turn: Any, event: Any) -> Done:
        turn.world.jobs.clear()
        raise InvariantError("two and two are four", "five")

    monkeypatch.setitem(REACTORS, kind, break_law)


def test_f20_a_poisoned_event_is_set_aside_and_everybody_elses_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from muster.wire.codec import decode_inputs

    async def scenes(stage: Stage) -> None:
        _break_over(monkeypatch, Cancel)
        async with led(stage) as caller:
            caller.ask(Submit(spec("before")))
            await caller.answered(1)
            stage.store.shut()
            caller.ask(Submit(spec("in flight")))
            await eventually(stage.store.entered.is_set)
            numbers = caller.ask(Submit(spec("one")), Cancel(1, "poison"), Submit(spec("two")), HoldJob(1))
            stage.store.gate.set()
            replies = {answer.number: answer.reply for answer in await caller.answered(6)}
            refused = replies[numbers[1]]
            assert isinstance(refused, Refused)
            assert refused.reason.code == Code.INVARIANT
            assert [isinstance(replies[number], Done) for number in numbers] == [True, False, True, True]
            caller.ask(Submit(spec("after")))
            await caller.answered(7)
            kept = load_world(stage.store)
            commands = [job.spec.command[0] for job in kept.jobs.values()]
            assert commands == ["before", "in flight", "one", "two", "after"]
            assert kept.jobs[1].held

    play(tmp_path, scenes)
    found = [decode_inputs(path.read_bytes()).events for path in sorted(tmp_path.glob("evidence-*.bin"))]
    assert [Cancel(1, "poison")] in found


def test_too_much_poison_stops_the_leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_module, "SET_ASIDE_MAX", 2)

    async def scenes(stage: Stage) -> None:
        _break_over(monkeypatch, Cancel)
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            await caller.answered(1)
            for number in range(1, 4):
                caller.ask(Cancel(number))
            assert await stage.exit_code() == 4
            replies = [answer.reply for answer in (await caller.answered(4))[1:]]
            assert all(isinstance(reply, Refused) and reply.reason.code == Code.INVARIANT for reply in replies)
            assert len(load_world(stage.store).jobs) == 1

    play(tmp_path, scenes)


def test_a_break_that_no_event_is_to_blame_for_stops_the_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            await caller.answered(1)
            monkeypatch.setattr(Kernel, "handle", lambda *_: 1 / 0)
            stage.clock.at += 3_600_000
            leader = stage.leader
            assert leader is not None
            leader._wake()
            assert await stage.exit_code() == 4

    play(tmp_path, scenes)


def test_an_ask_too_many_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_module, "ASKS_MAX", 2)

    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            stage.store.shut()
            caller.ask(*[Submit(spec())] * 3)
            [answer] = await caller.answered(1)
            assert answer.number == 3
            assert isinstance(answer.reply, Refused)
            assert answer.reply.reason.code == Code.OVERLOADED
            stage.store.gate.set()
            assert [answer.number for answer in await caller.answered(3)] == [3, 1, 2]
            caller.ask(Submit(spec()))  # there is room again
            assert (await caller.answered(4))[3].reply == Done(3)

    play(tmp_path, scenes)


def test_too_many_batches_in_flight_gather_into_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_module, "IN_FLIGHT_MAX", 1)

    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            stage.store.shut()
            caller.ask(Submit(spec()))
            await eventually(stage.store.entered.is_set)
            caller.ask(Submit(spec()), Submit(spec()))
            other = await stage.call()
            await eventually(lambda: bool(other.heard))
            assert len(stage.world.jobs) == 1
            stage.store.gate.set()
            assert [answer.seq for answer in await caller.answered(3)] == [2, 3, 3]
            await other.close()

    play(tmp_path, scenes)


def test_reports_of_the_engine_are_events_like_any_other(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            await caller.answered(1)
            await asyncio.to_thread(stage.engine.report, Started(1, 1), Exited(1, 1, 0))
            await eventually(lambda: any(isinstance(told, Forget) for told in stage.engine.told))
            caller.ask(Cancel(1))
            answer = (await caller.answered(2))[1]
            assert isinstance(answer.reply, Refused)
            assert answer.reply.reason.code == Code.ALREADY_OVER

    play(tmp_path, scenes)


def test_time_alone_wakes_the_leader(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec(limit_ms=1)))
            await caller.answered(1)
            stage.engine.report(Started(1, 1))
            await eventually(lambda: len(stage.store.groups) == 3)
            stage.clock.at += 10
            await eventually(lambda: any(isinstance(told, Stop) for told in stage.engine.told))

    play(tmp_path, scenes)


def test_f14_a_clock_that_goes_back_is_held(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            before = stage.world.now
            stage.clock.at -= 5000
            caller.ask(Submit(spec()))
            assert (await caller.answered(1))[0].reply == Done(1)
            assert stage.world.now == before

    play(tmp_path, scenes)


def test_a_restart_finds_the_same_world_from_its_snapshot(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(
                SetTenant("lab", Tenant(lines=limits(gpus=4))), Submit(spec(tenant="lab", ask=Resources(gpus=2)))
            )
            await caller.answered(2)
            assert await stage.rest() == 0
            found = stage.store.find_snapshot()
            assert found is not None
            assert found[0] == stage.store.last_seq()
            assert digest(load_world(stage.store)) == digest(stage.world)
            await stage.lead()
            again = await stage.call()
            again.ask(Submit(spec()))
            assert (await again.answered(1))[0].reply == Done(2)
            await again.close()

    play(tmp_path, scenes)


def test_snapshots_come_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_module, "SNAPSHOT_EVERY", 2)

    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            await caller.answered(1)
            await eventually(lambda: stage.store.find_snapshot() is not None)

    play(tmp_path, scenes)


def test_a_snapshot_holds_nobody_up_and_is_of_the_moment_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_module, "SNAPSHOT_EVERY", 2)
    begun, go_on = threading.Event(), threading.Event()

    def draw_late(twin: World, breath_s: float) -> bytes:
        begun.set()
        assert go_on.wait(DEADLINE_S)
        return draw(twin, breath_s)

    monkeypatch.setattr(leader_module, "draw", draw_late)

    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec("first")))
            await caller.answered(1)
            await eventually(begun.is_set)
            pictured = digest(load_world(stage.store))
            for count in (2, 3):
                caller.ask(Submit(spec("later")))
                await caller.answered(count)
            assert stage.store.find_snapshot() is None
            go_on.set()
            await eventually(lambda: stage.store.find_snapshot() is not None)
            found = stage.store.find_snapshot()
            assert found is not None
            assert (found[0], digest(restore(found[1]))) == (2, pictured)

    play(tmp_path, scenes)


def test_a_world_that_cannot_be_told_ends_the_leader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_module, "SNAPSHOT_EVERY", 2)

    def fail(twin: World, breath_s: float) -> bytes:
        raise ValueError(f"entry {twin.seq}")

    monkeypatch.setattr(leader_module, "draw", fail)

    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            caller.ask(Submit(spec()))
            assert await stage.exit_code() == leader_module.KERNEL_FAILED

    play(tmp_path, scenes)


def test_it_listens_only_once_there_is_a_node(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        starting = asyncio.ensure_future(stage.lead())
        await eventually(lambda: stage.engine.is_open)
        assert not stage.socket.exists()
        stage.engine.report(NodeSeen("late", Resources(cpu_milli=1000)))
        await starting
        assert stat.S_IMODE(stage.socket.stat().st_mode) == 0o600
        await stage.rest()

    play(tmp_path, scenes, RecordingEngine(first=()))


def test_who_is_not_understood_is_cut_off_alone(tmp_path: Path) -> None:
    async def scenes(stage: Stage) -> None:
        async with led(stage) as caller:
            for noise in (b"\x00\x00\x00\x03abc", b"\xff\xff\xff\xff"):
                other = await stage.call()
                other.send(noise)
                await eventually(partial(getattr, other, "is_cut"))
                await other.close()
            caller.ask(Submit(spec()))
            assert (await caller.answered(1))[0].reply == Done(1)

    play(tmp_path, scenes)
