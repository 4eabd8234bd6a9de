"""The follower: a world that folds the leader's entries, and a way to ask the leader for changes.

It applies nothing that the journal does not hold and decides nothing. Reads never wait for writes: they see the world
as it is here, and a reader who needs more says which entry to wait for. A change is answered once it is in this world,
so that whoever was told of it may tell others, who find it. What retired from the world is read from the journal. It
names no store.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from muster.access.audit import Chain, verify
from muster.access.roster import Roster
from muster.control.gathering import Gathering
from muster.control.line import Line
from muster.control.listing import Listing
from muster.control.past import Past
from muster.control.story import get_beginning
from muster.lifecycle.gang import PHASE_OF
from muster.model.access import OfAccess, Principal
from muster.model.after import After
from muster.model.errors import InvariantError, RejectedError
from muster.model.event import Submit
from muster.model.fact import Fact
from muster.model.history import Remembered, Used
from muster.model.phase import TERMINAL, TaskPhase
from muster.model.reason import Code, Done, Reason, Refused
from muster.model.spec import Spec
from muster.ports import Clock, Journal
from muster.ports.failpoint import failpoint
from muster.ports.store import Link, Wanted
from muster.units import MINUTE_MS
from muster.wire.codec import Entry, decode_entry
from muster.wire.link import Answer, Committed, OfJob, Registered, Request
from muster.world.accounting import keep_diary, read_open_uses
from muster.world.apply import apply_entry
from muster.world.diary import Key
from muster.world.world import World

ENTRIES_AT_ONCE: Final = 256
FOLD_AT_ONCE: Final = 4
LAGS_KEPT: Final = 1000
LAGS_SINCE_MS: Final = 5 * MINUTE_MS
RECENT_KEPT: Final = 256
WAITERS_MAX: Final = 10_000
REACH_PATIENCE_S: Final = 5.0

S = TypeVar("S")
T = TypeVar("T")
Hear: TypeAlias = Callable[[World, Sequence[Fact]], None]
"""Who hears of each entry, once the world holds it; it must neither wait nor raise."""


class Follower:
    """One world, kept as near to the leader's as the journal lets it be."""

    def __init__(self, world: World, journal: Journal, clock: Clock, socket_path: Path) -> None:
        self.world = world
        self._journal = journal
        self._clock = clock
        self.listing = Listing(world)
        self.hearers: list[Hear] = []
        self.roster = Roster()
        self.roster.catch_up(journal)
        self._line = Line(socket_path, self._note, world.seq)
        self._gathering = Gathering(self._line, journal)
        self._committed_seq = world.seq
        self._news = asyncio.Event()
        self._has_caught_up = False
        self._since_ms = clock.now_ms()
        self._lags: deque[tuple[int, int]] = deque(maxlen=LAGS_KEPT)
        self._recent: deque[Entry] = deque(maxlen=RECENT_KEPT)
        self._diary = keep_diary(world)
        self._recent_uses: deque[tuple[int, dict[Key, list[int]]]] = deque(maxlen=RECENT_KEPT)
        self._waiters: dict[asyncio.Future[None], Callable[[World], bool]] = {}
        self._studying = asyncio.Lock()
        self.past = Past(journal)

    @property
    def is_led(self) -> bool:
        """Whether changes get through, and what was there before us is known."""
        return self._line.is_open and self._has_caught_up

    async def run(self) -> None:
        """Follow for ever; raises if the journal cannot be followed any further."""
        keeping = asyncio.ensure_future(self._line.keep())
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                await self._catch_up()
                self._has_caught_up = True
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def ask(self, request: Request | OfAccess, by: Principal | None = None, match: str = "") -> Answer:
        """The leader's answer, durable and folded here; NO_LEADER if none came, and then whether it was taken is not
        known. What is asked `by` somebody goes into the audit log; what is to `match` a tag is refused if it does not.
        """
        failpoint("follower.before_forward")
        answer = await self._line.ask(request, by, match)
        failpoint("follower.after_answer")
        return answer

    async def submit(self, spec: Spec, key: str, cause: str) -> Answer:
        """Ask for a job. A key whose job is in the journal is answered from there, however long ago it ended."""
        past = await self._find_past(spec.after) if spec.after else {}
        request = Submit(spec, key, cause, past)
        failpoint("follower.before_forward")
        answer = await self._gathering.submit(request)
        failpoint("follower.after_answer")
        return answer if isinstance(answer, Answer) else await self._recall(answer, spec, key)

    async def ask_of_job(self, request: OfJob, match: str = "") -> Answer:
        """Ask for something about a job. The leader has forgotten one that retired; its number says there was one."""
        answer, job = await self.ask(request, match=match), request.job
        if (
            isinstance(answer.reply, Refused)
            and answer.reply.reason.code == Code.UNKNOWN_JOB
            and 0 < job < self.world.next_job
        ):
            over = Refused(Reason(Code.ALREADY_OVER, "job", needed=job))
            return Answer(answer.number, answer.seq, over)
        return answer

    async def at_least(self, seq: int, patience_s: float) -> bool:
        """Wait until entry `seq` is folded; False if patience ended first."""
        return await self.until(lambda world: world.seq >= seq, patience_s)

    async def reach(self, seq: int) -> None:
        """The same for an entry that somebody was told of; BEHIND if it takes too long."""
        if not await self.at_least(seq, REACH_PATIENCE_S):
            raise RejectedError(Reason(Code.BEHIND, "entry", needed=seq, available=self.world.seq))

    async def until(self, holds: Callable[[World], bool], patience_s: float) -> bool:
        """Wait until something holds of the world; False if patience ended first. Looked at after every fold."""
        if holds(self.world):
            return True
        if len(self._waiters) >= WAITERS_MAX:
            count = len(self._waiters)
            raise RejectedError(Reason(Code.OVERLOADED, "requests that wait", needed=count, available=WAITERS_MAX))
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = holds
        try:
            await asyncio.wait_for(waiter, patience_s)
        except TimeoutError:
            return holds(self.world)
        finally:
            del self._waiters[waiter]
        return True

    async def study(self, look: Callable[[World], S], question: Callable[[World, S], T]) -> tuple[World, T]:
        """Answer what takes longer than a read, and give the world that the answer rests on.

        `look` is taken here and at once. The question, with what was seen, is put to a fork of that same moment, in a
        thread, while entries are folded here. One at a time: each holds a fork.
        """
        async with self._studying:
            self.world.know_runs()  # from the first question on it is kept, and every fork has it
            seen, twin = look(self.world), self.world.fork()
            return twin, await asyncio.to_thread(question, twin, seen)

    async def read_story(self, job: int) -> list[Entry]:
        """Every entry of a job's life, from the journal."""
        data = await asyncio.to_thread(self._journal.read_story, job)
        return [decode_entry(each) for each in data]

    async def find_finished(self, job: int) -> Remembered | None:
        """A job that is over, as history has it."""
        return await asyncio.to_thread(self._journal.find_finished, job)

    async def read_finished(self, wanted: Wanted) -> list[Remembered]:
        """Jobs that are over, as history has them."""
        return await asyncio.to_thread(self._journal.read_finished, wanted)

    def find_owner(self, job: int) -> str:
        """Who submitted a job; empty if it was the owner of the home."""
        return self._journal.find_owner(job)

    async def find_account(self, job: int) -> tuple[str, list[int]]:
        """Who submitted a job, and what it used up to now, exactly."""
        journal = self._journal
        owner, (seq, amounts) = await asyncio.to_thread(lambda: (journal.find_owner(job), journal.find_amounts(job)))
        recent, live = await self._read_recent(seq), self.world.jobs.get(job)
        here = {} if live is None else read_open_uses(self.world, max(self.world.now, self.now_ms()), live)
        mine = [row for key, row in (*recent, *here.items()) if key[0] == job]
        return owner, [sum(column) for column in zip((*amounts, 0), *mine, strict=True)]

    async def read_uses(self, first_hour: int, last_hour: int, *, hourly: bool) -> list[Used]:
        """Use in these hours, exactly: what history has, what it did not have yet, and what goes on."""
        seq, used = await asyncio.to_thread(self._journal.read_uses, first_hour, last_hour, hourly=hourly)
        recent = await self._read_recent(seq)
        here = read_open_uses(self.world, max(self.world.now, self.now_ms()))
        fresh = [item for item in (*recent, *here.items()) if first_hour <= item[0][3] <= last_hour]
        return used + await asyncio.to_thread(self._sign, fresh, hourly)

    async def _read_recent(self, seq: int) -> list[tuple[Key, list[int]]]:
        """What was booked after an entry, up to which history told: nothing waits between this and a look at the
        world."""
        await self.reach(seq)
        return [item for number, each in self._recent_uses if number > seq for item in each.items()]

    def _sign(self, uses: Sequence[tuple[Key, list[int]]], hourly: bool) -> list[Used]:
        """Say whose use it is."""
        owners = {job: self._journal.find_owner(job) for job in dict.fromkeys(key[0] for key, _ in uses)}
        return [
            Used(tenant, owners[job], flavor, hour if hourly else None, tuple(row))
            for (job, tenant, flavor, hour), row in uses
        ]

    async def read_entries(self, after: int, limit: int) -> list[Entry]:
        """Entries from a number on, of those that are folded here. Several watchers read the same newest ones."""
        recent = self._recent
        if recent and recent[0].seq <= after + 1:
            return list(itertools.islice(recent, after + 1 - recent[0].seq, after + 1 - recent[0].seq + limit))
        data = await asyncio.to_thread(self._journal.read_entries, after, limit)
        return [entry for entry in map(decode_entry, data) if entry.seq <= self.world.seq]

    async def read_audit(self, after: int, limit: int) -> list[Link]:
        """Lines of the audit log."""
        return await asyncio.to_thread(self._journal.read_audit, after, limit)

    async def verify_audit(self) -> Chain:
        """How far the chain of the audit log holds."""
        return await asyncio.to_thread(verify, self._journal)

    def parent_of(self, tenant: str) -> str:
        """Where a tenant stands in the tree."""
        return self.world.tenant_of(tenant).parent

    def lag_p99_ms(self) -> int:
        """How long after their decision 99 of 100 entries were folded here in the last minutes; 0 if none was: what was
        slow once is not slow for ever on a server where little happens."""
        since = self._clock.now_ms() - LAGS_SINCE_MS
        lags = sorted(lag_ms for at, lag_ms in self._lags if at >= since)
        return lags[(len(lags) * 99 + 99) // 100 - 1] if lags else 0

    def now_ms(self) -> int:
        """What the clock says."""
        return self._clock.now_ms()

    async def _recall(self, number: int, spec: Spec, key: str) -> Answer:
        """The answer to whoever asks again for what made a job."""
        job = self.world.jobs.get(number)
        if job is not None:
            seq, known = self.world.seq, job.spec
        else:
            first, known = get_beginning(await self.read_story(number), number)
            seq = first.seq
            await self.reach(seq)  # the journal may know more than is folded here
        if known != spec:
            return Answer(0, seq, Refused(Reason(Code.KEY_REUSED, "key", needed=number, detail=key)))
        return Answer(0, seq, Done(number))

    async def _find_past(self, after: Sequence[After]) -> dict[int, TaskPhase]:
        """How the jobs ended that a new one is to run after: the leader forgets who retired, the journal does not."""
        past: dict[int, TaskPhase] = {}
        for number in [each.job for each in after if 0 < each.job < self.world.next_job]:
            job = self.world.jobs.get(number)
            if job is None:
                found = await self.find_finished(number)
                end = None if found is None else TaskPhase(found.finished.phase)
            else:
                end = PHASE_OF[type(job.phase)] if isinstance(job.phase, TERMINAL) else None
            if end is not None:
                past[number] = end
        return past

    def _note(self, news: Committed | Registered) -> None:
        if isinstance(news, Registered):
            self.roster.catch_up(self._journal)
            return
        self._committed_seq = max(self._committed_seq, news.seq)
        self._news.set()

    async def _catch_up(self) -> None:
        while self.world.seq < self._committed_seq:
            entries = self._journal.read_entries(self.world.seq, ENTRIES_AT_ONCE)
            if not entries:
                raise InvariantError("what is committed can be read", f"entry {self.world.seq + 1} is not there")
            for place, data in enumerate(entries, 1):
                self._fold(decode_entry(data))
                if place % FOLD_AT_ONCE == 0 or place == len(entries):
                    self._wake_waiters()
                    await asyncio.sleep(0)  # whoever asks waits for a few entries, however many there are to fold

    def _fold(self, entry: Entry) -> None:
        apply_entry(self.world, entry.seq, entry.at, entry.facts)
        self.listing.fold(entry.facts)
        for hear in self.hearers:
            hear(self.world, entry.facts)
        self._recent.append(entry)
        self._recent_uses.append((entry.seq, self._diary.take()[0]))
        if entry.at >= self._since_ms:  # what was decided before it was there is caught up with, which is no lag
            now = self._clock.now_ms()
            self._lags.append((now, max(0, now - entry.at)))
        failpoint("follower.after_fold")

    def _wake_waiters(self) -> None:
        self._line.release(self.world.seq)
        for waiter, holds in self._waiters.items():
            if not waiter.done() and holds(self.world):
                waiter.set_result(None)
