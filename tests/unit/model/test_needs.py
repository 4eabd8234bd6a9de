"""Where a job wants to run is checked by itself: levels, names, and what contradicts what."""

from __future__ import annotations

import pytest

from muster.model.event import NodeGone, NodeSeen, Submit
from muster.model.node import Place, Spot, Traits
from muster.model.phase import Queued, Starting
from muster.model.reason import Code, Refused
from muster.model.spec import Needs, find_fault
from muster.testing.rig import Rig, spec
from muster.units import Resources


@pytest.mark.parametrize(
    ("gang", "needs", "code", "subject"),
    [
        (2, Needs(within="row"), Code.BAD_SPEC, "needs.within"),
        (2, Needs(near="cluster", within="rack"), Code.BAD_SPEC, "needs.near"),
        (2, Needs(spread="rack", within="rack"), Code.BAD_SPEC, "needs.spread"),
        (2, Needs(spread="node", spread_most=0), Code.BAD_AMOUNT, "needs.spread_most"),
        (5, Needs(slice="rack", slice_tasks=2), Code.BAD_SPEC, "needs.slice_tasks"),
        (4, Needs(slice="rack", slice_tasks=0), Code.BAD_SPEC, "needs.slice_tasks"),
        (1, Needs(flavors=("a b",)), Code.BAD_NAME, "needs.flavors"),
        (4, Needs(shape=(2, 2)), Code.BAD_AMOUNT, "needs.shape"),
        (1, Needs(shape=(0, 2, 2)), Code.BAD_AMOUNT, "needs.shape"),
        (8, Needs(shape=(99, 99, 99)), Code.BAD_AMOUNT, "needs.shape"),
        (8, Needs(shape=(2, 2, 1)), Code.BAD_SPEC, "gang"),
        (4, Needs(shape=(2, 2, 1), within="rack"), Code.BAD_SPEC, "needs.shape"),
        (1, Needs(labels=("zone=a=b",)), Code.BAD_NAME, "needs.labels"),
        (1, Needs(tolerates=tuple(f"t{number}" for number in range(17))), Code.TOO_LARGE, "needs.tolerates"),
    ],
)
def test_needs_that_make_no_sense_are_refused(gang: int, needs: Needs, code: Code, subject: str) -> None:
    fault = find_fault(spec(1, gang=gang, needs=needs))
    assert fault is not None
    assert (fault.code, fault.subject) == (code, subject)


@pytest.mark.parametrize(
    ("ask", "gang"),
    [(Resources(1, gpu_milli=500), 1), (Resources(gpu_milli=1000), 1), (Resources(gpu_milli=500), 2)],
)
def test_a_share_is_of_one_device_for_one_task(ask: Resources, gang: int) -> None:
    assert find_fault(spec(ask=ask, gang=gang)) is not None


def fleet_of_two_zones() -> Rig:
    rig = Rig()
    for number in range(5):
        place = Place(cluster=f"c{min(number // 2, 1)}", rack=f"r{number}")
        traits = Traits(
            "h100" if number else "a100", place, (("zone", "ab"[number % 2]),), ("spot",) if number == 3 else ()
        )
        rig.feed(NodeSeen(f"node-{number}", Resources(8, 64_000, 2**38), traits=traits))
    return rig


@pytest.mark.parametrize(
    ("gang", "needs", "ruled_out_by"),
    [
        (2, Needs(within="rack"), "within = rack"),
        (2, Needs(flavors=("a100",)), "flavors = a100"),
        (1, Needs(labels=("zone=c",)), "labels = zone=c"),
        (1, Needs(flavors=("tpu-v5p",)), "flavors = tpu-v5p"),
    ],
)
def test_what_never_fits_is_told_which_need_rules_it_out(gang: int, needs: Needs, ruled_out_by: str) -> None:
    rig = fleet_of_two_zones()
    answer = rig.answer(Submit(spec(8, gang=gang, needs=needs)))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.NEVER_FITS
    assert ruled_out_by in answer.reason.detail
    assert not rig.world.jobs
    assert not rig.world.fleet.mentioned, "a refusal changes nothing"


def test_a_label_is_obeyed_and_splits_pools_by_a_fact() -> None:
    rig = fleet_of_two_zones()
    pools = len(rig.world.fleet.pools)
    job = rig.submit(8, needs=Needs(labels=("zone=b",)))
    assert [lease.slot for lease in rig.run(job).leases] == [1]
    assert rig.world.fleet.mentioned == {"zone"}
    assert len(rig.world.fleet.pools) >= pools


