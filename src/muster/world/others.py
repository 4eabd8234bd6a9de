"""Others: who waits for whom, and the primitives that change it.

A job is found by those that it waits for (`world.successors`), as long as it does. As a whole it stands in no line
until they are as far as it wants them; task by task, each task joins when its like has succeeded; and of an array that
says how many tasks may be at it at once, the others join as those end. Whether anything is met is decided elsewhere.
Like the world's own primitives, only `apply` calls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.model.ranges import Span
from muster.world.claiming import spoken_for

if TYPE_CHECKING:  # the world keeps them
    from muster.world.world import World


def wait_for_others(world: World, job: Job) -> None:
    """Let a job be found by those that it waits for. The inverse of `leave_others`."""
    for other in job.waits:
        world.successors.setdefault(other, {})[job.id] = None


def leave_others(world: World, job: Job) -> None:
    """Nobody finds a job any more by those that it waited for, if they did."""
    for other in job.waits:
        jobs = world.successors.get(other, {})
        jobs.pop(job.id, None)
        if not jobs:
            world.successors.pop(other, None)


def stop_waiting(world: World, job: Job, other: int) -> None:
    """Another job is as far as this one wants it; whoever waits for nobody any more joins its line."""
    is_in_line = world.is_in_line(job)
    if is_in_line:
        world.dequeue(job)
    leave_others(world, job)
    waits = tuple(number for number in job.waits if number != other)
    after = world.jobs[job.id] = replace(job, waits=waits)
    wait_for_others(world, after)
    if is_in_line:
        world.enqueue(after)


def unblock_tasks(world: World, job: Job, spans: Sequence[Span]) -> None:
    """The likes of tasks are as far as these want them, and there is a turn for each: they wait in their line. The
    inverse of `block_tasks`."""
    tasks = world.arrays[job.id]
    if tasks.counts[TaskPhase.QUEUED] == spoken_for(world, job.id):
        world.enqueue(job)
    for span in spans:
        tasks.set_phase(*span, TaskPhase.QUEUED)


def block_tasks(world: World, job: Job, spans: Sequence[Span]) -> None:
    """Tasks that wait stand in their line no longer."""
    tasks = world.arrays[job.id]
    for span in spans:
        tasks.set_phase(*span, TaskPhase.BLOCKED)
    if tasks.counts[TaskPhase.QUEUED] == spoken_for(world, job.id):
        world.dequeue(job)
