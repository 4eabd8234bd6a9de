"""The law of floors: who waits and who runs in shared tiers is what the jobs and the advice say, and nothing else."""

from __future__ import annotations

from muster.model.phase import ACTIVE, Stopping
from muster.world.floors import Floors, takes_part
from muster.world.laws.law import require
from muster.world.world import World


def check_floors(world: World) -> None:
    """Lay all floors anew, and compare."""
    law = "floors are what the jobs and the advice say"
    kept, laid = world.queue.floors, Floors()
    laid.advised, laid.patience_ms = kept.advised, kept.patience_ms
    for job in world.jobs.values():
        sharing = world.tiers[job.spec.tier].sharing
        if sharing is None or not takes_part(job.spec):
            continue
        if isinstance(job.phase, ACTIVE):
            laid.seat(job, job.phase.run.since, sharing)
            if isinstance(job.phase, Stopping):
                laid.note_stop(job)
        elif world.queue.find_line(job) is not None:
            laid.add(job, sharing)
    require(kept.waits == laid.waits, law, f"{kept.waits} wait, {laid.waits} should")
    require(sorted(kept.by_scope) == sorted(laid.by_scope), law, f"{sorted(kept.by_scope)}")
    for scope, floor in laid.by_scope.items():
        other = kept.by_scope[scope]
        for name in ("entries", "order", "owed", "holders", "turns", "sinces", "leaving", "fixed"):
            mine, theirs = getattr(other, name), getattr(floor, name)
            require(mine == theirs, law, f"{scope}, {name}: {mine}, should be {theirs}")
