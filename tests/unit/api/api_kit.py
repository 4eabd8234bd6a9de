"""A follower whose leader is a kernel in the same process, and a caller of its API without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from muster.access.tokens import make_token
from muster.api.app import make_app
from muster.control.batches import Item, make_batch
from muster.control.desk import Desk
from muster.control.follower import Follower
from muster.control.gathering import Gathering
from muster.control.herald import Route
from muster.control.history import write_chapter
from muster.control.line import Line, Waiter, no_leader
from muster.control.registrar import Registrar
from muster.control.tags import find_mismatch
from muster.kernel.kernel import Kernel
from muster.model.access import HOME_OWNER, Grant, MakeToken, OfAccess, Principal, Role, SetUser, Token, User
from muster.model.event import Event, NodeSeen
from muster.model.reason import DONE, Reason, Refused
from muster.stores.memory import MemoryStore
from muster.testing.receivers import Ear
from muster.units import Resources
from muster.wire.codec import decode_entry
from muster.wire.link import Answer, Request
from muster.wire.notices import Kind
from muster.world.accounting import keep_diary
from muster.world.world import World

TOKEN = "a-token"  # noqa: S105 - of no server
DEADLINE_S = 30.0


class Reply(NamedTuple):
    """What the API answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class FixedLogs:
    """Logs that a test has written."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_log(self, job: int, task: int, epoch: int) -> Path | None:
        path = self.path(job, task, epoch)
        return path if path.exists() else None

    def path(self, job: int, task: int, epoch: int) -> Path:
        return self.root / f"{job}.{task}.{epoch}.log"


class Nobody:
    """One who is told nothing."""

    def send(self, data: bytes) -> None:
        pass


NOBODY = Nobody()


class StillClock:
    """The same moment, until a test says otherwise."""

    at = 1000

    def now_ms(self) -> int:
        return self.at


class InlineLine(Line):
    """A line whose other end is the follower's own kernel."""

    def __init__(self, follower: InlineFollower, socket_path: Path) -> None:
        super().__init__(socket_path, lambda _: None)
        self._follower = follower

    def post(
        self, requests: Iterable[tuple[Request | OfAccess, Waiter]], by: Principal | None = None, match: str = ""
    ) -> None:
        for request, waiting in requests:
            if self._follower.led:
                waiting.set_result(self._follower.decide(request, by, match))
            else:
                waiting.set_exception(no_leader())


class InlineFollower(Follower):
    """A follower that asks a kernel beside it; `is_led` is what the test says."""

    def __init__(self, root: Path) -> None:
        self.store = MemoryStore()
        self.clock = StillClock()
        super().__init__(World(), self.store, self.clock, root / "leader.sock")
        self._line = InlineLine(self, root / "leader.sock")
        self._gathering = Gathering(self._line, self.store)
        self.kernel = Kernel(World())
        self.diary = keep_diary(self.kernel.world)
        self.registrar = Registrar(self.store, lambda name: self.kernel.world.tenant_of(name).parent)
        self.at = 1000
        self.led = True
        self.folds = True

    @property
    def is_led(self) -> bool:
        return self.led

    def decide(self, request: Request | OfAccess, by: Principal | None, match: str) -> Answer:
        """What a leader would answer."""
        mismatch = None if isinstance(request, OfAccess) else find_mismatch(self.kernel.world, request, match)
        if mismatch is not None:
            return Answer(0, self.world.seq, Refused(mismatch))
        return self.register(request) if isinstance(request, OfAccess) else self.happen(request, by=by)[0]

    def register(self, request: OfAccess) -> Answer:
        """Let users and tokens change, as a leader does."""
        errand = self.registrar.take(request, self.now_ms(), NOBODY, 0)
        if isinstance(errand, Reason):
            return Answer(0, self.world.seq, Refused(errand))
        self.store.keep([errand.change])
        self.roster.catch_up(self.store)
        return Answer(0, self.world.seq, DONE)

    def happen(self, *events: Event, after_ms: int = 1, by: Principal | None = None) -> list[Answer]:
        """Let events come to pass, and fold what they led to."""
        self.at += after_ms
        outcome = self.kernel.handle(events, self.at)
        items = [Item(event, by=by) for event in events]
        batch = make_batch(items, outcome, write_chapter(self.diary, outcome.facts))
        if batch.commit is not None:
            self.store.append([batch.commit])
        if self.folds:
            self.fold()
        return [Answer(0, batch.outcome.seq, reply) for reply in batch.outcome.answers]

    def fold(self) -> None:
        """Catch up with the journal."""
        for data in self.store.read_entries(self.world.seq):
            self._fold(decode_entry(data))
        self._wake_waiters()


