"""What a reader sees of history: jobs that are over, and who used how much. Built on read; nothing is stored here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from muster.control.listing import OVER, Asked
from muster.model.access import OWNER
from muster.model.goodput import HELD, Bucket
from muster.model.history import AMOUNTS, COST_MICROS, COST_PARTS, COST_REST, CPU_MS, JOBS, SPENT, Remembered, Used
from muster.model.phase import TaskPhase, Why
from muster.model.spec import Spec
from muster.ports.store import Wanted
from muster.units import HOUR_MS
from muster.wire.history import decode_ending
from muster.wire.views import JobAccount, JobPage, JobView, TaskCounts, UsageRow
from muster.world.diary import PROVISIONAL

GROUPS: Final = ("tenant", "user", "flavor", "hour")
_BUCKETS: Final = {AMOUNTS[place]: place for place in SPENT} | {Bucket.PROVISIONAL.value: PROVISIONAL}


def view_remembered(found: Remembered, spec: Spec | None = None) -> JobView:
    """A job that is over, as history has it; a row of a listing carries no spec."""
    finished, ending = found.finished, decode_ending(found.finished.data)
    phase, counts = TaskPhase(finished.phase), ending.counts
    return JobView(
        id=finished.job,
        name=ending.name,
        tenant=finished.tenant,
        phase=phase.name.lower(),
        tasks=ending.tasks,
        ask=ending.ask,
        accepted_at_ms=ending.accepted_at,
        since_ms=finished.ended_at,
        epoch=ending.epoch,
        failures=ending.failures,
        why=ending.why.value if phase == TaskPhase.FAILED or ending.why == Why.DEPENDENCY else "",
        exit_code=None if counts or phase == TaskPhase.CANCELLED else ending.code,
        counts=TaskCounts(succeeded=counts[0], failed=counts[1], cancelled=counts[2]) if counts else None,
        spec=spec,
        is_over=True,
        cpu_ms=ending.cpu_ms,
        rss_bytes=ending.rss_bytes,
        account=view_account(found.amounts, found.user, ending.started_at, ending.served_ms),
    )


def view_account(amounts: Sequence[int], user: str, started_at: int = 0, served_ms: int = 0) -> JobAccount:
    """What a job used, and who answers for it."""
    return JobAccount(
        user=user or OWNER,
        time=_times(amounts),
        cost_micros=_cost(amounts),
        started_at_ms=started_at or None,
        served_ms=served_ms,
    )


def want(asked: Asked, tenants: tuple[str, ...] | None) -> Wanted | None:
    """What a listing wants of history: one row more than it shows, so that it knows whether there is more. None if it
    is about live jobs alone."""
    if asked.state == "live" or (asked.phase and asked.phase not in OVER):
        return None
    phases = (int(TaskPhase[asked.phase.upper()]),) if asked.phase else ()
    among = (asked.tenant,) if asked.tenant else tenants
    return Wanted(asked.after, asked.limit + 1, among, phases, asked.since, newest=asked.newest)


def merge(page: JobPage, remembered: Iterable[Remembered], asked: Asked, is_here: Callable[[int], bool]) -> JobPage:
    """One listing of what is in the world and what has left it; whoever is here is shown as it is here."""
    old = [view_remembered(found) for found in remembered if not is_here(found.finished.job)]
    jobs = sorted([*page.jobs, *old], key=lambda job: job.id, reverse=asked.newest)
    is_cut = len(jobs) > asked.limit or page.next_after is not None
    shown = jobs[: asked.limit]
    return JobPage(shown, shown[-1].id if is_cut and shown else None, page.seq)


class Sums:
    """Use, added up by what somebody asked for."""

    def __init__(self, by: Sequence[str], sees: Callable[[str], bool]) -> None:
        self._by = by
        self._sees = sees
        self._sums: dict[_Group, list[int]] = {}

    def add(self, used: Iterable[Used]) -> None:
        """More use."""
        for use in used:
            if self._sees(use.tenant):
                row = self._sums.setdefault(self._group(use), [0] * (PROVISIONAL + 1))
                for place, amount in enumerate(use.amounts):
                    row[place] += amount

    def rows(self) -> list[UsageRow]:
        """One row of each group, in order."""
        return [_row(group, self._sums[group]) for group in sorted(self._sums)]

    def _group(self, use: Used) -> _Group:
        chosen = self._by
        return _Group(
            use.tenant if "tenant" in chosen else "",
            (use.user or OWNER) if "user" in chosen else "",
            use.flavor if "flavor" in chosen else "",
            (use.hour or 0) if "hour" in chosen else -1,
        )


class _Group(NamedTuple):
    tenant: str
    user: str
    flavor: str
    hour: int


def _row(group: _Group, amounts: Sequence[int]) -> UsageRow:
    return UsageRow(
        tenant=group.tenant,
        user=group.user,
        flavor=group.flavor,
        hour_ms=None if group.hour < 0 else group.hour * HOUR_MS,
        time=_times(amounts),
        cpu_ms=amounts[CPU_MS],
        cost_micros=_cost(amounts),
        jobs=amounts[JOBS],
    )


def _times(amounts: Sequence[int]) -> dict[str, int]:
    """Device time by what it was spent on, in the order of the goodput account."""
    places = {bucket.value: _BUCKETS[bucket.value] for bucket in HELD}
    return {name: amounts[place] for name, place in places.items() if place < len(amounts) and amounts[place]}


def _cost(amounts: Sequence[int]) -> int:
    return amounts[COST_MICROS] + amounts[COST_REST] // COST_PARTS
