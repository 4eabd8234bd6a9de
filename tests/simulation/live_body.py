"""The simulator's load and faults against the real leader over a real store: its loop, its writer's thread and its file
are those of a server; only time is virtual.

The loop's clock is the agenda. When nothing is left to do at an instant and everything decided is durable, time jumps
to whatever comes next, so a day takes as long as its work does.
"""

from __future__ import annotations

import asyncio
import contextlib
import selectors
from collections.abc import Callable, Sequence
from pathlib import Path

from muster.control.leader import Leader
from muster.kernel.kernel import Outcome
from muster.model.event import Event
from muster.ports import Store
from muster.simulator.agenda import Agenda
from muster.simulator.engine import SimulatedEngine
from muster.stores.sqlite import SqliteStore
from muster.world.laws.invariants import check_world
from muster.world.world import World


class LiveBody:
    """What a simulation asks of its body, done by a leader. `close` stops it as a server is stopped."""

    def __init__(self, agenda: Agenda, engine: SimulatedEngine, root: Path, history_ms: int) -> None:
        self.agenda = agenda
        self.engine = engine
        self.store: Store = SqliteStore(root / "journal.db")
        self.observers: list[Callable[[Outcome, Sequence[Event]], None]] = []
        self.batches = self.events = self.inspections = 0
        self.inspector = self
        self.leader = Leader(World(), self.store, engine, agenda, root / "leader.sock", root, history_ms=history_ms)
        self._selector = _Jumping(agenda, self._is_syncing)
        self._loop = _VirtualLoop(agenda, self._selector)
        self._stop = asyncio.Event()
        self._leading = self._loop.create_task(self.leader.run(self._stop))
        self._loop.run_until_complete(asyncio.sleep(0))  # from here on it hears

    @property
    def world(self) -> World:
        """The leader's; it may be made again."""
        return self.leader._world

    def take(self, event: Event) -> None:
        """An event from outside the engine."""
        self.events += 1
        self.leader._report([event])

    def run_until(self, horizon: int) -> None:
        """Go on until `horizon`, and until all that was decided by then is durable."""
        here = self._loop.create_future()
        self.agenda.after(horizon - self.agenda.now, here.set_result, None)
        self._loop.run_until_complete(asyncio.wait([here, self._leading], return_when=asyncio.FIRST_COMPLETED))
        assert not self._leading.done(), f"the leader ended with {self._leading.result()}"
        self._loop.run_until_complete(self._settle())

    def inspect(self) -> None:
        """All laws of the world."""
        check_world(self.world)
        self.inspections += 1

    def close(self) -> None:
        """Stop the leader, in real time."""
        self._selector.is_jumping = False
        self._stop.set()
        with contextlib.closing(self._loop), contextlib.closing(self.store):
            assert self._loop.run_until_complete(self._leading) == 0
            self._loop.run_until_complete(self._loop.shutdown_default_executor())

    def _is_syncing(self) -> bool:
        return bool(self.leader._in_flight)

    async def _settle(self) -> None:
        while self.leader._in_flight or self.leader._inbox:
            self._loop.call_soon(lambda: None)
            await asyncio.sleep(0)


class _Jumping(selectors.DefaultSelector):
    """Where a loop would wait, time jumps instead; but it does wait for a sync that is under way."""

    def __init__(self, agenda: Agenda, is_syncing: Callable[[], bool]) -> None:
        super().__init__()
        self._agenda = agenda
        self._is_syncing = is_syncing
        self.is_jumping = True

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self.is_jumping or (timeout is not None and timeout <= 0):
            return super().select(timeout)
        if self._is_syncing():
            return super().select(None)
        ready = super().select(0)
        if ready:
            return ready
        timer_at = None if timeout is None else self._agenda.now + max(1, round(timeout * 1000))
        instants = [at for at in (timer_at, self._agenda.find_next()) if at is not None]
        if instants:
            self._agenda.jump(max(self._agenda.now, min(instants)))
        return super().select(0 if instants else None)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """Its clock is the agenda, in seconds since the beginning: since the epoch, they would be too coarse for timers."""

    def __init__(self, agenda: Agenda, selector: _Jumping) -> None:
        self._agenda = agenda
        self._begin = agenda.now
        super().__init__(selector)

    def time(self) -> float:
        return (self._agenda.now - self._begin) / 1000
