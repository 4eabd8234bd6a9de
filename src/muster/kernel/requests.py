"""What people ask for: submit, cancel, hold, release and requeue. Whether a job could ever run is asked before it is
accepted."""

from __future__ import annotations

from itertools import chain

from muster.kernel.afters import find_open
from muster.kernel.again import find_again_refusal
from muster.kernel.bars import stop_ranges
from muster.kernel.turn import Turn, find_live, refuse
from muster.kernel.widths import is_same_but_width
from muster.kernel.windows import find_spec_fault
from muster.model import event, fact
from muster.model.job import Job
from muster.model.partition import Piece
from muster.model.phase import ACTIVE, Queued, Spread, Stopping, TaskPhase, Why
from muster.model.reason import Code, Done, Reason, Refused
from muster.model.spec import KEY_CHARS_MAX, Spec, as_asked, find_fault, resolve
from muster.model.tier import Tier
from muster.scheduler.placing.masks import keys_of
from muster.scheduler.reasons import find_fine_label, never_fits
from muster.world.cuts import find_piece
from muster.world.promises import promisable, promised_by
from muster.world.tasks import GOING_ON, HOLDING, spans_of


def on_submit(turn: Turn, item: event.Submit) -> Done | Refused:
    """Accept a job, give back the one that the same key made, or say why it can never run."""
    world, spec = turn.world, item.spec
    fault = find_fault(spec)
    if fault is not None:
        return Refused(fault)
    if item.key and (known := _find_known(turn, spec, item.key)) is not None:
        return known
    needs = spec.needs
    if needs.partition:
        piece = _find_piece(turn, spec)
        if isinstance(piece, Refused):
            return piece
        spec = resolve(spec, piece.milli)
    tier = world.tiers.get(spec.tier)
    if tier is None:
        return refuse(Code.UNKNOWN_TIER, "tier", detail=spec.tier)
    reason = (find_fine_label(world, needs) if needs.labels else None) or never_fits(world, spec)
    if tier.promise is not None or needs.booking or spec.again is not None or spec.due_at is not None:
        reason = reason or _find_missed(turn, spec, tier)
    if reason is not None:
        return Refused(reason)
    waits = find_open(world, item) if spec.after else ()
    if isinstance(waits, Refused):
        return waits
    if needs.labels:
        _mention(turn, spec, item.cause)
    job = world.next_job
    turn.emit(fact.Accepted(job, spec, item.key, item.cause, waits))
    return Done(job)


def _find_piece(turn: Turn, spec: Spec) -> Piece | Refused:
    """What a spec means by its partition, in the flavors that it names, if it names any."""
    cuts, flavors = turn.world.fleet.cuts, spec.needs.flavors
    piece = find_piece({name: cuts[name] for name in cuts if name in flavors or not flavors}, spec.needs.partition)
    among = f" of {', '.join(flavors)}" if flavors else ""
    return refuse(Code.UNKNOWN_PARTITION, among, detail=spec.needs.partition) if piece is None else piece


def _find_missed(turn: Turn, spec: Spec, tier: Tier) -> Reason | None:
    """Why what a spec counts on is not there for it: what its tier promises, a booking, tasks of another array, or
    time."""
    reason = _find_promises_full(turn, spec, tier) if tier.promise is not None else None
    reason = reason or (find_spec_fault(turn.world, spec) if spec.needs.booking else None)
    reason = reason or (None if spec.again is None else find_again_refusal(turn.world, spec, spec.again))
    is_late = spec.due_at is not None and spec.due_at <= turn.now
    return reason or (Reason(Code.DUE_ALREADY, "due_at", spec.due_at or 0, turn.now) if is_late else None)


def _find_promises_full(turn: Turn, spec: Spec, tier: Tier) -> Reason | None:
    """Whether what its tier promises a job would be more than there is, beside all other promises."""
    more = promised_by(tier, spec)
    needed, available = turn.world.promised + more if more else 0, promisable(turn.world)
    return Reason(Code.PROMISES_FULL, spec.tier, needed, available) if needed > available else None


