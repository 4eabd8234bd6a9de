"""What engines report of tasks: they started, they exited. Every word of an older epoch is refused.

A refused report is answered with `Forget` where nobody will ever want it, so that no engine repeats it for ever.
"""

from __future__ import annotations

from itertools import chain
from operator import add
from typing import Final, TypeAlias

from muster.kernel.mending import lose_in_place
from muster.kernel.turn import Turn, refuse
from muster.kernel.widths import close_shrink
from muster.lifecycle.gang import can_move, sources_of
from muster.model import event, fact
from muster.model.job import Job
from muster.model.phase import ACTIVE, RESIZED, TAKEN, TERMINAL, Running, Spread, Stopping, TaskPhase, Why
from muster.model.ranges import Ranges, as_ranges, ranges_of, tasks_in
from muster.model.reason import Code, Done, Refused
from muster.scheduler.repair import can_mend, plan_repair
from muster.units import AMOUNT_MAX
from muster.world.tasks import GOING_ON, HOLDING, LIVE, Tasks, spans_of
from muster.world.widths import LEFT, members_of

Verdict: TypeAlias = tuple[Ranges, TaskPhase, Why]

_SENT_BACK: Final = (
    Why.LOST,
    Why.DRAIN,
    Why.REQUEUE,
    Why.MIGRATE,
    Why.BOOKING,
    Why.BUDGET,
    Why.YIELD,
    *TAKEN,
    *RESIZED,
)
"""Nobody's failure: the job waits again."""
_KEEPING: Final = (Why.LOST, *RESIZED)
"""It keeps what is left of its places."""
_OVER, _RUNNING, _EXIT = TaskPhase.SUCCEEDED, TaskPhase.RUNNING, Why.EXIT  # members are slow to look up


def on_started(turn: Turn, item: event.Started) -> Done | Refused:
    """Tasks are up. Saying so twice is harmless."""
    job = _find_job(turn, item)
    if not isinstance(job, Job):
        return job
    if job.spec.array:
        runs = turn.world.arrays[job.id].find_runs(item.ranges, sources_of(TaskPhase.RUNNING), item.epoch)
        if runs:
            first, count, *more = runs
            turn.emit(fact.TasksMoved(job.id, first, count, TaskPhase.RUNNING, item.cause, more))
        return Done(job.id)
    for first, count in item.spans:
        job = turn.world.jobs[item.job]
        if can_move(job.phase, _RUNNING) or _are_joining(turn, job, first, count):
            turn.emit(fact.Began(job.id, first, count, item.cause))
    return Done(job.id)


def on_exited(turn: Turn, item: event.Exited) -> Done | Refused:
    """Tasks are over: what that means for the gang is decided here. Nobody will want them again."""
    job = _find_job(turn, item)
    if not isinstance(job, Job):
        turn.forget(item)
        return job
    if job.spec.array:
        _end_tasks(turn, job, item)
    else:
        _end_ranks(turn, job, item)
    turn.forget(item)
    return Done(job.id)


def lose(turn: Turn, number: int, first: int, count: int, cause: str) -> None:
    """Tasks are gone with their node. They wait again in their old place; the rest of a gang is stopped first."""
    job = turn.world.jobs[number]
    if isinstance(job.phase, Spread):
        for ranges, after, why in _lost_verdicts(job.phase, turn.world.arrays[number], first, count):
            begin, some, *more = ranges
            turn.emit(fact.TasksEnded(number, begin, some, after, why, cause=cause, more=more))
        close_array(turn, job, cause)
    elif isinstance(job.phase, ACTIVE):
        count = _let_leave(turn, job, first, count, cause)
        if count:
            _lose_ranks(turn, turn.world.jobs[number], first, count, cause)


def _lose_ranks(turn: Turn, job: Job, first: int, count: int, cause: str) -> None:
    if can_mend(turn.world, job, first, count):
        lose_in_place(turn, job, first, count, cause)
    elif _mark_over(turn, job, first, count, cause):
        _finish(turn, job, Why.LOST, 0, cause)
    elif not isinstance(job.phase, Stopping):
        turn.emit(fact.StopAsked(job.id, Why.LOST, cause=cause))
        turn.stop_run(job)


def _let_leave(turn: Turn, job: Job, first: int, count: int, cause: str) -> int:
    """Ranks are over, and some of them were to leave their run: however they ended, they are gone. How many of the
    others there are, from `first` on."""
    to = turn.world.widths.resizes[job.id].to if job.id in turn.world.widths.resizes else 0
    if not to or not isinstance(job.phase, Running):
        return count
    leaving = members_of(turn.world.ranks[job.id])[to]  # and all behind it
    if first + count <= leaving:
        return count
    begin = max(first, leaving)
    if _mark_over(turn, job, begin, first + count - begin, cause):
        _finish(turn, job, _EXIT, 0, cause)
        return 0
    close_shrink(turn, job, cause)
    return begin - first


