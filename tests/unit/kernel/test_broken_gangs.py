"""The law of broken gangs, for every kind of gang and whatever it is in the middle of: who loses a node ends whole,
repaired or waiting again with the same request and its progress, and gangs that need each other's nodes never wait for
each other for ever.

    node-0   node-1   node-2   node-3   node-4      a gang of three, job 1, on the first nodes; what it has besides
    rank 0   rank 1   rank 2   spare    (free)      (a spare, or a fourth rank) is on the others
                 ✗                                  any of them is lost
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stage_kit import STAGES, lose, settled

from muster.model import event, fact
from muster.model.errors import InvariantError
from muster.model.goodput import Bucket
from muster.model.group import Group
from muster.model.job import BarKind, Resize
from muster.model.phase import Running, Starting, Stopping, TaskPhase
from muster.model.spec import Needs
from muster.scheduler.repair import MEND_MS, REPAIR_MS
from muster.testing.planted.taking import broken_gangs_wait_for_ever
from muster.testing.rig import Rig
from muster.units import Resources
from muster.world.accounting import read_account
from muster.world.widths import members_of, width_of

NODE = Resources(8, 64_000, 2**38)
GROUPS = Needs(groups=(Group("driver", 1, Resources(4, 8000, 2**30)), Group("worker", 2, Resources(8, 1000, 2**30))))
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"gang": 3},
    "in place": {"gang": 3, "gang_most": 3, "in_place": True},
    "elastic": {"gang": 2, "gang_most": 3},
    "elastic in place": {"gang": 2, "gang_most": 3, "in_place": True},
    "with spares": {"gang": 3, "spares": 1},
    "with spares, in place": {"gang": 3, "gang_most": 3, "spares": 1, "in_place": True},
    "elastic with spares": {"gang": 3, "gang_most": 4, "spares": 1},
    "of groups": {"gang": 3, "needs": GROUPS},
    "one that may not be evicted": {"gang": 3, "evictable": False},
}
"""What a gang of three may be. What it may not be is refused, and so is a stage that it does not know: it runs then."""


def submit(rig: Rig, kind: str) -> int:
    fields = dict(KINDS[kind])
    if "needs" in fields:
        fields["ask"] = Resources(cpu_milli=1000)
    return rig.submit(8, **fields)


def obey(rig: Rig, job: int) -> None:
    """Play the engine of a gang until it is told nothing more: what is to start is up, what is to stop is over."""
    for _ in range(8):
        phase, ranks = rig.job(job).phase, rig.world.ranks.get(job, bytearray())
        if isinstance(phase, Stopping):
            rig.exit(job, 143, 0, len(ranks))
        elif isinstance(phase, Starting) or (isinstance(phase, Running) and TaskPhase.STARTING in ranks):
            rig.start(job, 0, len(ranks))
        elif rig.world.widths.resizes.get(job, Resize(0)).to:
            leaving = [rank for rank in members_of(ranks) if ranks[rank] == TaskPhase.STOPPING]
            rig.exit(job, 143, leaving[0], len(leaving))
        else:
            break
        settled(rig)
    assert not isinstance(rig.job(job).phase, (Starting, Stopping))


def useful(rig: Rig) -> int:
    return sum(times[Bucket.USEFUL] for times in read_account(rig.world, rig.world.now).values())


def is_whole(rig: Rig, job: int) -> bool:
    """It runs with all that it needs, or it waits and holds nothing but what is kept for it."""
    return rig.phase(job) == "Queued" or width_of(rig.job(job)) >= rig.job(job).spec.gang


@pytest.mark.parametrize("lost", ["node-0", "node-1", "node-2", "node-3"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_whenever_it_loses_a_node_it_ends_whole(kind: str, stage: Callable[[Rig], None], lost: str) -> None:
    rig = Rig(5)
    job = submit(rig, kind)
    stage(rig)
    asked, saved = rig.job(job).spec, useful(rig)
    lose(rig, lost)
    obey(rig, job)
    rig.feed(after_ms=MEND_MS)
    obey(rig, job)
    assert is_whole(rig, job), "repaired, or it waits again"
    rig.feed(event.UnbarNode("node-0", BarKind.DRAIN, "op"), event.NodeSeen(lost, NODE))
    rig.feed(after_ms=REPAIR_MS)
    obey(rig, job)
    assert rig.phase(job) == "Running"
    assert is_whole(rig, job)
    assert rig.job(job).spec == asked, "with the same request"
    assert rig.job(job).failures == 0, "and none of its retries is used up"
    assert useful(rig) >= saved, "what was checkpointed counts"
    rig.exit(job, 0, 0, len(rig.world.ranks[job]))
    assert rig.phase(job) == "Succeeded"
    settled(rig)


def break_all(kind: str, count: int) -> Rig:
    """Gangs that have the whole fleet: each loses so many nodes for good that it lacks one, and keeps the others.
    Together they have what some of them lack."""
    fields = KINDS[kind]
    each = fields["gang"] + fields.get("spares", 0)
    rig = Rig(count * each)
    jobs = [submit(rig, kind) for _ in range(count)]
    for job in jobs:
        obey(rig, job)
        assert rig.phase(job) == "Running"
    for job in jobs:
        places = rig.run(job).places[: 1 + fields.get("spares", 0)]
        lose(rig, *(rig.world.fleet.names[lease.slot] for lease in places))
    return rig


def finish_all(rig: Rig) -> dict[int, TaskPhase]:
    """Play on until nothing more comes of it: whoever runs when all repairs are over ends well. How each ended."""
    for _ in range(24):
        live = [job for job in sorted(rig.world.jobs) if rig.phase(job) not in ("Queued", "Succeeded")]
        for job in live:
            obey(rig, job)
        rig.feed(after_ms=MEND_MS)
        running = [job for job in live if rig.phase(job) == "Running" and is_whole(rig, job)]
        if rig.now > REPAIR_MS + 2 * MEND_MS and running:
            rig.exit(running[0], 0, 0, len(rig.world.ranks[running[0]]))
        settled(rig)
    facts = [item for outcome in rig.outcomes for item in outcome.facts]
    return {item.job: item.phase for item in facts if isinstance(item, fact.Ended)}


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_broken_gangs_that_need_each_others_nodes_never_wait_for_ever(kind: str, count: int) -> None:
    rig = break_all(kind, count)
    assert finish_all(rig) == dict.fromkeys(range(1, count + 1), TaskPhase.SUCCEEDED)
    assert not rig.world.claims


def test_if_they_did_it_would_be_found() -> None:
    with broken_gangs_wait_for_ever(), pytest.raises(InvariantError, match="a claim has an end to come, and soon"):
        finish_all(break_all("plain", 2))
