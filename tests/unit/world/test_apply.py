"""apply makes facts true and refuses none; what contradicts the world is a bug of ours."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.errors import InvariantError
from muster.model.phase import Running, TaskPhase
from muster.model.spec import RETRIES_MAX
from muster.testing.rig import Rig, spec
from muster.world.apply import APPLY, apply, apply_entry
from muster.world.world import World


def test_every_kind_of_fact_has_its_function() -> None:
    assert set(APPLY) == set(fact.Fact.__args__)


def test_a_gang_runs_once_no_rank_is_still_to_come() -> None:
    """The first rank is up, the second is over before anybody said that it was up."""
    rig = Rig(nodes=2)
    job = rig.submit(8, gang=2, limit_ms=1000)
    rig.start(job, 0, 1)
    assert rig.phase(job) == "Starting"
    rig.exit(job, 0, 1, 1)
    assert isinstance(rig.job(job).phase, Running)
    assert rig.outcomes[-1].wake_at == rig.now + 1000, "the limit counts from now"


def test_an_array_task_may_fail_as_often_as_it_may_be_retried() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=1, retries=RETRIES_MAX)
    for epoch in range(1, RETRIES_MAX + 1):
        rig.feed(event.Exited(job, epoch, 1, 0, 1))
    assert rig.world.arrays[job].failures[0] == RETRIES_MAX
    rig.feed(event.Exited(job, RETRIES_MAX + 1, 1, 0, 1))
    assert rig.phase(job) == "Failed"


def test_entries_follow_each_other() -> None:
    world = World()
    apply_entry(world, 1, 10, [])
    for seq, at in ((1, 11), (3, 11), (2, 9)):
        with pytest.raises(InvariantError):
            apply_entry(world, seq, at, [])
    apply_entry(world, 2, 10, [])


def test_what_holds_no_place_cannot_run() -> None:
    world = World()
    apply(world, fact.Accepted(1, spec()), 0)
    with pytest.raises(InvariantError):
        apply(world, fact.Began(1, 0, 1), 0)
    with pytest.raises(InvariantError):
        apply(world, fact.StopAsked(1, "cancel"), 0)  # type: ignore[arg-type]  # a wrong fact, on purpose


def test_a_cancelled_array_keeps_what_holds_a_place() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=10)
    rig.feed(event.Cancel(job))
    counts = rig.world.arrays[job].counts
    assert counts[TaskPhase.STOPPING] == 8
    assert counts[TaskPhase.CANCELLED] == 2
