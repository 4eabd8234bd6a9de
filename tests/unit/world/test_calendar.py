"""Ends: when leases will be given back at the latest, and in which order."""

from __future__ import annotations

import pytest

from muster.model.errors import InvariantError
from muster.scheduler.placing.fit import find_gang
from muster.testing.rig import Rig
from muster.world.calendar import Ends
from muster.world.draft import Draft
from muster.world.snapshot import restore, snapshot


def test_ends_come_in_order_and_of_equals_by_number() -> None:
    ends = Ends()
    for job, end in ((3, 20), (1, 20), (2, 10)):
        ends.add(job, end)
    assert list(ends) == [(10, 2), (20, 1), (20, 3)]
    assert (ends.find(1), ends.find(9), len(ends)) == (20, None, 3)
    twin = ends.fork()
    ends.remove(1)
    assert list(ends) == [(10, 2), (20, 3)]
    assert list(twin) == [(10, 2), (20, 1), (20, 3)]


def test_whoever_came_and_left_unasked_is_in_order_when_somebody_asks() -> None:
    ends = Ends()
    wanted = {job: 100 - job % 7 for job in range(60)}
    for job, end in wanted.items():
        ends.add(job, end)
    for others in ((3,), (5, 6), range(10, 40), (41, 42)):
        assert list(ends) == sorted((end, job) for job, end in wanted.items())
        for job in others:
            ends.remove(job)
            del wanted[job]
        for job in others[:1]:  # comes back, once as it was and once with another end
            wanted[job] = 50 + job % 2 * (50 - job % 7)
            ends.add(job, wanted[job])
            ends.add(100 + job, 1)
            ends.remove(100 + job)
    assert list(ends.fork()) == list(ends) == sorted((end, job) for job, end in wanted.items())


def test_what_has_no_end_is_not_taken_out() -> None:
    with pytest.raises(InvariantError, match="every run with a limit has its end"):
        Ends().remove(1)


def test_a_run_has_its_end_from_its_place_to_its_exit() -> None:
    rig = Rig(nodes=1)
    limited, unlimited = rig.submit(1, limit_ms=500), rig.submit(1)
    since = rig.run(limited).since
    assert list(rig.world.ends) == [(since + 500, limited)]
    rig.start(limited)
    assert list(rig.world.ends) == [(since + 500, limited)]
    assert list(restore(snapshot(rig.world)).ends) == list(rig.world.ends)
    rig.exit(limited)
    rig.exit(unlimited)
    assert list(rig.world.ends) == []


def test_a_draft_that_is_left_leaves_no_end() -> None:
    rig = Rig(nodes=1)
    rig.submit(8)
    job = rig.job(rig.submit(4, limit_ms=500))
    rig.exit(1)
    world = rig.world.fork()
    world.release(world.jobs[job.id], job, rig.now)
    assert list(world.ends) == []
    with Draft(world, rig.now) as draft:
        leases = find_gang(world.fleet, job.spec.ask, 1)
        assert leases is not None
        draft.place(job, leases)
        assert list(world.ends) == [(rig.now + 500, job.id)]
    assert list(world.ends) == []
