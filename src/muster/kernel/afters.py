"""Who may follow whom: what a new job has to wait for, and what becomes of those who wait when another starts or ends.

Whoever waits is decided in the batch in which the job that it names moves: its condition is met, or it can never be
and the job ends, and with it the chain behind it. The table is `muster.lifecycle.after`.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.kernel.turn import Turn, refuse
from muster.lifecycle.after import Verdict, judge
from muster.lifecycle.gang import PHASE_OF
from muster.model import event, fact
from muster.model.after import After
from muster.model.job import Job
from muster.model.phase import TERMINAL, TaskPhase, Why
from muster.model.reason import Code, Refused
from muster.world.world import World


def find_open(world: World, item: event.Submit) -> tuple[int, ...] | Refused:
    """The jobs that a new one has still to wait for. One that names a job which nobody knows, or that could never
    start, is refused."""
    found: list[int] = []
    for each in item.spec.after:
        stage = _find_stage(world, each, item.past)
        if isinstance(stage, Refused):
            return stage
        verdict = judge(each.when, stage)
        if verdict is Verdict.NEVER:
            return refuse(Code.NEVER_AFTER, str(each), each.job, detail=stage.name.lower())
        if verdict is Verdict.OPEN:
            found.append(each.job)
    return tuple(sorted(found))


def settle(turn: Turn, first: int) -> None:
    """Decide for everybody who waits for a job that moved in the facts from `first` on. The list grows on the way: who
    is cancelled here is waited for by others."""
    successors, facts = turn.world.successors, turn.facts
    while first < len(facts):
        for number in _moved(facts[first]):
            if number in successors:
                _decide(turn, turn.world.jobs[number])
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
        verdict = judge(next(each.when for each in job.spec.after if each.job == other.id), stage)
        if verdict is Verdict.MET:
            met.append(number)
        elif verdict is Verdict.NEVER:
            _give_up(turn, job, cause)
    if met:
        turn.emit(fact.AfterMet(other.id, met, cause))


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
    tasks = world.arrays[job.id]
    return tasks.counts[TaskPhase.QUEUED] < len(tasks) or any(tasks.epoch)
