"""Load for the door: whole lifecycles of jobs on a fleet that they keep full, driven without an engine's delays.

A driver submits ahead of the fleet, so that a queue always waits; starts and exits follow the instructions that the
kernel gives. The batches are recorded first; then `Kernel.handle` and the journal's encoding alone are timed on them.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Final

from muster.kernel.kernel import Kernel, Outcome
from muster.model.event import Event, Exited, NodeSeen, SetTenant, Started, Submit
from muster.model.instruction import Start
from muster.model.spec import Spec
from muster.model.tenant import Tenant, limits
from muster.units import Resources
from muster.wire.codec import encode_entry
from muster.world.world import World

NODE: Final = Resources(gpus=8, cpu_milli=64_000, memory_bytes=512 << 30)
TENANTS: Final = 200
SHAPES: Final = ((1, 1), (2, 1), (4, 1), (8, 1), (8, 4), (8, 16))
WEIGHTS: Final = (40, 25, 15, 15, 4, 1)
TICK_MS: Final = 1000


def make_kernel(nodes: int) -> Kernel:
    """A kernel with an empty fleet of 8-GPU nodes, whose tenants may each hold a twentieth of it."""
    kernel = Kernel(World())
    kernel.handle([NodeSeen(f"node-{number:05d}", NODE) for number in range(nodes)], 0)
    tenant = Tenant(lines=limits(gpus=nodes * NODE.gpus // 20))
    kernel.handle([SetTenant(f"tenant-{number}", tenant) for number in range(TENANTS)], 0)
    return kernel


def make_submits(count: int, seed: int) -> list[Event]:
    """Single jobs of 1 to 8 GPUs and 5 % gangs of up to 16 nodes, over 200 tenants."""
    dice = random.Random(seed)
    kinds = dice.choices(SHAPES, WEIGHTS, k=count)
    return [
        Submit(
            Spec(
                ("train", "--step"),
                name=f"job-{number}",
                tenant=f"tenant-{dice.randrange(TENANTS)}",
                ask=Resources(gpus, gpus * 8_000, gpus << 36),
                gang=gang,
            ),
            cause="bench",
        )
        for number, (gpus, gang) in enumerate(kinds)
    ]


class Driver:
    """Drives whole lifecycles through a kernel and keeps the batches, so that they can be timed without the driver."""

    def __init__(self, kernel: Kernel, batch: int) -> None:
        self.batches: list[list[Event]] = []
        self._kernel = kernel
        self._batch = batch
        self._queued = 0
        self._started: deque[Event] = deque()
        self._running: deque[Event] = deque()

    def run(self, submits: list[Event], ahead: int) -> list[list[Event]]:
        """Submit everything, keeping the queue `ahead` jobs deep, until every job is over."""
        waiting = deque(submits)
        while waiting or self._started or self._running:
            batch = self._next_batch(waiting, ahead)
            self.batches.append(batch)
            self._follow(self._kernel.handle(batch, TICK_MS * len(self.batches)))
        return self.batches

    def _next_batch(self, waiting: deque[Event], ahead: int) -> list[Event]:
        batch: list[Event] = []
        while len(batch) < self._batch:
            if self._started:
                batch.append(self._started.popleft())
            elif waiting and self._queued < ahead:
                batch.append(waiting.popleft())
                self._queued += 1
            elif self._running:
                batch.append(self._running.popleft())
            else:
                break
        return batch

    def _follow(self, outcome: Outcome) -> None:
        for item in outcome.instructions:
            if isinstance(item, Start):
                self._queued -= 1
                self._started.append(Started(item.job, item.epoch, 0, item.spec.gang, cause="bench"))
                self._running.append(Exited(item.job, item.epoch, 0, 0, item.spec.gang, cause="bench"))


def pass_through(kernel: Kernel, batches: list[list[Event]]) -> int:
    """Handle and encode every batch, and nothing else; gives the size of the journal."""
    size = 0
    for number, batch in enumerate(batches, 1):
        outcome = kernel.handle(batch, TICK_MS * number)
        if outcome.facts:
            size += len(encode_entry(outcome.seq, outcome.at, outcome.facts))
    return size
