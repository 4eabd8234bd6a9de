"""A follower of a simulated leader, over the leader's own file: it folds what was committed, and readers ask it things.

Its loop is a real one, time in it is the simulation's. Nobody is at the other end of its line: what was committed is
noted here.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from muster.control.follower import Follower
from muster.control.listing import Asked
from muster.control.loading import load_world
from muster.forecast.saying import LIKES_READ, find_comers, learn, say_start
from muster.ports import Clock
from muster.ports.store import Wanted
from muster.stores.sqlite import SqliteJournal
from muster.units import HOUR_MS, MINUTE_MS
from muster.wire.link import Committed

WATCHERS: Final = 8
PATIENCE_S: Final = 600.0


class LiveFollower:
    """One follower, its watchers, and what readers ask of it. `close` ends it."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._runner = asyncio.Runner()
        self._runner.get_loop().set_default_executor(
            ThreadPoolExecutor(1)
        )  # a thread that is new would look like a leak
        self._journal = SqliteJournal(root / "journal.db")
        self.follower = Follower(load_world(self._journal), self._journal, clock, root / "nobody.sock")
        self.heard = 0
        self.follower.hearers.append(lambda _, facts: self._hear(len(facts)))

    def catch_up(self, seq: int) -> None:
        """Fold up to an entry, while watchers wait for it; then ask all kinds of things."""
        self._runner.run(self._follow(seq))

    def close(self) -> None:
        """End its threads and its reading of the file."""
        self._runner.close()
        self._journal.close()

    def _hear(self, facts: int) -> None:
        self.heard += facts

    async def _follow(self, seq: int) -> None:
        follower, begin = self.follower, self.follower.world.seq
        waiting = [asyncio.create_task(follower.at_least(seq, PATIENCE_S)) for _ in range(WATCHERS)]
        await asyncio.sleep(0)
        follower._note(Committed(seq))
        await follower._catch_up()
        assert await asyncio.gather(*waiting) == [True] * WATCHERS
        while begin < seq:  # as those do who watch what happens
            entries = await follower.read_entries(begin, 100)
            begin = entries[-1].seq
        await self._read()

    async def _read(self) -> None:
        """What people ask for: listings, stories, accounts, use, the past, and when somebody will start."""
        follower, world, now = self.follower, self.follower.world, self.follower.now_ms()
        for state in ("live", "over", "all"):
            follower.listing.page(Asked(state, "", "", 0, 1000, lambda _: True))
        await follower.read_story(world.next_job - 1)
        await follower.find_account(world.next_job - 1)
        await follower.read_uses(max(0, now // HOUR_MS - 1), now // HOUR_MS, hourly=True)
        await follower.past.ask(max(0, now - 10 * MINUTE_MS), lambda then: len(then.jobs))
        over = await follower.read_finished(Wanted(after=max(0, world.next_job - LIKES_READ), limit=LIKES_READ))
        waiting = next((number for number, job in world.jobs.items() if world.is_waiting(job)), world.next_job - 1)
        lengths = learn(over)
        await follower.study(
            lambda _: None,
            lambda twin, _: say_start(twin, waiting, now, lengths, lambda _: True, find_comers(twin, over, now)),
        )
