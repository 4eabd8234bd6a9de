"""A gang goes on elsewhere: only if there is a place, which is kept for it until it is gone from the old one."""

from __future__ import annotations

import pytest
from stage_kit import settled

from muster.model import event, fact
from muster.model.group import Group
from muster.model.instruction import Start, Stop
from muster.model.job import BarKind
from muster.model.phase import Stopping, TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.model.spec import Needs, Spec
from muster.scheduler.moving import MOVED
from muster.testing.rig import Rig
from muster.units import MINUTE_MS, Resources
from muster.world.snapshot import digest, restore, snapshot

NODE = Resources(8, 64_000, 2**38)


def slots_of(rig: Rig, job: int = 1) -> list[int]:
    return sorted(lease.slot for lease in rig.run(job).leases)


def running(nodes: int = 5, gang: int = 2, **fields: object) -> Rig:
    """A gang with a node for each task, on the first nodes."""
    rig = Rig(nodes)
    rig.submit(8, gang=gang, **fields)
    rig.start(1)
    return rig


def refusal(rig: Rig, item: event.Event) -> Code:
    before = digest(rig.world)
    answer = rig.answer(item)
    assert isinstance(answer, Refused), answer
    assert digest(rig.world) == before, "a refusal changes nothing"
    return answer.reason.code


def test_it_stops_keeps_its_new_place_and_begins_anew_there() -> None:
    rig = running()
    outcome = rig.feed(event.MigrateJob(1, cause="ann"))
    assert [item for item in outcome.instructions if isinstance(item, Stop)], "with its grace"
    phase = rig.job(1).phase
    assert isinstance(phase, Stopping)
    assert phase.why == Why.MIGRATE
    assert sorted(lease.slot for lease in rig.world.claims[1].leases) == [2, 3]
    settled(rig)
    rival = rig.submit(8, gang=2)
    assert rig.phase(rival) == "Queued", "what is kept goes to nobody else"
    outcome = rig.exit(1, 143)
    assert slots_of(rig) == [2, 3]
    assert rig.run(1).epoch == 2, "what the old run still says is refused"
    assert [item for item in outcome.instructions if isinstance(item, Start) and item.job == 1]
    assert (rig.job(1).failures, rig.job(1).evicted) == (0, ())
    assert slots_of(rig, rival) == [0, 1], "the old place is anybody's"
    settled(rig)


def test_off_a_node_it_may_keep_the_others() -> None:
    rig = running(nodes=3)
    assert isinstance(rig.answer(event.MigrateJob(1, off=("node-1",))), Done)
    rig.exit(1, 143)
    assert slots_of(rig) == [0, 2]
    settled(rig)


def test_to_nodes_it_goes_there_and_nowhere_else() -> None:
    rig = running(nodes=6)
    rig.feed(event.MigrateJob(1, to=("node-5", "node-3", "node-4"), off=("node-4",)))
    rig.exit(1, 143)
    assert slots_of(rig) == [3, 5]
    assert not rig.feed(event.MigrateJob(1, to=("node-3", "node-5"))).facts, "it is there already"
    assert not rig.feed(event.MigrateJob(1, off=("node-0",))).facts, "it is not there"


def test_without_a_place_it_goes_on() -> None:
    rig = running(nodes=3)
    answer = rig.answer(event.MigrateJob(1))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.needed, answer.reason.available) == (Code.NO_PLACE_ELSEWHERE, 2, 1)
    assert refusal(rig, event.MigrateJob(1, to=("node-0", "node-2"), off=("node-0",))) == Code.NO_PLACE_ELSEWHERE
    rig.feed(event.BarNode("node-2", BarKind.CORDON, "op"))
    assert refusal(rig, event.MigrateJob(1, off=("node-0",))) == Code.NO_PLACE_ELSEWHERE
    assert rig.phase(1) == "Running"


def test_a_tenant_at_its_limit_moves_all_the_same() -> None:
    rig = Rig(4)
    rig.tenant("lab", gpus=16)
    rig.submit(8, gang=2, tenant="lab")
    rig.start(1)
    rig.feed(event.MigrateJob(1))
    rig.exit(1, 143)
    assert slots_of(rig) == [2, 3]
    settled(rig)


def test_if_its_new_place_closes_it_waits_like_everybody() -> None:
    rig = running(nodes=4)
    rig.feed(event.MigrateJob(1))
    rig.feed(event.NodeGone("node-2"))
    assert not rig.world.claims
    rig.exit(1, 143)
    assert rig.phase(1) == "Starting", "there is room elsewhere"
    settled(rig)


