"""Memories stay small, whatever is asked."""

from __future__ import annotations

from muster.kernel.kernel import Kernel
from muster.model.event import NodeSeen, Submit
from muster.model.spec import Spec
from muster.units import Resources
from muster.world.fleet import ASKED_MAX
from muster.world.memory import Memory
from muster.world.world import World


def test_a_full_memory_starts_over() -> None:
    memory = Memory(2)
    memory["a"], memory["b"] = 1, 2
    memory["c"] = 3
    assert memory == {"c": 3}


def test_a_copy_has_the_same_bound() -> None:
    twin = Memory(2, Memory(2, {"a": 1, "b": 2}))
    twin["c"] = 3
    assert twin == {"c": 3}


def test_jobs_that_all_differ_do_not_fill_the_memory() -> None:
    kernel = Kernel(World())
    kernel.handle([NodeSeen("node", Resources(8, 64_000, 1 << 38))], 0)
    asks = [Resources(cpu_milli=1, memory_bytes=number) for number in range(ASKED_MAX + 100)]
    kernel.handle([Submit(Spec(("true",), ask=ask)) for ask in asks], 1)
    assert len(kernel.world.jobs) == len(asks)
    assert len(kernel.world.fleet.asked) <= ASKED_MAX
