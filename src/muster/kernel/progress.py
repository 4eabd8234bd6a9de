"""What runs say of their progress: how far they are, and what of it is safe. Every word of an older epoch is refused.

A gang speaks as a whole, the tasks of an array each for itself; what is said alike of many is one event. It never goes
back, only what runs can say so, and what it is worth is for the account to say.
"""

from __future__ import annotations

from typing import Final

from muster.kernel.attempts import find_end
from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.goodput import Mark
from muster.model.job import Job
from muster.model.phase import TERMINAL, Running, TaskPhase
from muster.model.ranges import ranges_of, tasks_in
from muster.model.reason import Code, Done, Refused
from muster.units import AMOUNT_MAX
from muster.world.marks import Marks
from muster.world.tasks import LIVE, Tasks
from muster.world.world import World

UNWRITTEN_MAX: Final = 100
"""Of so many stretches of work it is remembered at most that they may yet be lost."""
_BOTH: Final = "a checkpoint is begun or written, not both"
_ENDLESS: Final = "too many checkpoints were begun and none was written"


def on_progressed(turn: Turn, item: event.Progressed) -> Done | Refused:
    """A run says how far it is."""
    job = turn.world.jobs.get(item.job)
    if job is None:
        return refuse(Code.UNKNOWN_JOB, "job", item.job)
    if isinstance(job.phase, TERMINAL):
        return refuse(Code.ALREADY_OVER, "job", item.job)
    if item.checkpointing and item.checkpointed:
        return refuse(Code.BAD_SPEC, "progress", detail=_BOTH)
    return _mark_tasks(turn, job, item) if job.spec.array else _mark_gang(turn, job, item)


def _mark_gang(turn: Turn, job: Job, item: event.Progressed) -> Done | Refused:
    if item.epoch != job.epoch:
        return refuse(Code.STALE_EPOCH, "epoch", job.epoch, item.epoch)
    if not isinstance(job.phase, Running):
        return refuse(Code.UNEXPECTED, "progress", detail="the job does not run")
    known = turn.world.goodput.marks.get(job.id, Mark(0)).step
    if not known <= item.step <= AMOUNT_MAX:
        return _refuse_step(item, known)
    if item.checkpointing and _is_endless(turn.world, job.id):
        return refuse(Code.BAD_SPEC, "progress", detail=_ENDLESS)
    turn.emit(fact.Progressed(job.id, item.step, item.checkpointed, item.cause, item.checkpointing))
    return Done(job.id)


def _is_endless(world: World, job: int) -> bool:
    """Whether a gang may not begin to write one more checkpoint."""
    carry = world.goodput.carries.get(job)
    return carry is not None and len(carry.spans) >= UNWRITTEN_MAX


def _mark_tasks(turn: Turn, job: Job, item: event.Progressed) -> Done | Refused:
    """Of those that are named, the word counts of those that can say so; it is refused if none can."""
    tasks, end = turn.world.arrays[job.id], find_end(item)
    if end is None or end > job.spec.array:
        return refuse(Code.BAD_AMOUNT, "tasks", end or 0, job.spec.array)
    if item.epoch > AMOUNT_MAX:
        return refuse(Code.BAD_AMOUNT, "epoch", item.epoch, AMOUNT_MAX, "from 1 to 2^62")
    runs = tasks.find_runs(item.ranges, (TaskPhase.RUNNING,), item.epoch)
    if tasks.marks is not None:
        marks = tasks.marks
        runs = ranges_of(task for task in tasks_in(runs) if _may_say(marks, task, item))
    if not runs or not 0 <= item.step <= AMOUNT_MAX:
        return _refuse_task(tasks, item)
    first, count, *more = runs
    about = (item.step, item.checkpointed, item.cause, item.checkpointing)
    turn.emit(fact.TasksProgressed(job.id, item.epoch, first, count, *about, more))
    return Done(job.id)


def _may_say(marks: Marks, task: int, item: event.Progressed) -> bool:
    """Whether a task that runs is so far: no less than it was, and not with one more checkpoint that is not written."""
    is_endless = item.checkpointing and len(marks.carries.get(task, ())) >= UNWRITTEN_MAX
    return marks.step[task] <= item.step and not is_endless


def _refuse_task(tasks: Tasks, item: event.Progressed) -> Refused:
    """Why the word of none of them counts, by the first of them."""
    task = item.first
    if tasks.phase[task] not in LIVE:
        return refuse(Code.ALREADY_OVER, "task", task)
    if tasks.epoch[task] != item.epoch:
        return refuse(Code.STALE_EPOCH, "epoch", tasks.epoch[task], item.epoch)
    if tasks.phase[task] != TaskPhase.RUNNING:
        return refuse(Code.UNEXPECTED, "progress", detail="the task does not run")
    known = 0 if tasks.marks is None else tasks.marks.step[task]
    if not known <= item.step <= AMOUNT_MAX:
        return _refuse_step(item, known)
    return refuse(Code.BAD_SPEC, "progress", detail=_ENDLESS)


def _refuse_step(item: event.Progressed, known: int) -> Refused:
    return refuse(Code.BAD_AMOUNT, "step", item.step, AMOUNT_MAX, f"from {known} to 2^62")
