"""What becomes of work that a restored backup knows nothing of: the engine is told to end and to forget it.

A journal that was put back counts jobs and tries from where it was, and their numbers come a second time. An engine
knows runs by these numbers, so what it still has of the first time would be taken for the second. It decides nothing:
what is not wanted is said by the kernel's own rule for a node that reports itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from muster.kernel.nodes import plan_fences
from muster.model.event import Event, Exited, NodeSeen
from muster.model.instruction import Forget, Stop
from muster.model.node import address_of
from muster.ports.engine import Engine
from muster.world.seats import seats_on
from muster.world.world import World

PATIENCE_S: Final = 60.0
LOOKS_MAX: Final = 3
"""The last look has to find nothing; so many engines in a row that still hold something are one too many."""

TaskKey: TypeAlias = tuple[int, int, int]
"""A job, an epoch and a task."""


def end_unknown(world: World, engine: Engine, patience_s: float = PATIENCE_S) -> tuple[int, bool]:
    """Have an engine end and forget what a world does not hold: how many tasks, and whether nothing is left of it."""
    ended: set[TaskKey] = set()
    deadline = time.monotonic() + patience_s
    for _ in range(LOOKS_MAX):
        found, is_over = _look(world, engine, deadline)
        ended |= found
        if not found or not is_over:
            return len(ended), is_over
    return len(ended), False


def _look(world: World, engine: Engine, deadline: float) -> tuple[set[TaskKey], bool]:
    """The same once: whether an instruction reached the engine before it was closed is seen by the next look."""
    news: SimpleQueue[Sequence[Event]] = SimpleQueue()
    unknown: set[TaskKey] = set()
    left: set[TaskKey] | None = None
    engine.open(news.put)
    try:
        while left is None or left:
            for item in news.get(timeout=max(0.0, deadline - time.monotonic())):
                if isinstance(item, NodeSeen):
                    fences = list(_plan(world, item))
                    left = {key for fence in fences for key in _keys(fence)}
                    unknown |= left
                    engine.carry_out(fences)
                elif isinstance(item, Exited) and left:
                    gone = [key for key in _keys(item) if key in left]
                    engine.carry_out([Forget(job, epoch, task, 1) for job, epoch, task in gone])
                    left.difference_update(gone)
    except Empty:
        return unknown, False
    finally:
        engine.close()
    return unknown, True


def _plan(world: World, seen: NodeSeen) -> Iterator[Stop]:
    slot = world.fleet.slot_of.get(address_of(seen.name, seen.traits.place))
    return plan_fences(seen.held, [] if slot is None else seats_on(world, slot))


def _keys(item: Stop | Exited) -> Iterator[TaskKey]:
    spans = item.spans if isinstance(item, Exited) else [(item.first, item.count)]
    for first, count in spans:
        for task in range(first, first + count):
            yield item.job, item.epoch, task