def _are_joining(turn: Turn, job: Job, first: int, count: int) -> bool:
    """Whether ranks that are up now were still to come in a run that is up."""
    ranks = turn.world.ranks.get(job.id, b"") if isinstance(job.phase, Running) else b""
    return TaskPhase.STARTING in ranks[first : first + count]


def _find_job(turn: Turn, item: event.Started | event.Exited) -> Job | Refused:
    """The job that a report is about, if it is about a run that is alive."""
    job = turn.world.jobs.get(item.job)
    if job is None:
        return refuse(Code.UNKNOWN_JOB, "job", item.job)
    is_alive = item.epoch == job.epoch and type(job.phase) in ACTIVE
    if is_alive and item.count == job.spec.gang and not (item.first or item.more):
        return job  # what is said most often: of a whole gang
    array, end = job.spec.array, find_end(item)
    most = array or max(job.spec.gang, len(turn.world.ranks.get(job.id, b"")))
    if end is None or end > most:
        return refuse(Code.BAD_AMOUNT, "tasks", end or 0, most)
    if is_alive:
        return job
    if item.epoch > AMOUNT_MAX:
        return refuse(Code.BAD_AMOUNT, "epoch", item.epoch, AMOUNT_MAX, "from 1 to 2^62")
    if isinstance(job.phase, TERMINAL):
        return refuse(Code.ALREADY_OVER, "job", item.job)
    return job if array else refuse(Code.STALE_EPOCH, "epoch", job.epoch, item.epoch)


def find_end(item: event.Started | event.Exited | event.Progressed) -> int | None:
    """Behind the last task that a report is about; None if one of its ranges is none."""
    more = item.more
    if not more:
        return item.first + item.count if item.first >= 0 and item.count > 0 else None
    begins, counts = (item.first, *more[::2]), (item.count, *more[1::2])
    are_ranges = len(more) % 2 == 0 and min(begins) >= 0 and min(counts) > 0
    return max(map(add, begins, counts)) if are_ranges else None


def _end_ranks(turn: Turn, job: Job, item: event.Exited) -> None:
    """A gang fails with its first failed rank: the others are told to stop, and it ends when all have. Of several
    words about the end of a rank, only the first counts."""
    if job.id not in turn.world.ranks:  # it has but one, and is over with it
        _meter(turn, item)
        _finish(turn, job, _EXIT, item.code, item.noted_cause)
        return
    is_metered = False
    for first, count in item.spans:
        job = turn.world.jobs[job.id]
        if type(job.phase) in ACTIVE and not _are_over(turn, job, first, count):
            if not is_metered:
                _meter(turn, item)
                is_metered = True
            _end_range(turn, job, first, count, item.code, item.noted_cause)


def _are_over(turn: Turn, job: Job, first: int, count: int) -> bool:
    return _count_over(turn.world.ranks[job.id], first, count) == count


def _end_range(turn: Turn, job: Job, first: int, count: int, code: int, cause: str) -> None:
    if turn.world.widths.resizes:
        count = _let_leave(turn, job, first, count, cause)
        if not count:
            return
        job = turn.world.jobs[job.id]
    if _mark_over(turn, job, first, count, cause):
        _finish(turn, job, _EXIT, code, cause)
    elif code and not isinstance(job.phase, Stopping):
        turn.emit(fact.StopAsked(job.id, _EXIT, code, cause))
        turn.stop_run(job)


def _mark_over(turn: Turn, job: Job, first: int, count: int, cause: str) -> bool:
    """Note that ranks are over; True if none is left."""
    ranks = turn.world.ranks.get(job.id)
    if ranks is None or count == len(ranks):
        return True
    new = count - _count_over(ranks, first, count)
    if _count_over(ranks, 0, len(ranks)) + new == len(ranks):
        return True
    if new:
        turn.emit(fact.RanksOver(job.id, first, count, cause))
    return False


def _count_over(ranks: bytearray, first: int, count: int) -> int:
    """How many ranks of a range are over, or left their run before."""
    return ranks.count(_OVER, first, first + count) + ranks.count(LEFT, first, first + count)


def _finish(turn: Turn, job: Job, why: Why, code: int, cause: str) -> None:
    """A run is over: what the job becomes depends on why it was stopped, if it was."""
    if type(job.phase) is Stopping:
        why, code = job.phase.why, job.phase.code or code
    if why == _EXIT and not code:
        turn.emit(fact.Ended(job.id, _OVER, why, code, cause))
    elif why == Why.CANCEL:
        turn.emit(fact.Ended(job.id, TaskPhase.CANCELLED, why, code, cause))
    elif why in _SENT_BACK or (why == _EXIT and job.failures < job.spec.retries):
        left = plan_repair(turn.world, job, why, turn.now) if why in _KEEPING else None
        turn.emit(fact.Requeued(job.id, why, code, cause))
        if left is not None:
            turn.emit(left)
    else:
        turn.emit(fact.Ended(job.id, TaskPhase.FAILED, why, code, cause))


