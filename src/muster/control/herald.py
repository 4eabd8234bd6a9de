"""The herald: reads the journal on behalf of those who want notices, and sees to it that each gets them.

For each route it knows how far it has read; that is written down once everything before is delivered or given up. So
whatever dies, nothing is left out and something may be told twice, under the same id. A route that cannot be reached
holds up nobody else, and itself for some minutes at most. The world goes on meanwhile: nothing waits for a herald.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from muster.control.follower import Follower
from muster.control.notices import find_job_facts, tell_of_budgets, tell_of_fleet, tell_of_job, tell_of_waiting
from muster.control.story import get_beginning
from muster.model.spec import Spec
from muster.ports.notifier import NotDeliveredError, Notifier
from muster.units import HOUR_MS
from muster.wire.codec import Entry
from muster.wire.notices import OF_ITS_OWN, Kind, Notice, encode_notice

ENTRIES_AT_ONCE: Final = 100
SAVE_EVERY: Final = 1000
LOOK_S: Final = 30.0
NEWS_PATIENCE_S: Final = 3600.0
TRIES_MAX: Final = 8
DELAY_FIRST_S: Final = 1.0
DELAY_MAX_S: Final = 60.0
TOLD_MAX: Final = 1000

_log = logging.getLogger(__name__)


class Route(msgspec.Struct, frozen=True):
    """Where notices go, and which. Without tenants, of everybody; with them, of these and of all below them. `form` is
    webhook or command, and `target` as much of where it leads as is no secret."""

    name: str
    notifier: Notifier
    kinds: frozenset[Kind]
    tenants: frozenset[str] = frozenset()
    patience_ms: int = HOUR_MS
    delay_first_s: float = DELAY_FIRST_S
    form: str = ""
    target: str = ""


class Mark(msgspec.Struct):
    """How far a route has come: the last entry, the last look at the clock, and what it was told that no entry says."""

    seq: int
    looked_at: int
    told: list[str] = []


class Herald:
    """Serves routes over one follower. `save` makes marks last; they are those that `marks` gives the next one."""

    def __init__(
        self,
        follower: Follower,
        routes: Sequence[Route],
        marks: dict[str, Mark],
        save: Callable[[dict[str, Mark]], None],
        look_s: float = LOOK_S,
    ) -> None:
        self._follower = follower
        self._routes = routes
        self._save = save
        self._look_s = look_s
        now, seq = follower.now_ms(), follower.world.seq
        found = ((route.name, marks.get(route.name)) for route in routes)
        # A mark beyond the journal is of another one, before a backup was restored: nothing would be told for long.
        self._marks = {name: Mark(seq, now) if mark is None or mark.seq > seq else mark for name, mark in found}
        self._saved = {name: mark.seq for name, mark in self._marks.items()}

    async def run(self) -> None:
        """Tell, for ever."""
        self._save(self._marks)
        async with asyncio.TaskGroup() as group:
            for route in self._routes:
                group.create_task(self._read(route))
                group.create_task(self._look(route))

    # What the journal says.

    async def _read(self, route: Route) -> None:
        mark, follower = self._marks[route.name], self._follower
        while True:
            await follower.until(lambda world: world.seq > mark.seq, NEWS_PATIENCE_S)
            seen = follower.world.seq
            entries = await follower.read_entries(mark.seq, ENTRIES_AT_ONCE)
            for entry in entries:
                is_told = await self._tell_entry(route, entry)
                mark.seq = entry.seq
                if is_told or mark.seq - self._saved[route.name] >= SAVE_EVERY:
                    self._keep(route)
            if not entries:  # they are so old that the journal has let go of them
                mark.seq = seen

    async def _tell_entry(self, route: Route, entry: Entry) -> bool:
        notices = [notice for notice in tell_of_fleet(entry, self._follower.world) if self._wants(route, notice, None)]
        for place, item in find_job_facts(entry):
            spec = await self._spec_of(item.job)
            notice = tell_of_job(entry, place, item, spec)
            if self._wants(route, notice, spec):
                notices.append(notice)
        for notice in notices:
            await self._deliver(route, notice)
        return bool(notices)

    async def _spec_of(self, number: int) -> Spec:
        job = self._follower.world.jobs.get(number)
        return job.spec if job is not None else get_beginning(await self._follower.read_story(number), number)[1]

    # What time alone brings about.

    async def _look(self, route: Route) -> None:
        mark = self._marks[route.name]
        while route.kinds & {Kind.JOB_WAITING, Kind.BUDGET_SPENT}:
            await asyncio.sleep(self._look_s)
            now = self._follower.now_ms()
            for notice in list(self._find_due(route, mark, now)):
                await self._deliver(route, notice)
                mark.told = [*mark.told, notice.id][-TOLD_MAX:]
            mark.looked_at = now
            self._keep(route)

    def _find_due(self, route: Route, mark: Mark, now: int) -> Iterator[Notice]:
        world = self._follower.world
        for notice in (
            *tell_of_waiting(world, route.patience_ms, mark.looked_at, now),
            *tell_of_budgets(world, now),
        ):
            if notice.id not in mark.told and self._wants(route, notice, None):
                yield notice

    # Delivery.

    def _wants(self, route: Route, notice: Notice, spec: Spec | None) -> bool:
        if spec is not None and route.name in spec.notify and notice.kind in OF_ITS_OWN:
            return True
        if notice.kind not in route.kinds:
            return False
        return not route.tenants or any(tenant in route.tenants for tenant in self._upwards(notice.tenant))

    def _upwards(self, tenant: str) -> Iterator[str]:
        while tenant:
            yield tenant
            tenant = self._follower.parent_of(tenant)

    async def _deliver(self, route: Route, notice: Notice) -> None:
        body, delay_s = encode_notice(notice), route.delay_first_s
        for turn in range(1, TRIES_MAX + 1):
            try:
                await asyncio.to_thread(route.notifier.deliver, notice.id, body)
                return
            except NotDeliveredError as error:
                is_last = error.is_final or turn == TRIES_MAX
                fate = "is given up" if is_last else "is tried again"
                _log.warning("notice %s for %s did not arrive and %s: %s", notice.id, route.name, fate, error)
                if is_last:
                    return
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, DELAY_MAX_S)

    def _keep(self, route: Route) -> None:
        try:
            self._save(self._marks)
        except OSError as error:  # a full disk: after a restart some notices come again
            _log.warning("how far notices are told cannot be written: %s", error)
        self._saved[route.name] = self._marks[route.name].seq
