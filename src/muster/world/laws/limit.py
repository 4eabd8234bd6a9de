"""The law of limits of tasks: every task of an array with a limit that runs has its deadline, and none runs past it.
Counted anew, task by task."""

from __future__ import annotations

from muster.model.phase import TaskPhase
from muster.world.laws.law import require
from muster.world.world import World


def check_task_limits(world: World) -> None:
    """Deadlines are those of the tasks that run, and none of them is over."""
    wanted: dict[tuple[int, int], int] = {}
    for number, tasks in sorted(world.arrays.items()):
        limit_ms = world.jobs[number].spec.limit_ms
        for task, phase in enumerate(tasks.phase) if limit_ms is not None else ():
            if phase == TaskPhase.RUNNING:
                key = (tasks.since[task] + (limit_ms or 0), number)
                wanted[key] = wanted.get(key, 0) + 1
    limits = world.timers.tasks
    law = "every task with a limit has its deadline"
    kept = sorted(limits.counts.items())
    require(kept == sorted(wanted.items()), law, f"kept {kept[:5]}, wanted {sorted(wanted.items())[:5]}")
    first = min(wanted, default=None)
    require(limits.find() == first, law, f"first {limits.find()}, wanted {first}")
    overdue = [key for key in sorted(wanted) if key[0] <= world.now]
    require(not overdue, "no task runs past its limit", f"at {world.now}: {overdue[:5]}")