def test_who_does_not_go_loses_its_new_place() -> None:
    rig = running(nodes=4, grace_ms=MINUTE_MS)
    rig.feed(event.MigrateJob(1))
    rig.feed(after_ms=2 * MINUTE_MS)
    assert not rig.world.claims
    assert rig.phase(1) == "Stopping"
    settled(rig)


@pytest.mark.parametrize("item", [event.Cancel(1), event.HoldJob(1)])
def test_who_is_cancelled_or_held_on_the_way_keeps_nothing(item: event.Event) -> None:
    rig = running()
    rig.feed(event.MigrateJob(1))
    rig.feed(item)
    assert not rig.world.claims
    rig.exit(1, 143)
    assert rig.phase(1) == ("Cancelled" if isinstance(item, event.Cancel) else "Queued")
    settled(rig)


@pytest.mark.parametrize("lost", ["node-0", "node-1", "node-2", "node-3"])
def test_a_node_lost_on_the_way_leaves_it_whole(lost: str) -> None:
    rig = running(nodes=4)
    asked = rig.job(1).spec
    rig.feed(event.MigrateJob(1))
    rig.feed(event.NodeGone(lost))
    if rig.phase(1) == "Stopping":
        rig.exit(1, 143)
    rig.feed(event.NodeSeen(lost, NODE))
    rig.feed(after_ms=MINUTE_MS)
    assert (rig.phase(1), rig.job(1).spec) == ("Starting", asked)
    settled(rig)


def test_what_is_starting_moves_too_and_an_elastic_gang_with_what_it_needs() -> None:
    rig = Rig(2)
    rig.submit(8, gang=1)
    rig.feed(event.MigrateJob(1))
    rig.exit(1, 143)
    assert slots_of(rig) == [1]
    rig = Rig(4)
    rig.submit(8, gang=1, gang_most=3)
    rig.start(1, 0, 3)
    rig.feed(event.MigrateJob(1, off=("node-0", "node-1")))
    assert rig.world.claims[1].width == 1
    rig.exit(1, 143, 0, 3)
    assert rig.run(1).leases[0].slot in (2, 3), "what it gets besides may be anywhere"
    settled(rig)


def test_what_cannot_be_is_refused_and_changes_nothing() -> None:
    rig = running()
    rig.submit(1, array=3, held=True)
    assert refusal(rig, event.MigrateJob(9)) == Code.UNKNOWN_JOB
    assert refusal(rig, event.MigrateJob(2)) == Code.NOT_MOVABLE, "an array of which nothing runs"
    assert refusal(rig, event.MigrateJob(1, to=("nowhere",))) == Code.UNKNOWN_NODE
    assert refusal(rig, event.MigrateJob(1, to=("x",) * (event.NODES_MAX + 1))) == Code.TOO_LARGE
    rig.feed(event.HoldJob(1))
    assert refusal(rig, event.MigrateJob(1)) == Code.NOT_MOVABLE, "held"
    rig.feed(event.ReleaseJob(1), event.RequeueJob(1))
    assert refusal(rig, event.MigrateJob(1)) == Code.IS_STOPPING
    rig.exit(1, 143)
    rig.start(1)
    rig.exit(1)
    assert refusal(rig, event.MigrateJob(1)) == Code.ALREADY_OVER


def test_who_waits_or_minds_others_is_not_moved() -> None:
    rig = running(nodes=3)
    waiting = rig.submit(8, gang=3)
    assert refusal(rig, event.MigrateJob(waiting)) == Code.NOT_MOVABLE
    shy = rig.submit(1, name="shy", needs=Needs(apart=("default/shy",)))
    assert refusal(rig, event.MigrateJob(shy)) == Code.NOT_MOVABLE


DRIVER, WORKERS = Group("driver", 1, Resources(0, 4000, 2**30)), Group("worker", 2, Resources(8, 8000, 2**30))


def teamed(nodes: int = 5) -> Rig:
    """A driver beside the first of two workers, each of which has a node."""
    rig = Rig(nodes)
    spec = Spec(("train",), gang=3, needs=Needs(groups=(DRIVER, WORKERS)))
    assert isinstance(rig.answer(event.Submit(spec)), Done)
    rig.start(1, 0, 3)
    return rig


