"""What people ask for: submit, cancel, name a tenant. A refusal changes nothing."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.instruction import Start, Stop
from muster.model.phase import TaskPhase
from muster.model.reason import Code, Done, Refused
from muster.model.spec import KEY_CHARS_MAX
from muster.model.tenant import GPU, GPU_ONE, Tenant, limits
from muster.testing.rig import Rig, spec
from muster.world.snapshot import digest


def refusal(rig: Rig, item: event.Event) -> Code:
    """The code of a refusal, after a look that nothing changed."""
    before, seq = digest(rig.world), rig.world.seq
    outcome = rig.feed(item)
    answer = outcome.answers[0]
    assert isinstance(answer, Refused), answer
    assert digest(rig.world) == before
    assert rig.world.seq == seq
    assert outcome.facts == []
    return answer.reason.code


def test_a_submit_is_accepted_placed_and_started_in_one_batch() -> None:
    rig = Rig(nodes=1)
    outcome = rig.feed(event.Submit(spec(2, name="train"), cause="me"))
    assert [type(item).__name__ for item in outcome.facts] == ["Accepted", "Placed"]
    assert outcome.answers == [Done(1)]
    assert outcome.instructions == [Start(1, 1, spec(2, name="train"), 0, ["node-0"], [1], [0b11])]


def test_a_submit_without_nodes_can_never_fit() -> None:
    assert refusal(Rig(), event.Submit(spec())) == Code.NEVER_FITS


@pytest.mark.parametrize(("gpus", "gang"), [(9, 1), (8, 2), (1, 9)])
def test_a_submit_that_the_fleet_could_never_hold_is_refused(gpus: int, gang: int) -> None:
    assert refusal(Rig(nodes=1), event.Submit(spec(gpus, gang=gang))) == Code.NEVER_FITS


def test_a_submit_that_the_quota_could_never_hold_is_refused() -> None:
    rig = Rig(nodes=2)
    rig.tenant("lab", gpus=4)
    assert refusal(rig, event.Submit(spec(5, tenant="lab"))) == Code.NEVER_WITHIN_QUOTA
    assert refusal(rig, event.Submit(spec(1, tenant="lab", gang=5))) == Code.NEVER_WITHIN_QUOTA


def test_a_fleet_that_is_silent_still_counts() -> None:
    rig = Rig(nodes=1)
    rig.feed(event.NodeGone("node-0"))
    job = rig.submit(8)
    assert rig.phase(job) == "Queued"


def test_a_faulty_spec_is_refused() -> None:
    assert refusal(Rig(nodes=1), event.Submit(spec(command=()))) == Code.BAD_SPEC


def test_a_key_makes_a_repeat_harmless() -> None:
    rig = Rig(nodes=1)
    first = rig.answer(event.Submit(spec(), "k"))
    assert rig.answer(event.Submit(spec(), "k")) == first
    assert rig.world.accepted == 1
    assert rig.feed(event.Submit(spec(), "k2"), event.Submit(spec(), "k2")).answers == [Done(2), Done(2)]


def test_a_key_is_per_tenant_and_belongs_to_one_spec() -> None:
    rig = Rig(nodes=1)
    rig.answer(event.Submit(spec(), "k"))
    assert rig.answer(event.Submit(spec(tenant="other"), "k")) == Done(2)
    assert refusal(rig, event.Submit(spec(2), "k")) == Code.KEY_REUSED
    assert refusal(rig, event.Submit(spec(), "k" * (KEY_CHARS_MAX + 1))) == Code.TOO_LARGE


def test_a_cancel_ends_what_waits_at_once() -> None:
    rig = Rig(nodes=1)
    rig.submit(8)
    job = rig.submit(8)
    outcome = rig.feed(event.Cancel(job))
    assert rig.phase(job) == "Cancelled"
    assert outcome.instructions == []


def test_a_cancel_stops_what_holds_a_place_and_waits_for_the_engine() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(8, gang=2, grace_ms=7)
    outcome = rig.feed(event.Cancel(job))
    assert rig.phase(job) == "Stopping"
    assert outcome.instructions == [Stop(job, 1, 0, 2, 7)]
    assert rig.world.ledger.held("default", GPU) == 16 * GPU_ONE
    rig.exit(job, 143)
    assert rig.phase(job) == "Cancelled"
    assert rig.world.ledger.holdings() == {}


def test_a_cancel_can_be_said_twice() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.feed(event.Cancel(job))
    assert rig.answer(event.Cancel(job)) == Done(job)
    rig.exit(job, 143)
    assert refusal(rig, event.Cancel(job)) == Code.ALREADY_OVER


@pytest.mark.parametrize("number", [0, -1, 99, 2**62])
def test_a_cancel_of_nobody_is_refused(number: int) -> None:
    assert refusal(Rig(nodes=1), event.Cancel(number)) == Code.UNKNOWN_JOB


def test_a_cancelled_array_ends_with_the_last_of_its_tasks() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(4, array=5)
    outcome = rig.feed(event.Cancel(job))
    assert outcome.instructions == [Stop(job, 1, 0, 2, 10_000)]
    rig.feed(event.Exited(job, 1, 143, 0, 1))
    assert rig.phase(job) == "Spread"
    rig.feed(event.Exited(job, 1, 0, 1, 1))
    assert rig.phase(job) == "Cancelled"
    assert rig.world.arrays[job].counts[TaskPhase.CANCELLED] == 5


def test_a_tenant_is_set_once_and_said_once() -> None:
    rig = Rig()
    lab = Tenant(lines=limits(gpus=4))
    assert rig.feed(event.SetTenant("lab", lab)).facts == [fact.TenantSet("lab", lab)]
    assert rig.feed(event.SetTenant("lab", lab)).facts == []


def test_a_smaller_quota_takes_nothing_away() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(4, tenant="lab")
    waiting = rig.submit(4, tenant="lab", gang=2)
    rig.tenant("lab", gpus=0)
    assert rig.phase(job) == "Starting"
    rig.exit(job)
    assert rig.phase(waiting) == "Queued"
