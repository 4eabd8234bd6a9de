"""The law of tasks that run again: each of them failed in its array, and nobody else runs it. Counted task by task."""

from __future__ import annotations

from muster.model.again import indexes_of
from muster.model.phase import TaskPhase
from muster.world.laws.law import require
from muster.world.world import World

LAW = "what runs again failed before, and nobody else runs it"


def check_again(world: World) -> None:
    """Whoever runs tasks of another array again."""
    taken = dict[tuple[int, int], int]()
    for number, job in sorted(world.jobs.items()):
        again = job.spec.again
        if again is None:
            continue
        before = _phases_of(world, again.of)
        for index, phase in zip(indexes_of(again, job.spec.array), world.arrays[number].phase, strict=True):
            failed = before is None or before.get(index) == TaskPhase.FAILED
            require(failed, LAW, f"job {number}: task {index} of job {again.of} did not fail")
            if phase != TaskPhase.CANCELLED:
                other = taken.setdefault((again.of, index), number)
                require(other == number, LAW, f"task {index} of job {again.of} is run by jobs {other} and {number}")


def _phases_of(world: World, number: int) -> dict[int, int] | None:
    """The phases of an array's tasks by their indexes; None if it retired."""
    job = world.jobs.get(number)
    if job is None:
        return None
    return dict(zip(indexes_of(job.spec.again, job.spec.array), world.arrays[number].phase, strict=True))