def test_a_gang_of_several_groups_moves_whole() -> None:
    rig = teamed()
    assert [(lease.slot, lease.tasks) for lease in rig.run(1).leases] == [(0, 1), (0, 1), (1, 1)]
    rig.tenant("default", gpus=16, cpu_milli=20_000)  # as much as it has: it is not charged twice
    rig.feed(event.MigrateJob(1, cause="ann"))
    claim = rig.world.claims[1]
    assert [(lease.slot, lease.tasks, lease.devices) for lease in claim.leases] == [(2, 1, 0), (2, 1, 255), (3, 1, 255)]
    assert (rig.world.fleet.claimed[2].amount.cpu_milli, rig.world.fleet.claimed[3].amount.cpu_milli) == (12_000, 8000)
    settled(rig)
    rival = rig.submit(8, gang=2, tenant="other")
    assert rig.phase(rival) == "Queued", "what is kept goes to nobody else"
    rig.feed(event.Exited(1, 1, 143, 0, 3))
    assert rig.run(1).leases == claim.leases
    assert (rig.run(1).epoch, rig.run(1).ticket) == (2, claim.ticket)
    assert slots_of(rig, rival) == [0, 1], "the old place is anybody's"
    settled(rig)


def test_of_several_groups_all_find_a_place_elsewhere_or_none_goes() -> None:
    rig = teamed(nodes=4)
    rig.submit(0, ask=Resources(0, 56_000, 2**30), gang=3)
    assert [rig.world.fleet.free(slot).cpu_milli for slot in range(4)] == [52_000, 0, 8000, 8000], "none for a driver"
    assert refusal(rig, event.MigrateJob(1)) == Code.NO_PLACE_ELSEWHERE


@pytest.mark.parametrize("lost", ["node-0", "node-2", "node-3"])
def test_a_node_lost_on_the_way_leaves_all_groups_whole(lost: str) -> None:
    rig = teamed()
    rig.feed(event.MigrateJob(1))
    rig.feed(event.NodeGone(lost))
    rig.feed(event.Exited(1, 1, 143, 0, 3))
    settled(rig)
    assert rig.phase(1) == "Starting"


def test_a_restored_world_moves_groups_alike() -> None:
    rig = teamed()
    rig.feed(event.MigrateJob(1))
    twin = type(rig.kernel)(restore(snapshot(rig.world)))
    assert digest(twin.world) == digest(rig.world)
    batch = [event.Exited(1, 1, 143, 0, 3)]
    assert rig.kernel.handle(batch, rig.now + 5).facts == twin.handle(batch, rig.now + 5).facts


def sweeping(nodes: int = 3, array: int = 6, **fields: object) -> Rig:
    """An array with four tasks on the first node and the others on the next one."""
    rig = Rig(nodes, gpus=4)
    rig.submit(1, array=array, **fields)
    rig.start(1, 0, array)
    return rig


def test_of_an_array_those_tasks_go_that_have_to() -> None:
    rig = sweeping()
    tasks = rig.world.arrays[1]
    assert tasks.slot.tolist() == [0, 0, 0, 0, 1, 1]
    outcome = rig.feed(event.MigrateJob(1, off=("node-1",), cause="ann"))
    assert [(item.first, item.count) for item in outcome.instructions if isinstance(item, Stop)] == [(4, 2)]
    assert (rig.world.claims[1].movers, rig.world.claims[1].tickets) == ((4, 5), (1, 1))
    settled(rig)
    rig.feed(event.Exited(1, 1, 143, 4, 1))
    assert tasks.counts[TaskPhase.QUEUED] == 1, "it waits for the other one"
    settled(rig)
    rig.feed(event.Exited(1, 1, 143, 5, 1))
    assert (tasks.slot.tolist(), tasks.epoch.tolist()) == ([0, 0, 0, 0, 2, 2], [1, 1, 1, 1, 2, 2])
    assert tasks.ticket.tolist() == [1] * 6, "as old as they were"
    assert tasks.failures == bytes(6)
    settled(rig)


def test_all_tasks_go_or_none() -> None:
    rig = sweeping()
    answer = rig.answer(event.MigrateJob(1))
    assert isinstance(answer, Refused)
    assert (answer.reason.code, answer.reason.needed, answer.reason.available) == (Code.NO_PLACE_ELSEWHERE, 6, 4)
    assert not rig.feed(event.MigrateJob(1, off=("node-2",))).facts, "none is there"
    rig.feed(event.MigrateJob(1, to=("node-2", "node-1")))
    assert refusal(rig, event.MigrateJob(1, off=("node-1",))) == Code.NOT_MOVABLE, "some move already"
    rig.feed(event.Exited(1, 1, 143, 0, 4))
    assert set(rig.world.arrays[1].slot) == {1, 2}
    settled(rig)