def on_cancel(turn: Turn, item: event.Cancel) -> Done | Refused:
    """End a job: at once if it waits, by telling the engine if it holds a place."""
    job = find_live(turn, item.job)
    if isinstance(job, Refused):
        return job
    _drop_claim(turn, job, item.cause)
    if job.spec.array:
        _cancel_array(turn, job, item.cause)
    elif isinstance(job.phase, Queued):
        turn.emit(fact.Ended(job.id, TaskPhase.CANCELLED, Why.CANCEL, cause=item.cause))
    elif isinstance(job.phase, ACTIVE):
        turn.emit(fact.StopAsked(job.id, Why.CANCEL, cause=item.cause))
        turn.stop_run(job)
    return Done(job.id)


def on_hold_job(turn: Turn, item: event.HoldJob) -> Done | Refused:
    """Keep a job from starting. What runs of it goes on, and is held should it wait again."""
    job = find_live(turn, item.job)
    if isinstance(job, Refused):
        return job
    _drop_claim(turn, job, item.cause)
    if not job.held:
        turn.emit(fact.JobHeld(job.id, item.cause))
    return Done(job.id)


def on_release_job(turn: Turn, item: event.ReleaseJob) -> Done | Refused:
    """Let a held job start again, in the place that its number gives it."""
    job = find_live(turn, item.job)
    if isinstance(job, Refused):
        return job
    if job.held:
        turn.emit(fact.JobReleased(job.id, item.cause))
    return Done(job.id)


def on_requeue_job(turn: Turn, item: event.RequeueJob) -> Done | Refused:
    """Stop a job's run, as a drain would: the job waits again, and none of its retries is used up. Of an array that is
    what becomes of every task that has a place; those that are over stay so."""
    job = find_live(turn, item.job)
    if isinstance(job, Refused):
        return job
    if _is_ending(job):
        return refuse(Code.IS_STOPPING, "job", job.id)
    if isinstance(job.phase, Spread):
        tasks = turn.world.arrays[job.id]
        going = chain(*spans_of(tasks.phase, GOING_ON, 0, len(tasks)))
        stop_ranges(turn, job.id, list(going), Why.REQUEUE, item.cause)
    elif isinstance(job.phase, ACTIVE) and not isinstance(job.phase, Stopping):
        turn.emit(fact.StopAsked(job.id, Why.REQUEUE, cause=item.cause))
        turn.stop_run(job)
    return Done(job.id)


def _is_ending(job: Job) -> bool:
    """Whether a job was told to stop and will be over then: it does not wait again."""
    if isinstance(job.phase, Spread):
        return job.phase.cancelled
    return isinstance(job.phase, Stopping) and job.phase.why in (Why.CANCEL, Why.LIMIT)


def _drop_claim(turn: Turn, job: Job, cause: str) -> None:
    """Who does not want to start any more gives up its claim."""
    if job.id in turn.world.claims:
        turn.emit(fact.ClaimDropped(job.id, cause=cause))


def _mention(turn: Turn, spec: Spec, cause: str) -> None:
    """A label that is asked for the first time tells pools apart from now on."""
    new = keys_of(spec.needs) - turn.world.fleet.mentioned
    if new:
        turn.emit(fact.LabelsMentioned(tuple(sorted(new)), cause))


def _find_known(turn: Turn, spec: Spec, key: str) -> Done | Refused | None:
    if len(key) > KEY_CHARS_MAX:
        return refuse(Code.TOO_LARGE, "key", len(key), KEY_CHARS_MAX)
    known = turn.world.keys.find(spec.tenant, key)
    if known is None:
        return None
    if not is_same_but_width(as_asked(turn.world.jobs[known].spec), spec):
        return refuse(Code.KEY_REUSED, "key", known, detail=key)
    return Done(known)


def _cancel_array(turn: Turn, job: Job, cause: str) -> None:
    tasks = turn.world.arrays[job.id]
    turn.emit(fact.ArrayCancelled(job.id, cause))
    stop_ranges(turn, job.id, list(chain(*spans_of(tasks.phase, HOLDING, 0, len(tasks)))), Why.CANCEL, cause)
    if not tasks.live:
        turn.emit(fact.Ended(job.id, TaskPhase.CANCELLED, Why.CANCEL, cause=cause))
