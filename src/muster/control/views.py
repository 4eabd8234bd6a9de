"""Views: what a reader sees of a world, built on read by pure functions. Nothing is stored and nothing decided here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeGuard

import msgspec

from muster.control.ends import foresee_end
from muster.control.offers import view_options
from muster.control.story import device_list
from muster.lifecycle.gang import PHASE_OF
from muster.model.job import Job, Meter
from muster.model.partition import start_in
from muster.model.phase import (
    ACTIVE,
    TERMINAL,
    Cancelled,
    Failed,
    Lease,
    Phase,
    Spread,
    Stopping,
    Succeeded,
    TaskPhase,
    Why,
)
from muster.model.reason import Code, Reason
from muster.model.spec import Spec
from muster.model.tier import Tier
from muster.scheduler.reasons import explain, find_lateness, find_shortfall
from muster.wire.views import AdviceView, Ahead, JobView, MarkView, Place, ProfileView, TaskCounts, TierView, WhyView
from muster.wire.words import put_in_words
from muster.world.promises import find_deficit, promised_by
from muster.world.tasks import LIVE
from muster.world.widths import spares_of
from muster.world.world import World

PLACES_SHOWN: Final = 1000
PLACES_LISTED: Final = 4
"""Of a job as a whole, and in a listing: a gang may have tens of thousands."""
PLACES_BYTES_MAX: Final = 320 * 1024
"""What the places of one job may take of an answer, and its spares once more: nodes may have very long names."""
_PLACE_BYTES: Final = 64
_UNMETERED: Final = Meter()


def view_job(world: World, job: Job, *, whole: bool = True, now: int = 0) -> JobView:
    """A job, now if that is later than the last that was heard; a row of a listing is not `whole` and carries no
    spec."""
    phase, spec = job.phase, job.spec
    places, spares = _places(world, job, whole=whole), _spares(world, job)
    meter = world.meters.get(job.id, _UNMETERED)
    return JobView(
        id=job.id,
        name=spec.name,
        tenant=spec.tenant,
        phase=phase_word(world, job),
        tasks=spec.tasks,
        ask=spec.whole[0],
        accepted_at_ms=job.accepted_at,
        since_ms=phase.since,
        epoch=job.epoch,
        failures=job.failures,
        why=phase.why.value if isinstance(phase, Failed | Stopping) or _gave_up(phase) else "",
        exit_code=_exit_code(job),
        places=cut_places(places) if whole else places[:PLACES_LISTED],
        places_total=len(places),
        spares=cut_places(spares) if whole else spares[:PLACES_LISTED],
        spares_total=len(spares),
        counts=TaskCounts(*world.arrays[job.id].counts) if spec.array else None,
        spec=spec if whole else None,
        is_over=is_over(job),
        held=job.held,
        waits=list(job.waits),
        late=_late(world, job, max(world.now, now)) if whole else "",
        cpu_ms=meter.cpu_ms,
        rss_bytes=meter.rss_bytes,
        price_micros=price_of(world, job) if whole else 0,
        end=foresee_end(world, job, max(world.now, now)) if whole else None,
        mark=_mark(world, job),
        saved=_saved(world, job),
    )


def _mark(world: World, job: Job) -> MarkView | None:
    mark = world.goodput.marks.get(job.id)
    if mark is None:
        return None
    if not mark.saved_at:
        return MarkView(mark.step, writes=mark.is_writing)
    return MarkView(mark.step, mark.saved_step, mark.saved_at, mark.is_writing)


def _saved(world: World, job: Job) -> int:
    """How many tasks of an array that run have a checkpoint."""
    marks = world.arrays[job.id].marks if job.spec.array else None
    return 0 if marks is None else marks.saved


def price_of(world: World, job: Job) -> int:
    """What a gang costs in an hour where it is, in millionths; 0 if it is nowhere yet, or free."""
    leases = getattr(getattr(job.phase, "run", None), "leases", ())
    parts = job.spec.parts(leases)
    return sum(world.flavor_of(x.slot).price_micros * ask.gpus * x.tasks for ask, part in parts for x in part)


def is_over(job: Job) -> bool:
    """Whether nothing will ever happen to a job again."""
    return isinstance(job.phase, TERMINAL)


def _gave_up(phase: Phase) -> TypeGuard[Cancelled]:
    """Whether a job is over because it could never start any more."""
    return isinstance(phase, Cancelled) and phase.why == Why.DEPENDENCY


def phase_word(world: World, job: Job) -> str:
    """The word a user sees. An array is in the phase that the furthest of its live tasks is in."""
    if not isinstance(job.phase, Spread):
        return PHASE_OF[type(job.phase)].name.lower()
    if job.phase.cancelled:
        return "stopping"
    counts = world.arrays[job.id].counts
    if counts[TaskPhase.RUNNING]:
        return "running"
    if counts[TaskPhase.STARTING]:
        return "starting"
    return "stopping" if counts[TaskPhase.STOPPING] else "queued"


def find_try(world: World, job: Job, task: int) -> tuple[int, bool]:
    """The epoch of a task's latest try, and whether there will be nothing more to read of that task."""
    if job.spec.array:
        tasks = world.arrays[job.id]
        return tasks.epoch[task], tasks.phase[task] not in LIVE
    ranks = world.ranks.get(job.id)
    return job.epoch, is_over(job) or (ranks is not None and ranks[task] == TaskPhase.SUCCEEDED)


