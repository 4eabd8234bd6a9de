"""What engines report of nodes: silence kills nothing, a fence loses everything, a return makes two views one."""

from __future__ import annotations

import pytest

from muster.model import event, fact
from muster.model.instruction import Start, Stop
from muster.model.job import NodePhase
from muster.model.node import CAPACITY_MAX, DEVICES_MAX
from muster.model.phase import Stopping, TaskPhase, Why
from muster.model.reason import Code, Done, Refused
from muster.testing.rig import Rig
from muster.units import AMOUNT_MAX, Resources

NODE = Resources(8, 64_000, 2**38)


def seen(name: str, *held: event.Held, capacity: Resources = NODE) -> event.NodeSeen:
    return event.NodeSeen(name, capacity, held)


def test_a_node_joins_once() -> None:
    rig = Rig(nodes=1)
    assert rig.world.fleet.names == ["node-0"]
    assert rig.feed(seen("node-0")).facts == []


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (seen("no good name"), Code.BAD_NAME),
        (seen(""), Code.BAD_NAME),
        (seen("n", capacity=Resources(DEVICES_MAX + 1)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(-1)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(8)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(cpu_milli=-1)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(cpu_milli=10**9 + 1)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(cpu_milli=1, memory_bytes=-1)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(cpu_milli=1, memory_bytes=AMOUNT_MAX)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(cpu_milli=1, gpu_milli=500)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(cpu_milli=1, disk_bytes=-1)), Code.BAD_AMOUNT),
        (seen("n", capacity=Resources(cpu_milli=1, network_mbps=-1)), Code.BAD_AMOUNT),
        (event.NodeSilent("nobody"), Code.UNKNOWN_NODE),
        (event.NodeGone("nobody"), Code.UNKNOWN_NODE),
    ],
    ids=str,
)
def test_what_is_refused(item: event.Event, code: Code) -> None:
    rig = Rig(nodes=1)
    outcome = rig.feed(item)
    answer = outcome.answers[0]
    assert isinstance(answer, Refused)
    assert answer.reason.code == code
    assert outcome.facts == []


def test_the_largest_node_and_the_smallest_may_join() -> None:
    rig = Rig()
    assert rig.answer(seen("big", capacity=Resources(*CAPACITY_MAX.values()))) == Done()
    assert rig.answer(seen("small", capacity=Resources(cpu_milli=1))) == Done()
    job = rig.submit(DEVICES_MAX)
    assert rig.run(job).leases[0].devices == 2**DEVICES_MAX - 1


def test_nothing_new_goes_to_a_silent_node_and_nothing_is_taken_from_it() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.start(job)
    rig.feed(event.NodeSilent("node-0"))
    waiting = rig.submit()
    assert rig.phase(job) == "Running"
    assert rig.phase(waiting) == "Queued"
    rig.feed(seen("node-0", event.Held(job, 1, 0, 1)))
    assert rig.phase(job) == "Running"
    assert rig.phase(waiting) == "Starting"


def test_a_fenced_node_loses_its_work() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(8)
    rig.start(job)
    outcome = rig.feed(event.NodeGone("node-0"))
    kinds = [type(item).__name__ for item in outcome.facts]
    assert kinds == ["NodePhased", "Requeued", "Placed"]
    assert rig.run(job).leases[0].slot == 1
    assert rig.job(job).failures == 0, "a loss is nobody's failure"


def test_a_node_may_be_said_to_be_gone_twice() -> None:
    rig = Rig(nodes=1)
    rig.feed(event.NodeGone("node-0"))
    assert rig.feed(event.NodeGone("node-0"), event.NodeSilent("node-0")).facts == []
    assert rig.world.fleet.phase[0] == NodePhase.GONE


def test_a_gang_that_loses_a_rank_stops_before_it_waits_again() -> None:
    rig = Rig(nodes=3)
    job = rig.submit(8, gang=3)
    rig.start(job)
    outcome = rig.feed(event.NodeGone("node-1"))
    phase = rig.job(job).phase
    assert isinstance(phase, Stopping)
    assert phase.why == Why.LOST
    assert Stop(job, 1, 0, 3, 10_000) in outcome.instructions
    rig.exit(job, 143, 0, 1)
    assert rig.phase(job) == "Stopping"
    rig.exit(job, 143, 2, 1)
    assert rig.phase(job) == "Queued"


def test_a_cancelled_gang_that_loses_its_node_is_cancelled() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(8)
    rig.feed(event.Cancel(job))
    rig.feed(event.NodeGone("node-0"))
    assert rig.phase(job) == "Cancelled"


def test_what_a_node_should_run_and_does_not_hold_is_lost() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    rig.start(job)
    rig.feed(seen("node-0"))
    assert rig.job(job).epoch == 2


def test_what_a_node_may_not_have_heard_is_said_again() -> None:
    rig = Rig(nodes=1)
    starting = rig.submit(2)
    stopping = rig.submit(2)
    rig.feed(event.Cancel(stopping))
    outcome = rig.feed(seen("node-0"))
    assert outcome.facts == []
    assert [(type(item), item.job) for item in outcome.instructions] == [(Start, starting), (Stop, stopping)]


def test_a_start_said_again_carries_the_tasks_and_devices_of_that_node() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(4, array=4)
    outcome = rig.feed(seen("node-1"))
    (start,) = outcome.instructions
    assert isinstance(start, Start)
    assert (start.job, start.first, start.nodes, start.counts, start.devices) == (job, 2, ["node-1"], [2], [255])


def test_ranks_that_are_over_are_fenced_before_a_start_is_said_again() -> None:
    rig = Rig(nodes=2)
    job = rig.submit(8, gang=2)
    rig.exit(job, 0, 0, 1)
    outcome = rig.feed(seen("node-1"))
    assert [type(item) for item in outcome.instructions] == [Stop, Start]
    assert outcome.instructions[0] == Stop(job, 1, 0, 1, 10_000)


def test_what_a_node_holds_and_nobody_wants_is_fenced() -> None:
    rig = Rig(nodes=1)
    outcome = rig.feed(seen("node-0", event.Held(77, 3, 2, 5)))
    assert outcome.instructions == [Stop(77, 3, 2, 5, 0)]


def test_of_a_run_that_is_wanted_only_the_unwanted_tasks_are_fenced() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=8)
    rig.feed(event.Started(job, 1, 0, 8))
    rig.feed(event.Exited(job, 1, 0, 2, 3))
    outcome = rig.feed(seen("node-0", event.Held(job, 1, 0, 8)))
    assert outcome.instructions == [Stop(job, 1, 2, 3, 0)]
    assert outcome.facts == []


def test_a_partial_inventory_loses_the_rest() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(1, array=8)
    rig.feed(event.Started(job, 1, 0, 8))
    outcome = rig.feed(seen("node-0", event.Held(job, 1, 1, 2), event.Held(job, 1, 5, 1)))
    ended = [(item.first, item.count) for item in outcome.facts if isinstance(item, fact.TasksEnded)]
    assert ended == [(0, 1), (3, 2), (6, 2)]
    assert rig.world.arrays[job].counts[TaskPhase.RUNNING] == 3


def test_a_new_capacity_is_taken_over_when_nothing_runs_there() -> None:
    rig = Rig(nodes=1)
    job = rig.submit()
    large = Resources(16, 64_000, 2**38)
    rig.feed(seen("node-0", event.Held(job, 1, 0, 1), capacity=large))
    assert rig.world.fleet.capacity(0) == NODE
    rig.exit(job)
    rig.feed(seen("node-0", capacity=large))
    assert rig.world.fleet.capacity(0) == large
