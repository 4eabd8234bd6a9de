"""The leader: inbox → kernel → journal → release → dispatch. It gives the kernel its clock and makes its word durable.

    1  take      whatever has arrived, up to a batch
    2  handle    with a clock that never goes back
    3  commit    in the writer's thread, with everything that is queued there
    4  release   how far the journal is and what the answers are, then instructions

Now and then a fork of the world becomes a snapshot, in a thread: nobody waits for that.

The next batch may be handled while one is being committed; nothing of it is released first, because everything leaves
through the writer's line, also a batch that needs no commit. If the store refuses, this world is not the truth any
more: nothing that rests on it is released and the process ends. If an event breaks the kernel, the world is made again
from the journal and the events of that batch are handled one by one: the one that breaks it again is set aside, with
evidence, and everybody else's go on. It names no store and no engine.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from muster.control.batches import Asker, Batch, Early, Inbox, Item, make_batch
from muster.control.history import write_chapter
from muster.control.loading import load_world
from muster.control.peers import Peer, Peers
from muster.control.registrar import Errand, Registrar
from muster.control.tags import find_mismatch
from muster.control.writer import Picture, Writer
from muster.kernel.kernel import Kernel
from muster.model.access import OfAccess
from muster.model.errors import InvariantError
from muster.model.event import Event, NodeSeen
from muster.model.reason import DONE, Code, Reason, Refused
from muster.ports import Clock, Engine, Store
from muster.ports.failpoint import failpoint
from muster.units import INSTANT_MAX
from muster.wire.codec import encode_inputs
from muster.wire.link import Answer, Ask, Committed, Registered, ToFollower, frame
from muster.wire.words import put_in_words
from muster.world.accounting import keep_diary
from muster.world.snapshot import pack, snapshot
from muster.world.world import World

ASKS_MAX: Final = 10_000
"""How many asks may wait, from arrival to release; one more is refused."""
IN_FLIGHT_MAX: Final = 8
"""How many batches may be handled and not yet durable; beyond, what arrives gathers into larger batches."""
SNAPSHOT_EVERY: Final = 10_000
JOBS_TO_AN_ENTRY: Final = 10
"""After how many entries there is a snapshot: one more for every so many live jobs, since it tells of all of them."""
BREATH_S: Final = 0.002
"""How long whoever draws one stands back after each stroke, which takes less: a snapshot takes seconds, and not a
processor."""
FIRST_NODE_PATIENCE_S: Final = 30.0
KNOWN_NODE_PATIENCE_S: Final = 5.0
"""How long it is waited for what the engine says of nodes that were there before."""
SET_ASIDE_MAX: Final = 16
"""How many events one leader sets aside: with more, it is not the events that are broken."""

STOPPED: Final = 0
STORE_FAILED: Final = 3
KERNEL_FAILED: Final = 4

PULSE_S: Final = 2.0
"""How often followers hear that there is a leader that decides."""

_log = logging.getLogger(__name__)


class Leader:
    """The body of one kernel. Everything here runs in one event loop, but for the writer and the engine's reports."""

    def __init__(
        self,
        world: World,
        store: Store,
        engine: Engine,
        clock: Clock,
        socket_path: Path,
        evidence_root: Path,
        patience_s: float = FIRST_NODE_PATIENCE_S,
        history_ms: int = INSTANT_MAX,
        pulse_s: float = PULSE_S,
    ) -> None:
        self._world = world
        self._kernel = Kernel(world)
        self._diary = keep_diary(world)
        self._store = store
        self._is_rebuilding = False
        self._set_aside = 0
        self._engine = engine
        self._clock = clock
        self._evidence_root = evidence_root
        self._patience_s = patience_s
        self._pulse_s = pulse_s
        self._now = world.now
        self._durable_seq = self._pictured_seq = world.seq
        self._inbox = Inbox()
        self._early = Early()
        self._in_flight: deque[Batch] = deque()
        self._asks = 0
        self._registrar = Registrar(store, lambda name: self._world.tenant_of(name).parent)
        self._writer = Writer(store, self._on_durable, self._on_kept, self._on_refused, history_ms)
        self._peers = Peers(socket_path, self._take_asks, self._greet)
        self._timer: asyncio.TimerHandle | None = None
        self._drawing: asyncio.Task[None] | None = None
        self._has_heard = False
        self._is_turn_due = False
        self._is_time_up = False
        self._news = asyncio.Event()
        self._failure = STOPPED

    async def run(self, stop: asyncio.Event, ready: asyncio.Event | None = None) -> int:
        """Lead until `stop` is set or something fails; the exit code. `ready` is set once asks are heard."""
        self._loop = asyncio.get_running_loop()
        self._writer.start()
        self._engine.open(self._report)
        self._ring()
        patience_s = min(self._patience_s, KNOWN_NODE_PATIENCE_S) if len(self._world.fleet) else self._patience_s
        await self._wait_until(self._knows_nodes, patience_s)
        if not self._failure:
            await self._peers.listen()
            _log.info("leading from entry %d", self._durable_seq)
            if ready is not None:
                ready.set()
            await self._lead_until(stop)
        return await self._end()

    # -- 1 take

    def _take_asks(self, peer: Peer, asks: list[Ask]) -> None:
        """What came together joins the line together."""
        items: list[Item] = []
        for ask in asks:
            if self._asks >= ASKS_MAX:
                refusal = Refused(
                    Reason(Code.OVERLOADED, "changes on their way", needed=self._asks, available=ASKS_MAX)
                )
                peer.send(frame(Answer(ask.number, self._durable_seq, refusal)))
            elif isinstance(ask.request, OfAccess):
                self._take_errand(peer, ask, ask.request)
            else:
                self._asks += 1
                items.append(Item(ask.request, peer, ask.number, ask.by, ask.match))
        if items:
            self._inbox.put(items)
            self._ring()

    def _take_errand(self, peer: Peer, ask: Ask, request: OfAccess) -> None:
        """Users and tokens are no matter of the kernel's: judged here, kept by the same writer."""
        found = self._registrar.take(request, max(self._now, self._clock.now_ms()), peer, ask.number)
        if isinstance(found, Reason):
            peer.send(frame(Answer(ask.number, self._durable_seq, Refused(found))))
            return
        self._asks += 1
        self._writer.put(found)

    def _report(self, events: Sequence[Event]) -> None:
        """What an engine says, from whichever thread."""
        self._loop.call_soon_threadsafe(self._take_report, [Item(event) for event in events])

    def _take_report(self, items: list[Item]) -> None:
        self._has_heard = True
        self._inbox.put(items)
        self._ring()

    def _knows_nodes(self) -> bool:
        """Whether all that the engine said of its nodes, as they are by now, is durable."""
        return self._has_heard and len(self._world.fleet) > 0 and self._is_idle()

    def _is_idle(self) -> bool:
        return not self._inbox and not self._in_flight and not self._is_turn_due

    def _wake(self) -> None:
        """Time alone may have brought something about."""
        self._is_time_up = True
        self._ring()

    def _ring(self) -> None:
        """See to it that a turn comes, after all that has already arrived in this turn of the loop."""
        if self._is_turn_due or self._is_rebuilding or self._failure:
            return
        if len(self._in_flight) < IN_FLIGHT_MAX:
            self._is_turn_due = True
            self._loop.call_soon(self._take_turn)

    # -- 2 handle

    def _take_turn(self) -> None:
        self._is_turn_due = self._is_time_up = False
        if self._failure or self._is_rebuilding:
            return
        items = self._early.hold(self._world, self._check_tags(self._inbox.take()))
        self._now = max(self._now, self._clock.now_ms())
        try:
            outcome = self._kernel.handle([item.event for item in items], self._now)
            batch = make_batch(items, outcome, write_chapter(self._diary, outcome.facts))
        except Exception as error:  # noqa: BLE001 - of whatever kind: the world may be half changed
            self._keep_evidence(items)
            self._recover(items, error)
            return
        failpoint("leader.after_handle")
        self._in_flight.append(batch)
        self._writer.put(batch)
        self._set_timer(batch.outcome.wake_at)
        self._take_picture_if_due()
        self._inbox.put_first(self._early.release(self._world))
        if self._inbox:
            self._ring()

    def _recover(self, items: list[Item], error: Exception) -> None:
        """The kernel broke over a batch. Without an event to blame, or with too many, that is the end."""
        is_found = len(items) == 1 and items[0].is_suspect
        self._set_aside += is_found
        if not items or self._set_aside > SET_ASIDE_MAX:
            self._fail(KERNEL_FAILED, error, items)
            return
        _log.critical("the kernel broke over %d events: %s", len(items), error, exc_info=error)
        if is_found:
            self._refuse(items, _broken(error))
        else:
            self._inbox.put_back(items)
        self._is_rebuilding = True
        if not self._in_flight:
            self._rebuild()

    def _rebuild(self) -> None:
        """All that was decided is durable: the journal tells what the world was before it broke."""
        self._world = load_world(self._store)
        self._kernel = Kernel(self._world)
        self._diary = keep_diary(self._world)
        self._is_rebuilding = False
        _log.warning("the world was made again from entry %d", self._world.seq)
        self._ring()

    def _refuse(self, items: list[Item], reason: Reason) -> None:
        for item in items:
            if item.asker is not None:
                self._asks -= 1
                item.asker.send(frame(Answer(item.number, self._durable_seq, Refused(reason))))

    def _check_tags(self, items: list[Item]) -> list[Item]:
        """Answer a change of what is not there any more; it goes no further."""
        mismatch = find_mismatch(self._world, items[0].event, items[0].match) if len(items) == 1 else None
        if mismatch is None:
            return items
        self._refuse(items, mismatch)
        return []

    def _set_timer(self, wake_at: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_at is not None:
            self._timer = self._loop.call_later(max(0, wake_at - self._now) / 1000, self._wake)

    def _take_picture_if_due(self) -> None:
        """Of the world as it is now, whatever happens to it meanwhile; one at a time."""
        is_due = self._world.seq - self._pictured_seq >= SNAPSHOT_EVERY + len(self._world.jobs) // JOBS_TO_AN_ENTRY
        if is_due and (self._drawing is None or self._drawing.done()):
            self._pictured_seq = self._world.seq
            self._drawing = asyncio.ensure_future(self._draw(self._world.fork()))

    async def _draw(self, twin: World, breath_s: float = BREATH_S) -> None:
        """It joins the writer's line behind its entries, so that it is never saved before them."""
        try:
            data = await asyncio.to_thread(draw, twin, breath_s)
        except Exception as error:  # noqa: BLE001 - of whatever kind: a world that cannot be told is not sound
            self._fail(KERNEL_FAILED, error, [])
        else:
            self._writer.put(Picture(twin.seq, twin.now, data))

    # -- 3 commit: in the writer's thread

    def _on_durable(self, batches: list[Batch]) -> None:
        self._loop.call_soon_threadsafe(self._release, batches)

    def _on_kept(self, errands: list[Errand]) -> None:
        self._loop.call_soon_threadsafe(self._release_errands, errands)

    def _on_refused(self, error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._fail, STORE_FAILED, error, [])

    # -- 4 release

    def _release(self, batches: list[Batch]) -> None:
        if self._failure == STORE_FAILED:
            return
        for _ in batches:
            self._in_flight.popleft()
        before, self._durable_seq = self._durable_seq, batches[-1].outcome.seq
        self._answer(batches, self._peers.everybody() if self._durable_seq > before else ())
        failpoint("leader.after_answer")
        self._dispatch(batches)
        failpoint("leader.after_dispatch")
        self._news.set()
        if self._is_rebuilding and not self._in_flight:
            self._rebuild()
        elif self._inbox or self._is_time_up:
            self._ring()

    def _release_errands(self, errands: list[Errand]) -> None:
        self._peers.tell_all(frame(Registered(errands[-1].version)))
        for errand in errands:
            self._asks -= 1
            errand.asker.send(frame(Answer(errand.number, self._durable_seq, DONE)))

    def _greet(self) -> bytes:
        """What a follower that has come must know."""
        return frame(Committed(self._durable_seq), Registered(self._registrar.version))

    def _answer(self, batches: list[Batch], followers: Iterable[Asker]) -> None:
        """One letter for each: first how far the journal is, so that nobody hears of what cannot be read yet."""
        letters: defaultdict[Asker, list[ToFollower]] = defaultdict(list)
        for follower in followers:
            letters[follower].append(Committed(self._durable_seq))
        answered = 0
        for items, outcome, _ in batches:
            for item, reply in zip(items, outcome.answers, strict=True):
                if item.asker is not None:
                    answered += 1
                    letters[item.asker].append(Answer(item.number, outcome.seq, reply))
                elif isinstance(reply, Refused) and isinstance(item.event, NodeSeen):
                    words = put_in_words(reply.reason)
                    _log.warning("node %s is not let in: %s [%s]", item.event.name, words.what, reply.reason.code.value)
        self._asks -= answered
        for asker, letter in letters.items():
            asker.send(frame(*letter))

    def _dispatch(self, batches: list[Batch]) -> None:
        try:
            for batch in batches:
                if batch.outcome.instructions:
                    self._engine.carry_out(batch.outcome.instructions)
        except Exception as error:  # noqa: BLE001 - an engine that breaks its contract: a restart says it all again
            self._fail(KERNEL_FAILED, error, [])

    # -- the end

    async def _lead_until(self, stop: asyncio.Event) -> None:
        stopping = asyncio.ensure_future(stop.wait())
        stopping.add_done_callback(lambda _: self._news.set())
        pulse = asyncio.ensure_future(self._beat())
        try:
            await self._wait_until(stop.is_set)
        finally:
            stopping.cancel()
            pulse.cancel()

    async def _beat(self) -> None:
        """Say now and then that decisions get through, for ever; nothing is said while one does not become durable."""
        while True:
            first = self._in_flight[0] if self._in_flight else None
            await asyncio.sleep(self._pulse_s)
            if first is None or not self._in_flight or self._in_flight[0] is not first:
                self._peers.tell_all(frame(Committed(self._durable_seq)))

    async def _end(self) -> int:
        """Hear nobody any more, finish what was heard, keep a snapshot, hang up."""
        self._peers.hush()
        await asyncio.to_thread(self._engine.close)
        if not self._failure:
            await self._wait_until(self._is_idle)
        if self._drawing is not None:
            await self._drawing
        if not self._failure and self._world.seq > self._pictured_seq:
            await self._draw(self._world.fork(), breath_s=0)
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.to_thread(self._writer.finish)
        await asyncio.sleep(0)  # what the writer said last is heard
        self._peers.close()
        await asyncio.sleep(0)  # and what was written is sent
        return self._failure

    async def _wait_until(self, holds: Callable[[], bool], patience_s: float | None = None) -> None:
        """Wait until something holds, something has failed, or patience ends."""
        deadline = None if patience_s is None else self._loop.time() + patience_s
        while not self._failure and not holds():
            self._news.clear()
            left_s = None if deadline is None else deadline - self._loop.time()
            try:
                await asyncio.wait_for(self._news.wait(), left_s)
            except TimeoutError:
                return

    def _fail(self, code: int, error: Exception, items: list[Item]) -> None:
        """Fail-stop: what is not durable is never released; whose ask came to nothing is told so."""
        if self._failure:
            return
        self._failure = code
        self._news.set()
        _log.critical("stopping at entry %d: %s", self._durable_seq, error, exc_info=error)
        if code == STORE_FAILED:
            reason = Reason(Code.STORE_REFUSED, "journal", detail=str(error))
            items = [item for batch in self._in_flight for item in batch.items]
        else:
            reason = _broken(error)
        while self._inbox:
            items = [*items, *self._inbox.take(len(self._inbox))]
        self._refuse(items, reason)

    def _keep_evidence(self, items: list[Item]) -> None:
        seq = self._world.seq + 1
        path = self._evidence_root / f"evidence-{seq}-{self._now}.bin"
        try:
            path.write_bytes(encode_inputs(seq, self._now, [item.event for item in items]))
        except (OSError, TypeError, ValueError) as error:
            _log.critical("the batch that failed could not be kept: %s", error)
        else:
            _log.critical("the batch that failed is in %s", path)


def draw(twin: World, breath_s: float) -> bytes:
    """A snapshot as it is kept, drawn in small strokes: whoever decides or writes meanwhile has the interpreter."""
    breathe = partial(time.sleep, breath_s)
    return pack(snapshot(twin, breathe), breathe)


def _broken(error: Exception) -> Reason:
    law = error.law if isinstance(error, InvariantError) else "the kernel takes every batch"
    return Reason(Code.INVARIANT, law, detail="see the leader's log")
