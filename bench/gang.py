"""`bench gang`: 128 nodes of 8 GPUs in the tightest block of 12,500 nodes: in the index alone, and through the door.

The index is timed in compiled code on a fleet that is three quarters full. Through the door: a submit on an idle queue,
from the event to the `Placed` fact, with the journal's encoding. The reference is the same gang found by a search over
every node in compiled code, level by level.
"""

from __future__ import annotations

from bench.fleets import NODE, make_fleet, make_traits
from bench.report import Metric, Result, cpu_seconds, median
from muster.kernel.kernel import Kernel
from muster.model import event, fact
from muster.model.node import Level
from muster.model.spec import ANYWHERE, Spec
from muster.scheduler.placing import gang as gangs
from muster.scheduler.placing.fit import desk_of, find_gang, query_of
from muster.units import Resources
from muster.wire.codec import encode_entry
from muster.world.fleet import Fleet
from muster.world.world import World

NODES = 12_500
TASKS = 128
ASK = Resources(8, 64_000, 1 << 39)
ROUNDS = 9
REPEATS = 200


def run(seed: int) -> Result:
    """Medians of interleaved rounds."""
    fleet, kernel = _fill(make_fleet(NODES), seed), _door()
    leases = find_gang(fleet, ASK, TASKS)
    assert leases is not None
    blocks = {fleet.traits[lease.slot].place.path(Level.BLOCK) for lease in leases}
    rounds = [(_index_us(fleet), _scan_us(fleet), _door_ms(kernel)) for _ in range(ROUNDS)]
    index, scan, door = (median(list(column)) for column in zip(*rounds, strict=True))
    metrics = {
        "gang_us": Metric(index, "us", 50, at_least=False),
        "door_ms": Metric(door, "ms", 2, at_least=False),
    }
    return Result("gang", metrics, {"blocks_used": len(blocks), "leases": len(leases), "every_node_us": scan})


def _fill(fleet: Fleet, seed: int) -> Fleet:
    """Three quarters of all nodes have somebody on one device, block by block more of them."""
    for slot in range(NODES):
        if (slot * 7919 + seed) % 100 < 60 + slot // 512:
            fleet.occupy(slot, 1 + slot, Resources(1, 8_000, 1 << 36), 1, 1)
    return fleet


def _index_us(fleet: Fleet) -> float:
    words, query, desk = fleet.words, query_of(fleet, ASK, TASKS, ANYWHERE), desk_of(fleet)

    def work() -> None:
        for _ in range(REPEATS):
            assert gangs.find_gang(words, query, desk) == TASKS

    return 1e6 * cpu_seconds(work) / REPEATS


def _scan_us(fleet: Fleet) -> float:
    words, query, desk = fleet.words, query_of(fleet, ASK, TASKS, ANYWHERE), desk_of(fleet)
    return 1e6 * cpu_seconds(lambda: [gangs.widest_room(words, query, desk) for _ in range(20)]) / 20


def _door() -> Kernel:
    kernel = Kernel(World())
    kernel.handle([event.NodeSeen(f"node-{slot:05d}", NODE, traits=make_traits(slot)) for slot in range(NODES)], 0)
    return kernel


def _door_ms(kernel: Kernel) -> float:
    spec = Spec(("train",), gang=TASKS, ask=ASK)
    seconds: list[float] = []
    for _ in range(5):
        placed: list[fact.Fact] = []

        def work(found: list[fact.Fact] = placed) -> None:
            outcome = kernel.handle([event.Submit(spec)], kernel.world.now + 1)
            encode_entry(outcome.seq, outcome.at, outcome.facts)
            found += [item for item in outcome.facts if isinstance(item, fact.Placed)]

        seconds.append(cpu_seconds(work))
        assert len(placed) == 1
        job = kernel.world.next_job - 1
        kernel.handle([event.Exited(job, 1, 0, 0, TASKS)], kernel.world.now + 1)
    return 1000 * median(seconds)
