"""Gangs that lose nodes: what a gang of three, job 1 on the first three nodes of a rig, may be in the middle of, and
what holds afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from muster.model import event
from muster.model.job import BarKind
from muster.scheduler.growing import RESTART_MS
from muster.testing.rig import Rig
from muster.world.accounting import capacity_time, read_account
from muster.world.laws.invariants import check_world
from muster.world.snapshot import digest, restore, snapshot


def slots_of(rig: Rig, job: int = 1) -> list[int]:
    """Where a gang's ranks are."""
    return [lease.slot for lease in rig.run(job).leases]


def settled(rig: Rig) -> None:
    """Every law holds, the account adds up, and what is restored is the same."""
    check_world(rig.world)
    for flavor, times in read_account(rig.world, rig.world.now).items():
        assert sum(times.values()) == capacity_time(rig.world, flavor, rig.world.now)
    twin = restore(snapshot(rig.world))
    check_world(twin)
    assert digest(twin) == digest(rig.world)


def lose(rig: Rig, *names: str) -> None:
    """Nodes are gone for good."""
    rig.feed(*(event.NodeGone(name, "fenced") for name in names))
    settled(rig)


def starting(rig: Rig) -> None:
    """Of three ranks one is up."""
    rig.feed(event.Started(1, 1, 0, 1))


def running(rig: Rig) -> None:
    """All are up."""
    rig.start(1)


def checkpointed(rig: Rig) -> None:
    """It has a checkpoint."""
    rig.start(1)
    rig.feed(event.Progressed(1, 1, 7, checkpointed=True))


def drained(rig: Rig) -> None:
    """It was told to stop for the sake of a node."""
    rig.start(1)
    rig.feed(event.BarNode("node-0", BarKind.DRAIN, "op", lets_finish=False))


def requeued(rig: Rig) -> None:
    """It was told to stop by its owner."""
    rig.start(1)
    rig.feed(event.RequeueJob(1))


def shrinking(rig: Rig) -> None:
    """One of it is to leave, or all of it is to begin anew with less."""
    rig.start(1)
    rig.feed(event.ScaleJob(1, 3, 1), event.ScaleJob(1, 2))


def growing(rig: Rig) -> None:
    """It is to have one more: who joins is not up yet, or all of it is to begin anew with more."""
    rig.start(1)
    rig.feed(event.ScaleJob(1, rig.job(1).spec.gang + 2))
    rig.feed(after_ms=RESTART_MS)


def moving(rig: Rig) -> None:
    """It was told to go on elsewhere, if there is such a place."""
    rig.start(1)
    rig.feed(event.MigrateJob(1, off=("node-2",)))


STAGES: Final[tuple[Callable[[Rig], None], ...]] = (
    starting, running, checkpointed, drained, requeued, shrinking, growing, moving,
)  # fmt: skip
