"""What the tests of the leader and the follower share: fakes of the ports, and a client of the leader's socket."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from muster.control.follower import Follower
from muster.control.frames import Splitter, short_path
from muster.control.leader import Leader
from muster.control.loading import load_world
from muster.model.access import OfAccess, Principal
from muster.model.errors import StoreError
from muster.model.event import Event, NodeSeen
from muster.model.instruction import Instruction
from muster.model.reason import Code, Reason
from muster.model.spec import Spec
from muster.ports import Change, Commit, Report
from muster.stores.memory import MemoryStore
from muster.units import Resources
from muster.wire.link import Answer, Ask, Committed, Registered, Request, frame, replies_decoder
from muster.world.world import World

DEADLINE_S = 30.0
NODE = NodeSeen("node-1", Resources(gpus=8, cpu_milli=8000, memory_bytes=2**34))


def spec(command: str = "true", **fields: object) -> Spec:
    return Spec((command,), **fields)  # type: ignore[arg-type]  # fields of a Spec, by name


class HandClock:
    """A clock that a test moves."""

    def __init__(self, at: int = 1_000_000) -> None:
        self.at = at

    def now_ms(self) -> int:
        return self.at


class RecordingEngine:
    """An Engine that reports one node and notes what it is told."""

    def __init__(self, first: Sequence[Event] = (NODE,)) -> None:
        self.told: list[Instruction] = []
        self._first = list(first)
        self._report: Report | None = None

    @property
    def is_open(self) -> bool:
        return self._report is not None

    def report(self, *events: Event) -> None:
        assert self._report is not None
        self._report(events)

    def open(self, report: Report) -> None:
        self._report = report
        if self._first:
            threading.Thread(target=report, args=(self._first,)).start()

    def carry_out(self, instructions: Sequence[Instruction]) -> None:
        self.told += instructions

    def close(self) -> None:
        pass


class GateStore(MemoryStore):
    """A store whose disk a test can hold up or break."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.is_broken = False
        self.groups: list[int] = []

    def append(self, commits: Sequence[Commit]) -> None:
        self._pass()
        super().append(commits)
        self.groups.append(len(commits))

    def keep(self, changes: Sequence[Change]) -> None:
        self._pass()
        super().keep(changes)

    def _pass(self) -> None:
        self.entered.set()
        assert self.gate.wait(DEADLINE_S)
        if self.is_broken:
            raise StoreError(Reason(Code.STORE_REFUSED, "journal", detail="disk full"))

    def shut(self) -> None:
        """Hold up every append from now on."""
        self.entered.clear()
        self.gate.clear()


class Caller:
    """A follower's end of the leader's socket, which keeps all it hears."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard: list[Answer | Committed] = []
        self.registered = -1
        self.is_cut = False
        self._writer = writer
        self._number = 0
        self._task = asyncio.ensure_future(self._listen(reader))

    def ask(self, *requests: Request | OfAccess, by: Principal | None = None) -> list[int]:
        """Send requests in one write; their numbers."""
        numbers = list(range(self._number + 1, self._number + 1 + len(requests)))
        self._number += len(requests)
        asks = zip(numbers, requests, strict=True)
        self.send(frame(*(Ask(number, request, by) for number, request in asks)))
        return numbers

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    @property
    def answers(self) -> list[Answer]:
        return [message for message in self.heard if isinstance(message, Answer)]

    async def answered(self, count: int) -> list[Answer]:
        await eventually(lambda: len(self.answers) >= count)
        return self.answers

    async def close(self) -> None:
        self._writer.close()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        splitter = Splitter()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                for messages in map(replies_decoder.decode, splitter.feed(data)):
                    self._hear(messages)
        self.is_cut = True

    def _hear(self, messages: list[Answer | Committed | Registered]) -> None:
        for message in messages:
            if isinstance(message, Registered):
                self.registered = message.version
            else:
                self.heard.append(message)


class Stage:
    """A leader on a temporary home, and whatever a test lets it meet."""

    def __init__(self, root: Path, store: GateStore | None = None, engine: RecordingEngine | None = None) -> None:
        self.root = root
        self.store = store or GateStore()
        self.engine = engine or RecordingEngine()
        self.clock = HandClock()
        self.stop = asyncio.Event()
        self.world: World = World()
        self.leading: asyncio.Task[int] | None = None
        self.leader: Leader | None = None
        self.pulse_s: float = 3600.0

    @property
    def socket(self) -> Path:
        return self.root / "leader.sock"

    async def lead(self) -> None:
        """Start a leader and wait until it listens."""
        self.world = load_world(self.store)
        ports = (self.store, self.engine, self.clock)
        leader = Leader(self.world, *ports, self.socket, self.root, DEADLINE_S, pulse_s=self.pulse_s)
        self.leader = leader
        self.stop.clear()
        ready = asyncio.Event()
        self.leading = asyncio.ensure_future(leader.run(self.stop, ready))
        await asyncio.wait_for(ready.wait(), DEADLINE_S)

    async def rest(self) -> int:
        """Tell the leader to stop; its exit code."""
        self.stop.set()
        return await self.exit_code()

    async def exit_code(self) -> int:
        assert self.leading is not None
        code = await asyncio.wait_for(self.leading, DEADLINE_S)
        self.leading = None
        return code

    async def call(self) -> Caller:
        with short_path(self.socket) as path:
            return Caller(*await asyncio.open_unix_connection(path))


@contextlib.asynccontextmanager
async def led(stage: Stage) -> AsyncIterator[Caller]:
    """A leader, and one who calls it; both are gone afterwards, however the test ended."""
    await stage.lead()
    caller = await stage.call()
    try:
        yield caller
    finally:
        stage.store.gate.set()
        if stage.leading is not None:
            await stage.rest()
        await caller.close()


@contextlib.asynccontextmanager
async def followed(stage: Stage, world: World | None = None) -> AsyncIterator[Follower]:
    """A follower on a stage's journal, which is as far as that world."""
    follower = Follower(world or load_world(stage.store), stage.store, stage.clock, stage.socket)
    task = asyncio.ensure_future(follower.run())
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def eventually(holds: Callable[[], bool]) -> None:
    """Let the loop and other threads go on until something holds; a generous deadline says that it never will."""
    async with asyncio.timeout(DEADLINE_S):
        while not holds():
            await asyncio.sleep(0.001)
