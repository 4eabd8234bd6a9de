"""Drafts: how what was placed is said."""

from __future__ import annotations

from muster.model.fact import Placed
from muster.scheduler.fit import find_gang
from muster.testing.rig import Rig
from muster.world.draft import Draft


def test_gangs_in_a_row_are_one_fact_and_who_came_by_a_claim_has_its_ticket() -> None:
    rig = Rig(nodes=1)
    rig.submit(8)
    jobs = [rig.job(rig.submit(2)) for _ in range(3)]
    rig.exit(1)
    world = rig.world.fork()
    for job in jobs:
        world.release(world.jobs[job.id], job, rig.now)
    with Draft(world, rig.now, "a try") as draft:
        for job, claim in zip(jobs, (0, 7, 0), strict=True):
            leases = find_gang(world.fleet, job.spec.ask, 1)
            assert leases is not None
            draft.place(job, leases, claim)
        (placed,) = draft.commit()
    assert isinstance(placed, Placed)
    assert (placed.jobs, placed.tickets, placed.cause) == ([job.id for job in jobs], [0, 7, 0], "a try")
