"""Drafts: how what was placed is said, and what a draft that is left leaves behind."""

from __future__ import annotations

from muster.model.fact import Placed, TasksPlaced
from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.model.ranges import as_ranges
from muster.scheduler.placing.fit import find_gang, find_tasks
from muster.testing.rig import Rig
from muster.world.draft import Draft
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest
from muster.world.world import World


def empty_world(rig: Rig) -> tuple[World, list[Job]]:
    """A node that was full is empty, and whoever waited for it still does."""
    full = rig.submit(8 - rig.world.tickets)
    jobs = [rig.job(rig.submit(2)) for _ in range(3)]
    rig.exit(full)
    world = rig.world.fork()
    for job in jobs:
        world.release(world.jobs[job.id], job, rig.now)
    return world, jobs


def place(world: World, draft: Draft, job: Job, claim: int = 0) -> None:
    leases = find_gang(world.fleet, job.spec.ask, 1)
    assert leases is not None
    draft.place(job, leases, claim)


def test_gangs_in_a_row_are_one_fact_and_who_came_by_a_claim_has_its_ticket() -> None:
    rig = Rig(nodes=1)
    world, jobs = empty_world(rig)
    with Draft(world, rig.now, "a try") as draft:
        for job, claim in zip(jobs, (0, 7, 0), strict=True):
            place(world, draft, job, claim)
        (placed,) = draft.commit()
    assert isinstance(placed, Placed)
    assert (placed.jobs, placed.tickets, placed.cause) == ([job.id for job in jobs], [0, 7, 0], "a try")


def test_whoever_is_placed_is_in_the_account_and_among_the_runs_before_it_is_said() -> None:
    world, jobs = empty_world(Rig(nodes=1))
    runs = world.know_runs()
    with Draft(world, world.now) as draft:
        place(world, draft, jobs[0])
        assert list(runs.content()) == [jobs[0].id]
        place(world, draft, jobs[1])
        (placed,) = draft.commit()
    assert isinstance(placed, Placed)
    assert placed.jobs == [jobs[0].id, jobs[1].id]
    check_world(world)  # no device is idle and held, and the runs are those of the jobs


def test_a_draft_that_is_left_takes_back_all_that_was_written_down() -> None:
    world, jobs = empty_world(Rig(nodes=1))
    world.know_runs()
    before = digest(world)
    with Draft(world, world.now) as draft:
        place(world, draft, jobs[0])
        place(world, draft, jobs[1])
        assert digest(world) != before
    assert digest(world) == before
    check_world(world)


def test_gangs_before_and_after_tasks_of_an_array_are_facts_of_their_own() -> None:
    rig = Rig(nodes=1)
    rig.submit(1, array=1)
    world, jobs = empty_world(rig)
    tasks = world.jobs[1]
    world.release_tasks(tasks, as_ranges(0, 1), TaskPhase.QUEUED, rig.now)
    with Draft(world, world.now) as draft:
        place(world, draft, jobs[0])
        draft.place_tasks(tasks, 0, find_tasks(world.fleet, tasks.spec.ask, 1))
        place(world, draft, jobs[1])
        first, between, last = draft.commit()
    assert isinstance(first, Placed)
    assert isinstance(between, TasksPlaced)
    assert isinstance(last, Placed)
    assert (first.jobs, between.job, last.jobs) == ([jobs[0].id], 1, [jobs[1].id])
