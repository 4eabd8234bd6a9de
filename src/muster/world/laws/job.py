"""The law of one job: what a world says of it, or of tasks of an array, is what the facts say."""

from __future__ import annotations

from typing import Final

from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.world.audit.books import PHASE_OF, JobBook
from muster.world.laws.law import require, require_same
from muster.world.tasks import Tasks
from muster.world.world import World

OVER: Final = frozenset({TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED})
FINAL: Final = "terminal is final"
ALL_OR_NONE: Final = "a gang holds all its places or none"
SPARES: Final = "a gang's spares are what the facts say"


def compare_job(world: World, job: Job, book: JobBook, waits: tuple[int, ...]) -> None:
    """Whether a world says the same of a job, which waits for these others."""
    name = f"job {job.id}"
    kept = (PHASE_OF[type(job.phase)], job.epoch, job.held, job.waits)
    wanted = (book.phase, book.epoch, book.held and book.phase not in OVER, waits)
    require_same(kept, wanted, FINAL if book.phase in OVER else "a job is what the facts say", name)
    require_same(world.meters.get(job.id), book.meter, "what a job used adds up", name)
    end = book.end if book.leases else None
    require_same(world.ends.find(job.id), end, "every run with a limit has its end", name)
    if book.leases:
        run = getattr(job.phase, "run", None)
        sides = ((), ()) if run is None else (run.leases, run.spares)
        for held, booked, law in zip(sides, (book.leases, book.spares), (ALL_OR_NONE, SPARES), strict=True):
            leases = [(lease.slot, lease.tasks, lease.devices) for lease in held]
            require(leases == booked, law, f"{name}: kept {leases[:4]}, booked {booked[:4]}")


def compare_span(tasks: Tasks, number: int, book: JobBook, first: int, end: int) -> None:
    """Whether a world says the same of some tasks of an array."""
    same = (
        book.phases[first:end] == tasks.phase[first:end]
        and book.epochs[first:end] == tasks.epoch[first:end]
        and book.slots[first:end] == tasks.slot[first:end]
        and book.devices[first:end] == tasks.devices[first:end]
        and book.whys[first:end] == tasks.why[first:end]
    )
    require(same, "a task is what the facts say", f"job {number}, tasks {first} to {end - 1}")
