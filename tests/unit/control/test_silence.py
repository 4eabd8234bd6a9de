"""A leader that is there and says nothing is as good as none, until it speaks again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from control_kit import DEADLINE_S, Stage, eventually, led, spec

from muster.control.frames import short_path
from muster.control.line import Line
from muster.model.errors import MusterError
from muster.model.event import Submit
from muster.model.reason import Code
from muster.wire.link import Committed, frame

SILENCE_MAX_S = 0.05


def test_whoever_asks_a_silent_leader_is_told_so_and_heard_when_it_speaks_again(tmp_path: Path) -> None:
    async def scenes() -> None:
        ends: list[asyncio.StreamWriter] = []

        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ends.append(writer)
            await reader.read()
            writer.close()

        with short_path(tmp_path / "leader.sock") as path:
            server = await asyncio.start_unix_server(lead, path)
        line = Line(tmp_path / "leader.sock", lambda _: None, silence_max_s=SILENCE_MAX_S)
        keeping = asyncio.ensure_future(line.keep())
        await eventually(lambda: bool(ends))
        with pytest.raises(MusterError) as caught:
            await asyncio.wait_for(line.ask(Submit(spec())), DEADLINE_S)
        assert caught.value.reason.code == Code.NO_LEADER

        def is_heard() -> bool:
            ends[0].write(frame(Committed(0)))
            return line.is_open

        await eventually(is_heard)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        server.close()
        await server.wait_closed()

    asyncio.run(scenes())


def test_a_leader_speaks_as_long_as_what_it_decides_becomes_durable(tmp_path: Path) -> None:
    async def scenes() -> None:
        stage = Stage(tmp_path)
        stage.pulse_s = 0
        async with led(stage) as caller:
            await eventually(lambda: len(caller.heard) > 3)
            stage.store.shut()
            caller.ask(Submit(spec()))
            await eventually(stage.store.entered.is_set)
            for _ in range(100):
                await asyncio.sleep(0)
            heard = len(caller.heard)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(caller.heard) == heard, "nothing is said while one batch does not become durable"
            stage.store.gate.set()
            await caller.answered(1)
            told = len(caller.heard)
            await eventually(lambda: len(caller.heard) > told)

    asyncio.run(scenes())
