"""The pages of the auditor's books: what the facts say of one job, and of one node."""

from __future__ import annotations

from array import array
from typing import Final

from muster.model.job import Bar, BarKind, Meter, NodePhase
from muster.model.node import NO_LACK, Traits, flavor_of
from muster.model.phase import (
    Cancelled,
    Failed,
    Queued,
    Running,
    Spread,
    Starting,
    Stopping,
    Succeeded,
    TaskPhase,
    Why,
)
from muster.model.spec import Spec
from muster.units import Limit, Resources
from muster.world.arena import DEVICE
from muster.world.goodput import Parts
from muster.world.invariants import Holding
from muster.world.law import require
from muster.world.tasks import NOWHERE

SPREAD: Final = -1
"""The phase of an array: each of its tasks has one of its own."""
PHASE_OF: Final[dict[type, int]] = {
    Queued: TaskPhase.QUEUED,
    Starting: TaskPhase.STARTING,
    Running: TaskPhase.RUNNING,
    Stopping: TaskPhase.STOPPING,
    Succeeded: TaskPhase.SUCCEEDED,
    Failed: TaskPhase.FAILED,
    Cancelled: TaskPhase.CANCELLED,
    Spread: SPREAD,
}


class JobBook:
    """What the facts say of one job. `ranks` are 0 before, 1 up, 2 over; `why` is why its run was last told to stop;
    `end` is when its run ends at the latest, while it holds anything."""

    __slots__ = (
        "devices",
        "end",
        "epoch",
        "epochs",
        "held",
        "leases",
        "meter",
        "phase",
        "phases",
        "ranks",
        "slots",
        "spec",
        "why",
    )

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.phase: int = SPREAD if spec.array else TaskPhase.QUEUED
        self.epoch = 0
        self.why = Why.EXIT
        self.end: Limit = None
        self.held = spec.held
        self.leases: list[tuple[int, int, int]] = []
        self.meter: Meter | None = None
        self.ranks = bytearray()
        self.phases = bytearray(spec.array)
        self.epochs = array("i", bytes(4 * spec.array))
        self.slots = array("i", [NOWHERE]) * spec.array
        self.devices = array("q", bytes(8 * spec.array))

    def use(self, cpu_ms: int, rss_bytes: int) -> None:
        """Tasks used this much, beside what others did."""
        require(cpu_ms >= 0 and rss_bytes >= 0, "nobody uses less than nothing", f"{cpu_ms}, {rss_bytes}")
        known = self.meter or Meter()
        self.meter = Meter(known.cpu_ms + cpu_ms, max(known.rss_bytes, rss_bytes))

    def stage(self) -> TaskPhase:
        """How far it is, as far as others care: without a place so far, with one now or before, or over."""
        if self.phase >= TaskPhase.SUCCEEDED:
            return TaskPhase(self.phase)
        return TaskPhase.RUNNING if any(self.epochs) or any(self.phases) or self.epoch else TaskPhase.QUEUED


class NodeBook:
    """What the facts say of one node."""

    __slots__ = ("bars", "capacity", "devices", "held", "is_kept", "lack", "losses", "name", "phase", "traits")

    def __init__(self, name: str, capacity: Resources, traits: Traits, devices: tuple[str, ...]) -> None:
        self.name = name
        self.capacity = capacity
        self.traits = traits
        self.devices = devices
        self.lack = NO_LACK
        self.phase = NodePhase.UP
        self.bars: dict[tuple[BarKind, str], Bar] = {}
        self.held = Holding()
        self.losses: list[tuple[int, int]] = []
        self.is_kept = False

    def flavor(self) -> str:
        """The kind of capacity that it is."""
        return flavor_of(self.traits, self.capacity)

    def parts(self) -> Parts:
        """How much of devices it has, and of what nobody holds, how much is idle, barred, gone and kept."""
        whole, held = DEVICE * self.capacity.gpus, sum(self.held.devices.values())
        free = sum(self.held.rests_of(self.capacity, self.lack)) if self.phase == NodePhase.UP else 0
        gone = whole - held - free
        if self.bars:
            return whole, 0, free, gone, 0
        return (whole, 0, 0, gone, free) if self.is_kept else (whole, free, 0, gone, 0)


def deal(devices: int, count: int) -> tuple[int, int]:
    """The lowest `count` devices, and the rest."""
    mine = 0
    for _ in range(count):
        low = devices & -devices
        mine |= low
        devices ^= low
    return mine, devices