class Scene:
    """An API with one node behind it."""

    def __init__(self, root: Path) -> None:
        self.logs = FixedLogs(root)
        self.follower = InlineFollower(root)
        self.follower.happen(NodeSeen("node-1", Resources(gpus=8, cpu_milli=8000, memory_bytes=2**34)))
        self.ear = Ear()
        team = Route("team", self.ear, frozenset({Kind.JOB_FAILED}), frozenset({"a"}), form="webhook", target="hooks.x")
        self.app = make_app(self.follower, self.logs, TOKEN, hosts=["muster.example"], desk=Desk(self.follower, [team]))

    def admit(self, name: str, *grants: Grant, most: Role = Role.ADMIN, tenant: str = "", life_ms: int = 10_000) -> str:
        """Make a user with a token; the header that it speaks with."""
        self.follower.register(SetUser(name, User(grants), HOME_OWNER))
        fresh, now = make_token(), self.follower.now_ms()
        token = Token(name, fresh.digest, now, now + life_ms, most, tenant)
        answer = self.follower.register(MakeToken(fresh.id, token, HOME_OWNER))
        assert answer.reply == DONE, answer
        return f"Bearer {fresh.text}"

    def call(self, method: str, target: str, body: object = b"", **headers: str) -> Reply:
        """One request, start to end; header names with `_` for `-`."""
        return asyncio.run(self.send(method, target, body, **headers))

    async def send(self, method: str, target: str, body: object = b"", **headers: str) -> Reply:
        """The same, for a test that has an event loop."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        fields = {"host": "127.0.0.1:80", "authorization": f"Bearer {TOKEN}", **headers}
        return await call(self.app, method, target, data, {k: v for k, v in fields.items() if v})


async def stream(scene: Scene, target: str, **headers: str) -> AsyncIterator[str]:
    """The events of an answer that goes on, as they come; it is ended when the reader leaves."""
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    fields = {"host": "127.0.0.1", "authorization": f"Bearer {TOKEN}", **headers}

    async def send(message: MutableMapping[str, Any]) -> None:
        await heard.put(message.get("body", b""))

    async def receive() -> dict[str, Any]:
        return await asyncio.Future()

    serving = asyncio.ensure_future(scene.app(_scope("GET", target, fields), receive, send))
    try:
        rest = ""
        while not (serving.done() and heard.empty()):
            rest += (await heard.get()).decode()
            *events, rest = rest.split("\n\n")
            for event in events:
                yield event
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


def _scope(method: str, target: str, headers: Mapping[str, str]) -> dict[str, Any]:
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }


async def call(app: Any, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Reply:
    """Call an ASGI app as a server would, with the body in two pieces."""
    scope = _scope(method, target, headers)
    half = len(body) // 2
    incoming = [
        {"type": "http.request", "body": body[:half], "more_body": True},
        {"type": "http.request", "body": body[half:], "more_body": False},
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return incoming.pop(0) if incoming else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    try:
        async with asyncio.timeout(DEADLINE_S):
            await app(scope, receive, send)
    except RuntimeError:
        if not sent:  # otherwise it is for the server's log: the client was answered
            raise
    fields = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Reply(sent[0]["status"], fields, b"".join(message.get("body", b"") for message in sent[1:]))