def _end_tasks(turn: Turn, job: Job, item: event.Exited) -> None:
    """Each task of an array ends by itself; the array ends with its last one."""
    tasks = turn.world.arrays[job.id]
    cause = item.noted_cause
    runs = tasks.find_runs(item.ranges, HOLDING, item.epoch)
    if runs:
        _meter(turn, item)
        for ranges, after, why in _verdicts(job, tasks, runs, item):
            if ranges:
                first, count, *more = ranges
                turn.emit(fact.TasksEnded(job.id, first, count, after, why, item.code, cause, more))
    close_array(turn, job, cause)


def _meter(turn: Turn, item: event.Exited) -> None:
    """Note what tasks used, if their engine knows. What is no amount is not noted; they are over all the same."""
    if item.cpu_ms > 0 or item.rss_bytes > 0:
        cpu_ms, rss_bytes = (used if 0 < used <= AMOUNT_MAX else 0 for used in (item.cpu_ms, item.rss_bytes))
        turn.emit(fact.Metered(item.job, cpu_ms, rss_bytes, item.cause))


def _verdicts(job: Job, tasks: Tasks, runs: Ranges, item: event.Exited) -> list[Verdict]:
    """What becomes of tasks that exited: what those were told to stop for, or what they did by themselves."""
    if isinstance(job.phase, Spread) and job.phase.cancelled:
        return [(runs, TaskPhase.CANCELLED, Why.CANCEL)]
    if not tasks.counts[TaskPhase.STOPPING]:
        return _own_verdicts(job, tasks, runs, item)
    stopped = tasks.find_runs(runs, (TaskPhase.STOPPING,), item.epoch)
    others = tasks.find_runs(runs, (TaskPhase.STARTING, TaskPhase.RUNNING), item.epoch)
    return [*_stopped_verdicts(tasks, stopped), *_own_verdicts(job, tasks, others, item)]


def _stopped_verdicts(tasks: Tasks, stopped: Ranges) -> list[Verdict]:
    """What becomes of tasks that were told to stop: past their limit they have failed, else they wait again."""
    found = tasks.whys_of(stopped)
    return [(ranges, TaskPhase.FAILED if why == Why.LIMIT else TaskPhase.QUEUED, why) for why, ranges in found]


def _lost_verdicts(phase: Spread, tasks: Tasks, first: int, count: int) -> list[Verdict]:
    """What becomes of tasks that are gone with their node: those that were to stop for something else have done so."""
    if phase.cancelled:
        return [(as_ranges(first, count), TaskPhase.CANCELLED, Why.LOST)]
    stopped, others = (
        as_ranges(*chain(*spans_of(tasks.phase, phases, first, first + count)))
        for phases in ((TaskPhase.STOPPING,), GOING_ON)
    )
    return [*_stopped_verdicts(tasks, stopped), *([(others, TaskPhase.QUEUED, Why.LOST)] if others else [])]


def _own_verdicts(job: Job, tasks: Tasks, runs: Ranges, item: event.Exited) -> list[Verdict]:
    """What becomes of tasks that nobody told to stop."""
    if not item.code:
        return [(runs, TaskPhase.SUCCEEDED, Why.EXIT)]
    again, over = list[int](), list[int]()
    for task in tasks_in(runs):
        (again if tasks.failures[task] < job.spec.retries else over).append(task)
    return [(ranges_of(again), TaskPhase.QUEUED, Why.EXIT), (ranges_of(over), TaskPhase.FAILED, Why.EXIT)]


def close_array(turn: Turn, job: Job, cause: str) -> None:
    """An array is over with its last task. Whose tasks were cancelled by nobody had likes that did not succeed."""
    counts = turn.world.arrays[job.id].counts
    if any(counts[phase] for phase in LIVE):
        return
    why = Why.CANCEL if isinstance(job.phase, Spread) and job.phase.cancelled else Why.DEPENDENCY
    if counts[TaskPhase.FAILED]:
        turn.emit(fact.Ended(job.id, TaskPhase.FAILED, Why.EXIT, counts[TaskPhase.FAILED], cause))
    elif counts[TaskPhase.CANCELLED]:
        turn.emit(fact.Ended(job.id, TaskPhase.CANCELLED, why, cause=cause))
    else:
        turn.emit(fact.Ended(job.id, TaskPhase.SUCCEEDED, cause=cause))
