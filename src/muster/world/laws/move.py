"""The law of tasks that move: while their claim stands, each leaves its old place or waits for the one that is kept for
it, and for nothing else."""

from __future__ import annotations

from typing import Final

from muster.model.claim import Claim
from muster.model.phase import TaskPhase
from muster.world.laws.law import require
from muster.world.world import World

_LAW: Final = "a task that moves leaves, or waits for its new place"


def check_movers(world: World, job: int, claim: Claim) -> None:
    """Whether a claim that is for tasks that move has a place and a ticket for each, and they are on their way."""
    if not claim.movers:
        return
    phases = [world.arrays[job].phase[task] for task in claim.movers]
    moves = all(phase in (TaskPhase.STOPPING, TaskPhase.QUEUED) for phase in phases)
    require(moves, _LAW, f"job {job}: tasks {claim.movers} are {phases}")
    has_each = [lease.tasks for lease in claim.leases] == [1] * len(phases) and len(claim.tickets) == len(phases)
    require(has_each, _LAW, f"job {job}: leases {claim.leases}, tickets {claim.tickets}")
