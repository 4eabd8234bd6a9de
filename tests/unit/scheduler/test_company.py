"""Company: jobs that are to be apart from others, or beside them, on one node, in one rack or wider."""

from __future__ import annotations

from typing import Any

import pytest

from muster.model import event
from muster.model.errors import InvariantError
from muster.model.node import Place, Traits
from muster.model.reason import Code, Refused
from muster.model.spec import Needs, Spec
from muster.scheduler.placing.fit import count_room, find_gang, find_tasks, widest_capacity, widest_room
from muster.scheduler.reasons import explain
from muster.simulator.inspector import check_nobody_overslept
from muster.testing.planted import PLANTED
from muster.testing.rig import Rig, spec
from muster.units import Resources
from muster.world.laws.invariants import check_world
from muster.world.snapshot import restore, snapshot

ASK = Resources(1, 1000, 2**30)


def make_rig() -> Rig:
    """Four nodes in two racks: 0 and 1, 2 and 3."""
    rig = Rig()
    for number in range(4):
        traits = Traits(place=Place("eu", "a", "b", f"r{number // 2}"))
        rig.feed(event.NodeSeen(f"n{number}", Resources(4, 32_000, 2**36), traits=traits))
    return rig


def submit(rig: Rig, **fields: Any) -> int:
    answer = rig.answer(event.Submit(spec(tenant="t", **fields)))
    assert not isinstance(answer, Refused), answer
    return answer.job


def slots_of(rig: Rig, job: int) -> list[int]:
    return [slot for slot, here in sorted(rig.world.fleet.holders.items()) if job in here]


def test_replicas_that_are_apart_from_their_own_name_are_on_different_nodes() -> None:
    rig = make_rig()
    jobs = [submit(rig, name="web", needs=Needs(apart=("t/web",))) for _ in range(5)]
    assert [slots_of(rig, job) for job in jobs] == [[0], [1], [2], [3], []]
    waiting = explain(rig.world, rig.world.jobs[jobs[4]])
    assert waiting is not None
    assert waiting.reason.code == Code.NO_ROOM
    assert waiting.reason.detail == "4 of 4 nodes ruled out by apart = t/web"
    rig.feed(event.Exited(jobs[2], 1, 0))
    assert slots_of(rig, jobs[4]) == [2], "whoever leaves wakes who waited for that"
    check_world(rig.world)


def test_apart_on_a_rack_rules_out_all_of_it() -> None:
    rig = make_rig()
    submit(rig, name="web")
    gang = submit(rig, gang=2, needs=Needs(apart=("t/web",), apart_level="rack"))
    assert slots_of(rig, gang) == [2]
    wide = submit(rig, needs=Needs(apart=("t/web",), apart_level="cluster"))
    assert slots_of(rig, wide) == []


def test_beside_waits_for_company_and_starts_with_it() -> None:
    rig = make_rig()
    near = submit(rig, gang=2, ask=Resources(4), needs=Needs(beside=("t/web",), beside_level="rack", spread="node"))
    assert slots_of(rig, near) == []
    web = submit(rig, name="web", ask=Resources(cpu_milli=1000))
    rig.feed()
    assert slots_of(rig, web) == [0]
    assert slots_of(rig, near) == [0, 1]
    check_world(rig.world)


def test_company_that_wakes_nobody_is_found() -> None:
    rig = make_rig()
    submit(rig, name="web", needs=Needs(beside=("t/data",)))
    with PLANTED["company_wakes_nobody"]():
        submit(rig, name="data")
    with pytest.raises(InvariantError, match="nobody who could start is asleep"):
        check_nobody_overslept(rig.world)


def test_every_search_minds_the_company_and_leaves_the_index_as_it_was() -> None:
    rig = make_rig()
    submit(rig, name="web")
    submit(rig, needs=Needs(apart=("t/web",)))
    fleet, needs = rig.world.fleet, Needs(apart=("t/web",))
    assert count_room(fleet, ASK) == count_room(fleet, ASK, needs) + fleet.free(0).gpus
    assert {lease.slot for lease in find_tasks(fleet, ASK, 99, needs)} == {1, 2, 3}
    assert widest_room(fleet, ASK, 99, needs) == widest_room(fleet, ASK, 99) - fleet.free(0).gpus
    assert widest_capacity(fleet, ASK, 99, needs) == 16, "what could be is not ruled out by who is there"
    assert find_gang(fleet, ASK, 99, needs) is None
    assert fleet.find_index_fault() is None


def test_company_survives_a_restore_and_a_fork() -> None:
    rig = make_rig()
    submit(rig, name="web", array=6)
    submit(rig, needs=Needs(beside=("t/web",)))
    kept = rig.world.fleet.company.by_name
    assert kept == {"t/web": {0: 4, 1: 2}}
    for twin in (restore(snapshot(rig.world)), rig.world.fork()):
        assert twin.fleet.company.by_name == kept
        check_world(twin)


@pytest.mark.parametrize(
    ("levels", "fits"),
    [(("node", "node"), False), (("rack", "node"), False), (("node", "rack"), True), (("cluster", "rack"), False)],
)
def test_apart_and_beside_one_job_is_refused_unless_apart_is_narrower(levels: tuple[str, str], fits: bool) -> None:
    rig = make_rig()
    needs = Needs(apart=("t/web",), apart_level=levels[0], beside=("t/web",), beside_level=levels[1])
    answer = rig.answer(event.Submit(spec(tenant="t", needs=needs)))
    assert isinstance(answer, Refused) != fits
    if isinstance(answer, Refused):
        assert answer.reason.code == Code.NEVER_FITS
        assert "ruled out by apart = t/web" in answer.reason.detail


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ({"needs": Needs(apart=("other/web",))}, "needs.apart"),
        ({"needs": Needs(apart=("t/web",), apart_level="shelf")}, "needs.apart_level"),
        ({"needs": Needs(beside=("t/..",) * 17)}, "needs.beside"),
        ({"needs": Needs(beside=("t/a b",))}, "needs.beside"),
        ({"name": "web", "needs": Needs(beside=("t/web",))}, "needs.beside"),
        ({"name": "web", "array": 3, "needs": Needs(apart=("t/web",))}, "needs.apart"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], subject: str) -> None:
    asked: Spec = spec(tenant="t", **fields)
    answer = make_rig().answer(event.Submit(asked))
    assert isinstance(answer, Refused)
    assert answer.reason.subject == subject
