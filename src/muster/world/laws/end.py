"""The law of ends: every run with a limit has its end in the calendar, and what is foretold of a run is kept as long as
it lasts. Both are counted anew from the jobs."""

from __future__ import annotations

from muster.model.phase import ACTIVE
from muster.units import AMOUNT_MAX
from muster.world.laws.law import require
from muster.world.tasks import HOLDING
from muster.world.world import World


def check_ends(world: World) -> None:
    """Ends are those of the runs that there are, and nobody else has one."""
    runs = [(job, job.phase.run) for job in world.jobs.values() if isinstance(job.phase, ACTIVE)]
    wanted = sorted((run.since + job.spec.limit_ms, job.id) for job, run in runs if job.spec.limit_ms is not None)
    kept = list(world.ends)
    require(kept == wanted, "every run with a limit has its end", f"kept {kept[:5]}, wanted {wanted[:5]}")
    holding = [number for number, tasks in sorted(world.arrays.items()) if any(map(tasks.phase.count, HOLDING))]
    limited_arrays = [number for number in holding if world.jobs[number].spec.limit_ms is not None]
    law = "tasks with a limit are counted on"
    require(sorted(world.ends.spread) == limited_arrays, law, f"{sorted(world.ends.spread)[:5]}, {limited_arrays[:5]}")
    told: dict[int, int] = {}
    for job, run in runs:
        run_ms = world.ends.advised.get(job.id, job.spec.expect_ms)
        run_ms = job.spec.expect_ms if job.spec.yields else run_ms
        if run_ms is not None and run_ms < (job.spec.limit_ms or AMOUNT_MAX):
            told[job.id] = run.since + run_ms
    require(world.ends.told == told, "what is foretold of a run is kept", f"{sorted(told.items())[:5]}")
    yielding = {job: end for job, end in told.items() if world.jobs[job].spec.yields}
    require(world.ends.yielding == yielding, "who yields is known", f"{sorted(yielding.items())[:5]}")
    _check_order(world, {job: end for end, job in wanted}, told)


def _check_order(world: World, limited: dict[int, int], told: dict[int, int]) -> None:
    """Ends come as they are foreseen by whoever waits: whoever yields leaves at its word, but for no guest."""
    for for_guest, yielding in ((False, world.ends.yielding), (True, {})):
        known = {job: end for job, end in told.items() if end > world.now or job in yielding}
        foreseen = {job: known.get(job, limited.get(job)) for job in (limited | told)}
        right = sorted((end, job) for job, end in foreseen.items() if end is not None)
        came = list(world.ends.upcoming(world.now, for_guest=for_guest))
        require(came == right, "ends come as they are foreseen", f"kept {came[:5]}, wanted {right[:5]}")
