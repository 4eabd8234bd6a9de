"""Watching, as server-sent events: what happens, entry by entry, and what a task writes, piece by piece.

Every event carries the place to go on from, so that whoever was cut off misses nothing and sees nothing twice: entries
are read from the journal, which keeps them all. A watcher that does not read holds back only itself.
"""

from __future__ import annotations

import asyncio
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from muster.api.gate import Sees, gate_of, principal_of, sees_of
from muster.api.jobs import LOG_LOOK_S, Jobs, read_task
from muster.api.params import find_header, read_job, read_number, read_world
from muster.control.follower import Follower
from muster.model.errors import RejectedError
from muster.model.fact import Fact, Placed, jobs_of
from muster.model.reason import Code, Reason
from muster.wire.codec import Entry
from muster.wire.views import LogPiece, Occurrence

WATCHERS_MAX: Final = 512
WATCHERS_EACH_MAX: Final = 32
ENTRIES_AT_ONCE: Final = 100
PULSE_S: Final = 15.0
"""How often a quiet stream says that it lives."""

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = getincrementaldecoder("utf-8")


class Watch:
    """The routes that go on."""

    def __init__(self, follower: Follower, jobs: Jobs) -> None:
        self._follower = follower
        self._jobs = jobs
        self._watchers: dict[str, int] = {}
        self.routes = [
            Route("/v1/watch", self.watch, methods=["GET"]),
            Route("/v1/jobs/{job}/logs/follow", self.follow, methods=["GET"]),
        ]

    async def watch(self, request: Request) -> Response:
        """What happens to jobs from an entry on (`after`, or `Last-Event-ID`; else from now on), as it becomes durable;
        only of one `job` or one `tenant`, if that is asked for."""
        query = request.query_params
        job = read_number(query.get("job"), "job", default=0)
        world = await read_world(request, self._follower)
        after, words = _read_place(_last_seen(request, "after"), world.seq)
        await self._follower.reach(after)  # else it is of another journal: it would wait in silence
        stream = self._occurrences(request, after, words, job, query.get("tenant", ""))
        return self._stream(request, stream)

    async def follow(self, request: Request) -> Response:
        """What a task writes, from `offset` (or `Last-Event-ID`) on, until there will be no more."""
        query, number = request.query_params, read_job(request)
        task = read_task(request)
        epoch = read_number(query.get("epoch"), "epoch", default=0)
        offset = read_number(_last_seen(request, "offset"), "offset", default=0)
        await read_world(request, self._follower)
        await self._jobs.find_try(number, task, epoch)  # so that what is not there is refused before the stream begins
        return self._stream(request, self._pieces(number, task, epoch, offset))

    def _stream(self, request: Request, events: AsyncIterator[bytes]) -> Response:
        name = principal_of(request).name
        own, total = self._watchers.get(name, 0), sum(self._watchers.values())
        if own >= WATCHERS_EACH_MAX:
            raise RejectedError(Reason(Code.OVERLOADED, "streams of yours", needed=own, available=WATCHERS_EACH_MAX))
        if total >= WATCHERS_MAX:
            raise RejectedError(Reason(Code.OVERLOADED, "streams", needed=total, available=WATCHERS_MAX))
        self._watchers[name] = own + 1
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._counted(name, events), headers=headers, media_type="text/event-stream")

    async def _counted(self, name: str, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for data in events:
                yield data
        finally:
            self._watchers[name] -= 1
            if not self._watchers[name]:
                del self._watchers[name]

    async def _occurrences(
        self, request: Request, after: int, words: int, job: int, tenant: str
    ) -> AsyncIterator[bytes]:
        is_seen = sees_of(request)
        yield _event("begin", _spell_place(after, words), b"{}")
        while True:
            if not await self._follower.until(lambda world, seq=after: world.seq > seq, PULSE_S):  # type: ignore[misc]  # a default binds it
                yield b": alive\n\n"
                continue
            for entry in await self._follower.read_entries(after, ENTRIES_AT_ONCE):
                for place, item in await self._tell(request, entry, is_seen, words):
                    if (not job or item.job == job) and (not tenant or item.tenant == tenant):
                        yield _event(item.what, place, _encoder.encode(item))
                after, words = entry.seq, 0

    async def _tell(self, request: Request, entry: Entry, is_seen: Sees, words: int) -> list[tuple[bytes, Occurrence]]:
        """What an entry says, after so many of its words, of jobs that the watcher may see; each with the place to go
        on from."""
        told: list[tuple[bytes, Occurrence]] = []
        said = [(fact, job) for fact in entry.facts for job in jobs_of(fact)]
        for number, (fact, job) in enumerate(said[words:], words + 1):
            tenant = await gate_of(request).find_tenant(job)
            if tenant is not None and is_seen(tenant):
                place = _spell_place(entry.seq, 0) if number == len(said) else _spell_place(entry.seq - 1, number)
                told.append((place, Occurrence(entry.seq, entry.at, job, tenant, _kind(fact), _phase(fact))))
        return told

    async def _pieces(self, number: int, task: int | None, epoch: int, offset: int) -> AsyncIterator[bytes]:
        """What a task writes. A character that is cut by the end of a piece comes with the next one, also to whoever
        goes on from there."""
        quiet_s, text = 0.0, _decoder("replace")
        while True:
            found = await self._jobs.find_try(number, task, epoch)
            piece = await self._jobs.read_piece(number, found, offset)
            if piece.data:
                offset, quiet_s = piece.next_offset, 0.0
                told = LogPiece(text.decode(piece.data), found.epoch)
                yield _event("piece", b"%d" % (offset - len(text.getstate()[0])), _encoder.encode(told))
            elif found.is_over:
                if rest := text.decode(b"", final=True):
                    yield _event("piece", b"%d" % offset, _encoder.encode(LogPiece(rest, found.epoch)))
                yield _event("end", b"%d" % offset, b"{}")
                return
            else:
                await asyncio.sleep(LOG_LOOK_S)
                quiet_s += LOG_LOOK_S
                if quiet_s >= PULSE_S:
                    quiet_s = 0.0
                    yield b": alive\n\n"


def _last_seen(request: Request, word: str) -> str | None:
    """Where to go on: a browser that connects again says by itself what it saw last, others say it in the query."""
    return find_header(request, b"last-event-id") or request.query_params.get(word)


def _read_place(text: str | None, newest: int) -> tuple[int, int]:
    """An entry, and how many words of the next one were heard, too: `150`, or `150.2`."""
    if text is None:
        return newest, 0
    entry, dot, words = text.partition(".")
    return read_number(entry, "after", default=0), read_number(words if dot else None, "after", default=0)


def _spell_place(entry: int, words: int) -> bytes:
    """Many things may happen in one entry, and whoever is cut off between two of them misses none."""
    return b"%d.%d" % (entry, words) if words else b"%d" % entry


def _event(kind: str, place: bytes, data: bytes) -> bytes:
    return b"event: %s\nid: %s\ndata: %s\n\n" % (kind.encode(), place, data)


def _kind(fact: Fact) -> str:
    """The kind of a fact, without its version."""
    return str(fact.__struct_config__.tag).partition(".")[0]


def _phase(fact: Fact) -> str:
    """The phase that a fact puts a job or its tasks into, where it says one."""
    phase = getattr(fact, "phase", None)
    if phase is not None:
        return str(phase.name.lower())
    return "starting" if isinstance(fact, Placed) else ""
