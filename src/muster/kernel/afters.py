"""Who may follow whom: what a new job has to wait for, and what becomes of those who wait when another starts or ends.

Whoever waits is decided in the batch in which the job that it names moves: its condition is met, or it can never be
and the job ends, and with it the chain behind it. Of an array that follows another task by task, the same is decided of
each task when its like is over. The table is `muster.lifecycle.after`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Final

from muster.kernel.attempts import close_array
from muster.kernel.turn import Turn, refuse
from muster.lifecycle.after import STAGES, Verdict, judge
from muster.lifecycle.gang import PHASE_OF
from muster.model import event, fact
from muster.model.after import After, When
from muster.model.job import Job
from muster.model.phase import TERMINAL, TaskPhase, Why
from muster.model.ranges import Span
from muster.model.reason import Code, Refused
from muster.model.spec import Spec
from muster.world.tasks import spans_of
from muster.world.world import World

_OVER: Final = (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED)
_BLOCKED: Final = (TaskPhase.BLOCKED,)
_MET_AT: Final = tuple(stage for stage in STAGES if judge(When.TASK_BY_TASK, stage) is Verdict.MET)
_NEVER_AT: Final = tuple(stage for stage in STAGES if judge(When.TASK_BY_TASK, stage) is Verdict.NEVER)


def find_open(world: World, item: event.Submit) -> tuple[int, ...] | Refused:
    """The jobs that a new one has still to wait for. One that names a job which nobody knows, or that could never
    start, is refused."""
    found: list[int] = []
    for each in item.spec.after:
        stage = _find_stage(world, each, item.past)
        if isinstance(stage, Refused):
            return stage
        verdict = judge(each.when, stage)
        if each.when is When.TASK_BY_TASK:
            other = world.jobs.get(each.job)
            if not item.spec.array or (other is not None and not _are_alike(other.spec, item.spec)):
                tasks = 0 if other is None else other.spec.array
                return refuse(Code.UNLIKE, str(each), item.spec.array, tasks, f"job {each.job}")
            verdict = Verdict.OPEN if other is not None else verdict  # each of its tasks is looked at by itself
        if verdict is Verdict.NEVER:
            return refuse(Code.NEVER_AFTER, str(each), each.job, detail=stage.name.lower())
        if verdict is Verdict.OPEN:
            found.append(each.job)
    return tuple(sorted(found))


def _are_alike(other: Spec, spec: Spec) -> bool:
    """Whether the tasks of one array have their likes in another. Those that run again are only some."""
    return other.array == spec.array and other.again is None


def settle(turn: Turn, first: int) -> None:
    """Decide for everybody who waits for a job that moved in the facts from `first` on. The list grows on the way: who
    is cancelled here is waited for by others."""
    successors, facts = turn.world.successors, turn.facts
    while first < len(facts):
        item = facts[first]
        for number in _moved(item):
            if number in successors:
                _decide(turn, turn.world.jobs[number])
        if isinstance(item, fact.TasksEnded | fact.ArrayCancelled) and item.job in successors:
            _decide_tasks(turn, item)
        elif isinstance(item, fact.Accepted) and item.waits and item.spec.likes:
            _decide_newcomer(turn, turn.world.jobs[item.job])
        first += 1


def _moved(item: fact.Fact) -> Sequence[int]:
    """The jobs that got a place, or ended, by a fact."""
    if isinstance(item, fact.Placed):
        return item.jobs
    return (item.job,) if isinstance(item, fact.Ended | fact.TasksPlaced) else ()


def _decide(turn: Turn, other: Job) -> None:
    stage, met = _stage_of(turn.world, other), list[int]()
    cause = f"job {other.id} {'started' if stage == TaskPhase.RUNNING else stage.name.lower()}"
    for number in sorted(turn.world.successors[other.id]):
        job = turn.world.jobs[number]
        when = next(each.when for each in job.spec.after if each.job == other.id)
        verdict = judge(when, stage)
        if when is When.TASK_BY_TASK:
            verdict = Verdict.MET if stage in _OVER else Verdict.OPEN  # all its tasks are decided
        if verdict is Verdict.MET:
            met.append(number)
        elif verdict is Verdict.NEVER:
            _give_up(turn, job, cause)
    if met:
        turn.emit(fact.AfterMet(other.id, met, cause))


def _decide_newcomer(turn: Turn, job: Job) -> None:
    """Of what a new array follows task by task, some may be over, or all of it."""
    if not isinstance(job.phase, TERMINAL):
        _decide_spans(turn, job, [(0, job.spec.array)], "what was over before it came")
    for other in job.waits:
        if other in turn.world.successors and isinstance(turn.world.jobs[other].phase, TERMINAL):
            _decide(turn, turn.world.jobs[other])


def _decide_tasks(turn: Turn, item: fact.TasksEnded | fact.ArrayCancelled) -> None:
    """Tasks of an array are over: those that are their likes in others follow, or never can."""
    cause = f"job {item.job}, task by task"
    for number in sorted(turn.world.successors[item.job]):
        job = turn.world.jobs[number]
        if item.job in job.spec.likes and isinstance(item, fact.ArrayCancelled):
            _decide_spans(turn, job, [(0, job.spec.array)], cause)
        elif item.job in job.spec.likes and isinstance(item, fact.TasksEnded) and item.phase in _OVER:
            _decide_spans(turn, job, item.spans, cause)


def _decide_spans(turn: Turn, job: Job, spans: list[Span], cause: str) -> None:
    """Let the blocked tasks of ranges follow whose likes have all succeeded; those of which one did not are over. An
    array of which only so many may be at it at once lets them follow in turn: see `muster.kernel.throttles`."""
    tasks = turn.world.arrays[job.id].phase
    for phases in _likes_of(turn.world, job):
        if never := _among(phases, _NEVER_AT, _among(tasks, _BLOCKED, spans)):
            first, count, *more = chain(*never)
            turn.emit(fact.TasksEnded(job.id, first, count, TaskPhase.CANCELLED, Why.DEPENDENCY, 0, cause, more))
    if not job.spec.at_most:
        move_spans(turn, job, find_met(turn.world, job, spans), TaskPhase.QUEUED, cause)
    close_array(turn, job, cause)


def move_spans(turn: Turn, job: Job, spans: list[Span], to: TaskPhase, cause: str) -> None:
    """Tasks of ranges, if there are any, are in another phase from now on."""
    if spans:
        first, count, *more = chain(*spans)
        turn.emit(fact.TasksMoved(job.id, first, count, to, cause, more))


def find_met(world: World, job: Job, spans: list[Span]) -> list[Span]:
    """The blocked tasks of ranges whose likes, if they have any, have all succeeded."""
    met = _among(world.arrays[job.id].phase, _BLOCKED, spans)
    for phases in _likes_of(world, job):
        met = _among(phases, _MET_AT, met)
    return met


def _likes_of(world: World, job: Job) -> list[bytearray]:
    return [world.arrays[other].phase for other in job.waits if other in job.spec.likes]


def _among(phases: bytearray, wanted: tuple[TaskPhase, ...], spans: list[Span]) -> list[Span]:
    """The runs inside some spans of tasks whose phase is wanted."""
    return [run for first, count in spans for run in spans_of(phases, wanted, first, first + count)]


def _give_up(turn: Turn, job: Job, cause: str) -> None:
    """A job that can never start any more is over."""
    if job.spec.array:
        turn.emit(fact.ArrayCancelled(job.id, cause))
    turn.emit(fact.Ended(job.id, TaskPhase.CANCELLED, Why.DEPENDENCY, cause=cause))


def _find_stage(world: World, each: After, past: dict[int, TaskPhase]) -> TaskPhase | Refused:
    """How far a job is that a new one names: by the world, or by the journal's word for one that retired."""
    job = world.jobs.get(each.job)
    if job is not None:
        return _stage_of(world, job)
    if not 0 < each.job < world.next_job:
        return refuse(Code.UNKNOWN_PREDECESSOR, str(each), each.job)
    stage = past.get(each.job)
    return refuse(Code.PREDECESSOR_RETIRED, str(each), each.job) if stage is None else stage


def _stage_of(world: World, job: Job) -> TaskPhase:
    if isinstance(job.phase, TERMINAL):
        return PHASE_OF[type(job.phase)]
    return TaskPhase.RUNNING if _had_a_place(world, job) else TaskPhase.QUEUED


def _had_a_place(world: World, job: Job) -> bool:
    if not job.spec.array:
        return job.epoch > 0
    return any(world.arrays[job.id].epoch)