def test_tasks_of_a_tenant_at_its_limit_move_all_the_same() -> None:
    rig = Rig(3, gpus=4)
    rig.tenant("lab", gpus=4)
    rig.submit(1, array=8, tenant="lab")
    rig.start(1, 0, 4)
    rig.feed(event.MigrateJob(1))
    settled(rig)
    rig.feed(event.Exited(1, 1, 143, 0, 4))
    tasks = rig.world.arrays[1]
    assert (tasks.epoch.tolist(), tasks.counts[TaskPhase.QUEUED]) == ([2] * 4 + [0] * 4, 4)
    assert 0 not in tasks.slot[:4]
    settled(rig)


def test_a_waiting_task_gets_no_place_that_is_kept_for_another() -> None:
    rig = sweeping(nodes=2, array=9)
    tasks = rig.world.arrays[1]
    assert tasks.counts[TaskPhase.QUEUED] == 1
    rig.feed(event.Exited(1, 1, 0, 0, 3))
    assert tasks.slot.tolist() == [-1, -1, -1, 0, 1, 1, 1, 1, 0]
    rig.feed(event.MigrateJob(1, off=("node-1",)))
    assert tasks.counts[TaskPhase.STOPPING] == 0, "there is room for two of four"
    rig.feed(event.Exited(1, 1, 0, 4, 2))
    rig.feed(event.MigrateJob(1, off=("node-1",)))
    assert rig.world.claims[1].movers == (6, 7)
    rig.feed(event.NodeGone("node-0"))
    assert not rig.world.claims, "its new place closed"
    settled(rig)


@pytest.mark.parametrize("item", [event.Cancel(1), event.HoldJob(1), event.ScaleJob(1, 2)])
def test_an_array_that_changes_its_mind_on_the_way_keeps_nothing(item: event.Event) -> None:
    rig = sweeping()
    rig.feed(event.MigrateJob(1, off=("node-1",)))
    rig.feed(item)
    assert not rig.world.claims
    rig.feed(event.Exited(1, 1, 143, 4, 2))
    settled(rig)


def test_while_more_tasks_are_at_it_than_may_be_none_is_moved() -> None:
    """One that came to wait would be blocked, and its place kept for nobody."""
    rig = sweeping()
    rig.feed(event.ScaleJob(1, 5))
    assert refusal(rig, event.MigrateJob(1, off=("node-1",))) == Code.NOT_MOVABLE
    rig.feed(event.Exited(1, 1, 0, 0, 1))
    assert isinstance(rig.answer(event.MigrateJob(1, off=("node-1",))), Done)
    rig.feed(event.Exited(1, 1, 143, 4, 2))
    assert rig.world.arrays[1].slot[4:].tolist() == [0, 2]
    settled(rig)


@pytest.mark.parametrize("lost", ["node-0", "node-1", "node-2"])
def test_a_node_lost_on_the_way_leaves_every_task_there(lost: str) -> None:
    rig = sweeping()
    rig.feed(event.MigrateJob(1, off=("node-1",)))
    rig.feed(event.NodeGone(lost))
    rig.feed(event.Exited(1, 1, 143, 4, 2))
    settled(rig)
    counts = rig.world.arrays[1].counts
    assert counts[TaskPhase.QUEUED] + counts[TaskPhase.STARTING] + counts[TaskPhase.RUNNING] == 6


def test_a_restored_world_moves_tasks_alike() -> None:
    rig = sweeping()
    rig.feed(event.MigrateJob(1, off=("node-1",)))
    rig.feed(event.Exited(1, 1, 143, 4, 1))
    twin = type(rig.kernel)(restore(snapshot(rig.world)))
    batch = [event.Exited(1, 1, 143, 5, 1)]
    assert rig.kernel.handle(batch, rig.now + 5).facts == twin.handle(batch, rig.now + 5).facts


def test_a_restored_world_moves_alike() -> None:
    rig = running()
    facts = rig.feed(event.MigrateJob(1)).facts
    assert [item.cause for item in facts if isinstance(item, fact.Claimed)] == [MOVED]
    twin = type(rig.kernel)(restore(snapshot(rig.world)))
    batch = [event.Exited(1, 1, 143, 0, 2)]
    assert rig.kernel.handle(batch, rig.now + 5).facts == twin.handle(batch, rig.now + 5).facts
