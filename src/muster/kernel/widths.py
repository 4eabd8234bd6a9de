"""How many tasks a gang has: what people ask for, what is left over is given, what others need is taken back.

Who grows is decided in `muster.scheduler.growing`, who shrinks for whom in `muster.scheduler.taking.preemption`; here
it comes true. A run that bears it in place goes on while tasks join and leave; any other is stopped, keeps the least
that it needs, and starts again.
"""

from __future__ import annotations

from msgspec.structs import replace

from muster.kernel.turn import Turn, find_live, refuse
from muster.model import event, fact
from muster.model.job import Job, Resize
from muster.model.phase import ACTIVE, Lease, Running, Stopping, TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.model.spec import ARRAY_MAX, GANG_MAX, Spec, find_fault
from muster.scheduler.growing import plan_growth
from muster.scheduler.reasons import never_fits
from muster.world.tasks import spans_of
from muster.world.widths import MEMBERS, members_of, width_of


def on_scale_job(turn: Turn, item: event.ScaleJob) -> Done | Refused:
    """Give a gang other bounds. One that has more tasks than it may shrinks; one that has fewer than it needs keeps its
    places and is the first to get the others. Of an array so many tasks are at it at once."""
    job = find_live(turn, item.job)
    if isinstance(job, Refused):
        return job
    if job.spec.array:
        return _throttle(turn, job, item)
    refusal = _find_refusal(turn, job, item)
    if refusal is not None:
        return refusal
    spec = replace(job.spec, gang=item.least or job.spec.gang, gang_most=item.most)
    fault = find_fault(spec) or never_fits(turn.world, spec)
    if fault is not None:
        return Refused(fault)
    if (job.spec.gang, job.spec.gang_most or job.spec.gang) != (spec.gang, spec.gang_most):
        if job.id in turn.world.claims:
            turn.emit(fact.ClaimDropped(job.id, cause=item.cause))
        turn.emit(fact.Scaled(job.id, spec.gang, spec.gang_most, item.cause))
        _fit_bounds(turn, turn.world.jobs[job.id], item.cause)
    return Done(job.id)


def _throttle(turn: Turn, job: Job, item: event.ScaleJob) -> Done | Refused:
    """Say how many tasks of an array may be at it at once; those that have a place keep it."""
    if item.least:
        return refuse(Code.NO_WIDTH, "job", item.job, detail="an array has no least, only a most")
    if not 1 <= item.most <= ARRAY_MAX:
        return refuse(Code.BAD_WIDTH, "tasks at once", 1, item.most, f"from 1 to {ARRAY_MAX}")
    if job.spec.at_most != item.most:
        if job.id in turn.world.claims:
            turn.emit(fact.ClaimDropped(job.id, cause=item.cause))
        turn.emit(fact.Scaled(job.id, 1, item.most, item.cause))
    return Done(job.id)


def grow_all(turn: Turn) -> None:
    """Give what is left over to those who may have more."""
    said, again = len(turn.instructions), dict[int, None]()
    fresh = {number for item in turn.facts if isinstance(item, fact.Placed) for number in item.jobs}
    for item in plan_growth(turn.world, turn.now, fresh):
        before = turn.world.jobs[item.job]
        turn.emit(item)
        if isinstance(item, fact.StopAsked):
            turn.stop_run(before)
        elif isinstance(before.phase, Running):
            leases = tuple(map(Lease, item.slots, item.tasks, item.devices))
            first = len(turn.world.ranks[item.job]) - sum(item.tasks)
            turn.start_ranks(before, first, leases)
        else:
            again[before.id] = None
            turn.start_gang(turn.world.jobs[before.id])
    if again:
        turn.unsay_starts(said, again)
    if turn.world.fleet.company.has_grown:
        turn.world.wake_company()


def shrink_run(turn: Turn, job: Job, width: int, cause: str) -> None:
    """Let the last ranks of a run leave it."""
    turn.emit(fact.ShrinkAsked(job.id, width, cause))
    tell_leavers(turn, job, width, cause)


def tell_leavers(turn: Turn, job: Job, width: int, cause: str) -> None:
    """Tell the engine who leaves; those who are over already are gone."""
    ranks = turn.world.ranks[job.id]
    for first, count in spans_of(ranks, MEMBERS, members_of(ranks)[width], len(ranks)):
        turn.stop(job, job.epoch, first, count, width)
    close_shrink(turn, job, cause)


def close_shrink(turn: Turn, job: Job, cause: str) -> None:
    """A run has its new width once all who were to leave are over."""
    to, ranks = turn.world.widths.resizes.get(job.id, Resize(0)).to, turn.world.ranks[job.id]
    if to and all(ranks[rank] == TaskPhase.SUCCEEDED for rank in members_of(ranks)[to:]):
        turn.emit(fact.Shrunk(job.id, to, cause))


def _find_refusal(turn: Turn, job: Job, item: event.ScaleJob) -> Refused | None:
    least, width = item.least or job.spec.gang, width_of(job)
    if item.least < 0 or item.most < 1 or (item.least and item.most < item.least) or item.most > GANG_MAX:
        return refuse(Code.BAD_WIDTH, "gang", least, item.most, f"from 1 to {GANG_MAX}, the least first")
    if item.most < least:
        return refuse(Code.BELOW_LEAST, "tasks", least, item.most)
    if isinstance(job.phase, Stopping) or turn.world.widths.resizes.get(job.id, Resize(0)).to:
        return refuse(Code.IS_STOPPING, "job", item.job)
    if item.least and item.most < width:
        return refuse(Code.MOST_BELOW_WIDTH, "tasks", width, item.most)
    return None


def _fit_bounds(turn: Turn, job: Job, cause: str) -> None:
    """A run that is too wide or too narrow now gets another width."""
    spec, width = job.spec, width_of(job)
    if not isinstance(job.phase, ACTIVE) or spec.gang <= width <= spec.gang_most:
        return
    if width > spec.gang_most and can_shrink_in_place(job):
        shrink_run(turn, job, spec.gang_most, cause)
    else:
        turn.emit(fact.StopAsked(job.id, Why.RESIZE, cause=cause))
        turn.stop_run(job)


def can_shrink_in_place(job: Job) -> bool:
    """Whether the run of a gang goes on while tasks leave it."""
    return job.spec.in_place and isinstance(job.phase, Running)


def is_same_but_width(known: Spec, spec: Spec) -> bool:
    """Whether two specs differ in nothing but bounds, which may have been scaled since."""
    return replace(known, gang=spec.gang, gang_most=spec.gang_most, at_most=spec.at_most) == spec
