"""Every law bites: a healthy world passes, and each kind of damage to it is named."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from muster.lifecycle.gang import TABLE
from muster.model import event, fact
from muster.model.errors import InvariantError
from muster.model.job import Bar, BarKind, NodePhase
from muster.model.node import Lack
from muster.model.phase import Queued, TaskPhase, Why
from muster.model.tenant import Tenant, limits
from muster.testing.rig import Rig, spec
from muster.units import Resources
from muster.wire.codec import encode_entry
from muster.world.arena import AT_NODES, AT_POOLS, FREE_CPU, PARTS, POOL_PLANES
from muster.world.audit.auditor import Auditor
from muster.world.index import shelve
from muster.world.laws.invariants import check_same, check_world, fold
from muster.world.queue import OVER
from muster.world.world import World


def healthy() -> World:
    """Two gangs that hold places, an array in two phases, one who waits, one with a key, one over, a barred node."""
    rig = Rig(nodes=3)
    rig.tenant("a", gpus=20)
    rig.submit(8, gang=2)
    rig.submit(1, array=6, tenant="a")
    rig.submit(2, limit_ms=10**6)
    rig.submit(8)
    rig.feed(event.Submit(spec(1, gang=3), "key"))
    rig.start(3)
    rig.feed(event.Exited(2, 1, 0, 0, 2))
    rig.submit(1)
    rig.exit(6)
    rig.feed(event.BarNode("node-2", BarKind.CORDON, "me", until=10**6))
    check_world(rig.world)
    return rig.world


def give_a_device_twice(world: World) -> None:
    tasks = world.arrays[2]
    tasks.devices[3] = tasks.devices[2]


def lose_a_job(world: World) -> None:
    del world.jobs[4]


def lose_a_line(world: World) -> None:
    world.queue.remove(world.jobs[4])


def leak_quota(world: World) -> None:
    world.ledger.charge("a", world.site_of(0), Resources(1), 1)


def leak_quota_above(world: World) -> None:
    world.ledger.total("", "cpu", "").held += 1


def miscount_what_is_healthy(world: World) -> None:
    world.sites.healthy[0][0] += 1


def leak_cpu(world: World) -> None:
    world.fleet.words[world.fleet.words[AT_NODES] + FREE_CPU] -= 1


def empty_a_cell(world: World) -> None:
    words = world.fleet.words
    planes = words[words[AT_POOLS] + POOL_PLANES]
    words[planes : planes + 9 * PARTS] = 0


def shorten_a_gang(world: World) -> None:
    job = world.jobs[1]
    run = job.phase.run  # type: ignore[union-attr]  # it holds a place
    short = msgspec.structs.replace(run, leases=run.leases[:1])
    world.jobs[1] = msgspec.structs.replace(job, phase=msgspec.structs.replace(job.phase, run=short))


def swap_an_epoch(world: World) -> None:
    world.jobs[1] = msgspec.structs.replace(world.jobs[1], epoch=9)


def forget_a_timer(world: World) -> None:
    world.timers = type(world.timers)()


def shelve_a_barred_node(world: World) -> None:
    shelve(world.fleet.words, 2, 1)


def bar_a_node_twice(world: World) -> None:
    world.fleet.bars[2] *= 2


def forget_a_bar_s_end(world: World) -> None:
    world.fleet.bars[2] = (msgspec.structs.replace(world.fleet.bars[2][0], until=2 * 10**6),)


def oversleep_a_bar_s_end(world: World) -> None:
    world.now = 10**6


def lend_a_key(world: World) -> None:
    world.keys.add("default", "other", 1)


def miscount_tasks(world: World) -> None:
    world.arrays[2].counts[TaskPhase.RUNNING] += 1


def seat_a_task_that_is_over(world: World) -> None:
    world.arrays[2].slot[0] = 1


def requeue_without_the_queue(world: World) -> None:
    world.jobs[6] = msgspec.structs.replace(world.jobs[6], phase=Queued(0))


def repeat_an_id(world: World) -> None:
    world.next_job = 2


def park_without_reason(world: World) -> None:
    for shape in world.queue.shapes.values():
        for line in shape.lines.values():
            world.queue.restand(line, OVER)


def charge_twice(world: World) -> None:
    world.usage.step("default", "gpu", 1, world.now)


def stand_elsewhere(world: World) -> None:
    for shape in world.queue.shapes.values():
        for line in shape.lines.values():
            line.band = (OVER, 0, line.band[2])


def claim_a_device_twice(world: World) -> None:
    world.fleet.device_ids = {0: ("x",) * 8, 1: ("x",) * 8}


def lack_what_was_never_there(world: World) -> None:
    world.fleet.lacks[0] = Lack(1 << 9, Resources(1))


def free_what_is_lacking(world: World) -> None:
    world.fleet.lacks[2] = Lack(1, Resources(1))


def move_an_address(world: World) -> None:
    world.fleet.slot_of["elsewhere"] = world.fleet.slot_of.pop("node-0")


DAMAGE: dict[Callable[[World], None], str] = {
    give_a_device_twice: "no device is in two leases",
    lose_a_job: "accepted jobs are queued, active, over or retired",
    lose_a_line: "the queue is everybody who waits",
    leak_quota: "the ledger is the sum of the leases",
    leak_quota_above: "the ledger is the sum of the leases",
    miscount_what_is_healthy: "sites are those of the nodes",
    leak_cpu: "free is capacity minus what is held",
    empty_a_cell: "the index is what is free",
    shorten_a_gang: "a gang holds all its places or none",
    swap_an_epoch: "a run has its job's epoch",
    shelve_a_barred_node: "the index is what is free",
    bar_a_node_twice: "a node has one bar of a kind and an owner",
    forget_a_bar_s_end: "every bar that ends has its timer",
    oversleep_a_bar_s_end: "no bar stands past its time",
    forget_a_timer: "every limit and every end has its timer",
    lend_a_key: "a key names one live job",
    miscount_tasks: "counts are those of the column",
    seat_a_task_that_is_over: "a task has a place if and only if it holds one",
    requeue_without_the_queue: "the queue is everybody who waits",
    repeat_an_id: "job ids rise",
    park_without_reason: "a line stands no worse than its quota says",
    charge_twice: "use follows from what is held",
    stand_elsewhere: "a line stands no worse than its quota says",
    claim_a_device_twice: "no device is in two nodes",
    lack_what_was_never_there: "a node lacks only what it joined with",
    free_what_is_lacking: "free is capacity minus what is held",
    move_an_address: "a slot belongs to one node",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: str(damage.__name__))
def test_every_law_bites(damage: Callable[[World], None]) -> None:
    world = healthy()
    damage(world)
    with pytest.raises(InvariantError) as caught:
        check_world(world)
    assert caught.value.law == DAMAGE[damage]
    assert caught.value.evidence


def test_an_empty_world_keeps_every_law() -> None:
    check_world(World())


def test_a_fold_is_compared_by_its_content() -> None:
    entries = [
        encode_entry(1, 5, [fact.NodeJoined(0, "n", Resources(8))]),
        encode_entry(2, 6, [fact.Accepted(1, spec())]),
    ]
    folded = fold(entries)
    check_same(folded, fold(entries[1:], fold(entries[:1])))
    with pytest.raises(InvariantError, match="fold"):
        check_same(folded, fold(entries[:1]))


NODE = fact.NodeJoined(0, "n", Resources(8, 8000, 2**33))
WRONG: dict[str, tuple[str, list[fact.Fact]]] = {
    "an id again": ("job ids rise", [fact.Accepted(1, spec()), fact.Accepted(1, spec())]),
    "a stranger": ("no job vanishes", [fact.Began(4, 0, 1)]),
    "half a gang": (
        "a gang holds all its places or none",
        [NODE, fact.Accepted(1, spec(1, gang=2)), fact.Placed([1], [1], [1], [0], [1], [1])],
    ),
    "an old epoch": (
        "epochs strictly rise",
        [NODE, fact.Accepted(1, spec()), fact.Placed([1], [0], [1], [0], [1], [1])],
    ),
    "one device in two nodes": (
        "no device is in two nodes",
        [fact.NodeJoined(slot, f"n{slot}", Resources(1, 1000), devices=("x",)) for slot in range(2)],
    ),
    "work for a device that is not there": (
        "no work goes to a device that is not there",
        [
            NODE,
            fact.NodeLacks(0, Lack(1, Resources(1))),
            fact.Accepted(1, spec()),
            fact.Placed([1], [1], [1], [0], [1], [1]),
        ],
    ),
    "a device twice": (
        "no device is in two leases",
        [
            NODE,
            fact.Accepted(1, spec()),
            fact.Accepted(2, spec()),
            fact.Placed([1, 2], [1, 1], [1, 1], [0, 0], [1, 1], [1, 1]),
        ],
    ),
    "a device too few": (
        "a lease has the devices it asked for",
        [NODE, fact.Accepted(1, spec(2)), fact.Placed([1], [1], [1], [0], [1], [1])],
    ),
    "a device that is not there": (
        "allocations fit their node",
        [NODE, fact.Accepted(1, spec(1)), fact.Placed([1], [1], [1], [0], [1], [1 << 8])],
    ),
    "a move that no table lists": (
        "only moves that the table lists",
        [NODE, fact.Accepted(1, spec()), fact.StopAsked(1, Why.CANCEL)],
    ),
    "a word after the end": (
        "terminal is final",
        [fact.Accepted(1, spec()), fact.Ended(1, TaskPhase.CANCELLED), fact.Ended(1, TaskPhase.FAILED)],
    ),
    "an end that is none": ("terminal is final", [fact.Accepted(1, spec()), fact.Ended(1, TaskPhase.RUNNING)]),
    "an array that is not over": (
        "an array ends with its last task",
        [fact.Accepted(1, spec(array=2)), fact.Ended(1, TaskPhase.SUCCEEDED)],
    ),
    "a range too long": (
        "a range lies inside its array",
        [NODE, fact.Accepted(1, spec(array=2)), fact.TasksPlaced(1, 1, [0], [2], [3])],
    ),
    "retired too early": ("no job vanishes", [fact.Accepted(1, spec()), fact.Retired([1])]),
    "over the quota": (
        "a start stays within its tenant's quota",
        [
            NODE,
            fact.TenantSet("default", Tenant(lines=limits(gpus=1))),
            fact.Accepted(1, spec(2)),
            fact.Placed([1], [1], [1], [0], [1], [3]),
        ],
    ),
    "on a barred node": (
        "a barred node gets no work",
        [
            NODE,
            fact.NodeBarred(0, Bar(BarKind.CORDON, "me", "", 0)),
            fact.Accepted(1, spec()),
            fact.Placed([1], [1], [1], [0], [1], [1]),
        ],
    ),
    "a bar of somebody else": (
        "only a bar that stands is lifted",
        [NODE, fact.NodeBarred(0, Bar(BarKind.CORDON, "me", "", 0)), fact.NodeUnbarred(0, BarKind.CORDON, "you")],
    ),
    "a gang that ends by a drain": (
        "what is sent back to the queue does not end",
        [
            NODE,
            fact.Accepted(1, spec()),
            fact.Placed([1], [1], [1], [0], [1], [1]),
            fact.StopAsked(1, Why.DRAIN),
            fact.Ended(1, TaskPhase.FAILED, Why.DRAIN),
        ],
    ),
    "a task that ends by a drain": (
        "what is sent back to the queue does not end",
        [
            NODE,
            fact.Accepted(1, spec(array=2)),
            fact.TasksPlaced(1, 0, [0], [2], [3]),
            fact.TasksMoved(1, 1, 1, TaskPhase.STOPPING),
            fact.TasksEnded(1, 0, 2, TaskPhase.FAILED),
        ],
    ),
    "on a node that is gone": (
        "only nodes that are up get work",
        [
            NODE,
            fact.NodePhased(0, NodePhase.GONE),
            fact.Accepted(1, spec()),
            fact.Placed([1], [1], [1], [0], [1], [1]),
        ],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_auditor_finds_wrong_facts_by_themselves(name: str) -> None:

    law, facts = WRONG[name]
    with pytest.raises(InvariantError) as caught:
        Auditor(TABLE).observe(World(), facts)
    assert caught.value.law == law


def test_the_auditor_finds_a_world_that_does_not_follow() -> None:
    with pytest.raises(InvariantError):
        Auditor().observe(World(), [fact.Accepted(1, spec())])