def view_why(world: World, job: Job) -> WhyView:
    """Why a job waits: the reason with its numbers, who is ahead, and what would start it now."""
    found = find_reason(world, job.id)
    return complete_reason(world, found) or why_not_waiting(job.id, phase_word(world, job))


def hide_others(view: WhyView, sees: Callable[[str], bool]) -> WhyView:
    """The same explanation for a reader who may not see everybody: how much is ahead stays, whose it is goes."""
    ahead = [each if sees(each.tenant) else Ahead(0, "", each.tasks, each.ask) for each in view.ahead]
    return msgspec.structs.replace(view, ahead=ahead)


def complete_reason(world: World, found: tuple[Spec, WhyView] | None) -> WhyView | None:
    """Add what would start the job now."""
    if found is None:
        return None
    spec, view = found
    if view.code in (Code.HELD, Code.WAITS_FOR_OTHERS, Code.AT_ITS_MOST):
        return view  # nothing but its release, the others, or another bound would start it
    options, offer = view_options(world, spec, only_tiers=view.code == Code.SHADOWED)  # a limit is what its fix says
    return msgspec.structs.replace(view, options=options, offer=offer)


_STARTS: Final = (Code.DUE, Code.WINDOW_TO_OPEN)
"""Reasons that say when a job may start."""


def _late(world: World, job: Job, now: int, why: Reason | None = None) -> str:
    starts_at = why.needed if why is not None and why.code in _STARTS else 0
    reason = find_lateness(job, now, starts_at) or find_shortfall(world, job, now)
    return "" if reason is None else put_in_words(reason).what


def find_reason(world: World, number: int, now: int = 0) -> tuple[Spec, WhyView] | None:
    """Why a job waits, without its options, and its spec, by which they are found; None if nothing of it waits."""
    job = world.jobs.get(number)
    waiting = None if job is None else explain(world, job)
    if job is None or waiting is None:
        return None
    reason = waiting.reason
    words = put_in_words(reason)
    view = WhyView(
        job=job.id,
        phase=phase_word(world, job),
        code=reason.code.value,
        words=words.what,
        fix=words.fix,
        needed=reason.needed,
        available=reason.available,
        position=waiting.position,
        ahead=[_ahead(world.jobs[number]) for number in waiting.ahead],
        ahead_total=waiting.ahead_total,
        late=_late(world, job, max(world.now, now), reason),
    )
    return job.spec, view