def test_a_taint_keeps_off_whoever_does_not_tolerate_it() -> None:
    rig = fleet_of_two_zones()
    jobs = [rig.submit(8) for _ in range(5)]
    assert rig.phase(jobs[4]) == "Queued"
    brave = rig.submit(8, needs=Needs(tolerates=("spot",)))
    assert [lease.slot for lease in rig.run(brave).leases] == [3]


def test_flavors_are_tried_in_their_order() -> None:
    rig = fleet_of_two_zones()
    jobs = [rig.submit(8, needs=Needs(flavors=("a100", "h100"))) for _ in range(2)]
    assert [rig.world.fleet.flavor(rig.run(job).leases[0].slot) for job in jobs] == ["a100", "h100"]


def test_a_label_with_a_value_per_node_is_refused() -> None:
    rig = Rig()
    for number in range(70):
        rig.feed(NodeSeen(f"n{number}", Resources(1, 1000), traits=Traits(labels=(("host", f"n{number}"),))))
    answer = rig.answer(Submit(spec(ask=Resources(1), needs=Needs(labels=("host=n3",)))))
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.LABEL_TOO_FINE
    assert answer.reason.needed == 70


def test_shares_of_a_device_run_side_by_side_and_give_back() -> None:
    rig = Rig(nodes=1, gpus=1)
    half = Resources(cpu_milli=1000, gpu_milli=500)
    first, second, third = (rig.submit(ask=half) for _ in range(3))
    assert [rig.phase(job) for job in (first, second, third)] == ["Starting", "Starting", "Queued"]
    assert rig.run(first).leases[0].devices == rig.run(second).leases[0].devices == 1
    rig.exit(first)
    assert rig.phase(third) == "Starting"
    sweep = rig.submit(ask=Resources(cpu_milli=1, gpu_milli=250), array=6)
    for job in (second, third):
        rig.exit(job)
    assert list(rig.world.arrays[sweep].slot).count(0) == 4


@pytest.mark.parametrize(
    ("spot", "code", "subject"),
    [
        (Spot("a b", (2, 2, 2), (0, 0, 0)), Code.BAD_NAME, "torus"),
        (Spot("t", (2, 0, 2), (0, 0, 0)), Code.BAD_AMOUNT, "torus size"),
        (Spot("t", (64, 64, 64), (0, 0, 0)), Code.BAD_AMOUNT, "torus size"),
        (Spot("t", (2, 2, 2), (0, 2, 0)), Code.BAD_AMOUNT, "spot"),
    ],
)
def test_a_spot_that_no_torus_has_is_refused(spot: Spot, code: Code, subject: str) -> None:
    rig = Rig()
    (answer,) = rig.feed(NodeSeen("node-0", Resources(8, 64_000, 2**38), traits=Traits(spot=spot))).answers
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.subject) == (code, subject)


def test_a_box_that_no_torus_holds_is_refused_with_its_shape() -> None:
    rig = Rig()
    for number in range(8):
        spot = Spot("t", (2, 2, 2), (number // 4, number // 2 % 2, number % 2))
        rig.feed(NodeSeen(f"node-{number}", Resources(8, 64_000, 2**38), traits=Traits(spot=spot)))
    (answer,) = rig.feed(Submit(spec(8, gang=4, needs=Needs(shape=(4, 1, 1))))).answers
    assert isinstance(answer, Refused)
    assert answer.reason.code == Code.NEVER_FITS
    assert answer.reason.detail == "ruled out by shape = 4, 1, 1"


def test_a_node_that_takes_the_spot_of_one_that_is_gone_completes_the_torus() -> None:
    rig = Rig()
    for number in range(2):
        rig.feed(NodeSeen(f"node-{number}", Resources(8, 64_000, 2**38), traits=_in_a_row(number)))
    rig.feed(NodeGone("node-1"))
    job = rig.submit(8, gang=2, needs=Needs(shape=(2, 1, 1)))
    assert isinstance(rig.job(job).phase, Queued)
    rig.feed(NodeSeen("node-9", Resources(8, 64_000, 2**38), traits=_in_a_row(1)))
    assert isinstance(rig.job(job).phase, Starting)


def _in_a_row(at: int) -> Traits:
    return Traits(spot=Spot("t", (2, 1, 1), (at, 0, 0)))