def why_not_waiting(job: int, phase: str) -> WhyView:
    """The answer for a job of which nothing waits."""
    words = put_in_words(Reason(Code.NOT_WAITING, "job", needed=job))
    return WhyView(job=job, phase=phase, code=Code.NOT_WAITING.value, words=words.what, fix=words.fix)


def view_tiers(world: World) -> list[TierView]:
    """Every tier, in order."""
    live = [job for job in world.jobs.values() if not is_over(job)]
    found = [_view_tier(world, live, name, tier) for name, tier in world.tiers.items()]
    return sorted(found, key=lambda view: (view.rank, view.name))


def _view_tier(world: World, live: Sequence[Job], name: str, tier: Tier) -> TierView:
    mine = [job for job in live if job.spec.tier == name] if tier.promise is not None else []
    owed = sum(promised_by(tier, job.spec) for job in mine)
    behind = sum(find_deficit(job, tier, world.now) > 0 for job in mine)
    return msgspec.structs.replace(TierView(name, *msgspec.structs.astuple(tier)), promised=owed, behind=behind)


def view_profiles(world: World) -> list[ProfileView]:
    """Every profile, by name."""
    return [
        ProfileView(name, edition.version, name == world.profile_used, msgspec.structs.asdict(edition.profile))
        for name, edition in sorted(world.profiles.items())
    ]


def view_advice(world: World) -> list[AdviceView]:
    """Every kind of advice that is in force, by name."""
    return [
        AdviceView(name, said.version, said.expires_at, len(said.columns), sum(map(len, said.columns.values())))
        for name, said in sorted(world.advice.items())
    ]


def _ahead(job: Job) -> Ahead:
    ask, tasks = (job.spec.ask, job.spec.tasks) if not job.spec.needs.groups else job.spec.whole
    return Ahead(job.id, job.spec.tenant, tasks, ask)


def _exit_code(job: Job) -> int | None:
    """An array has as many exit codes as tasks, so it shows none."""
    if job.spec.array:
        return None
    if isinstance(job.phase, Succeeded):
        return 0
    return job.phase.code if isinstance(job.phase, Failed) else None


def _places(world: World, job: Job, *, whole: bool) -> list[Place]:
    names = world.fleet.shown()
    if isinstance(job.phase, ACTIVE):
        return _show_leases(names, job.spec, job.phase.run.leases)
    if whole and isinstance(job.phase, Spread):
        return [
            Place(names[slot], here[job.id]) for slot, here in sorted(world.fleet.holders.items()) if job.id in here
        ]
    return []


def cut_places(places: list[Place]) -> list[Place]:
    """As many of the first places as one answer may have."""
    size = 0
    for number, place in enumerate(places[:PLACES_SHOWN]):
        size += _PLACE_BYTES + len(place.node.encode()) + len(place.partition) + 4 * len(place.devices)
        if size > PLACES_BYTES_MAX:
            return places[:number]
    return places[:PLACES_SHOWN]


def _spares(world: World, job: Job) -> list[Place]:
    return _show_leases(world.fleet.shown(), job.spec, spares_of(job)) if job.spec.spares else []


def _show_leases(names: Sequence[str], spec: Spec, leases: Sequence[Lease]) -> list[Place]:
    return [
        Place(names[lease.slot], lease.tasks, device_list(lease.devices), show_place(spec, lease.devices))
        for lease in leases
    ]


def show_place(spec: Spec, word: int) -> str:
    """The partition that a lease's word names, and where it begins: `3g.40gb@4`."""
    name = spec.needs.partition
    return f"{name}@{max(0, start_in(word))}" if name and word else ""


def words_on(world: World, job: Job, slot: int) -> list[int]:
    """What the leases of a job on a node say of its devices."""
    if isinstance(job.phase, ACTIVE):
        return [lease.devices for lease in job.phase.run.places if lease.slot == slot]
    tasks = world.arrays.get(job.id)
    return [] if tasks is None else [word for at, word in zip(tasks.slot, tasks.devices, strict=True) if at == slot]
