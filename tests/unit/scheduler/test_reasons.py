"""Why a job waits: the sum of what is ahead counts every waiting task, and may be more than any amount."""

from __future__ import annotations

from muster.kernel.kernel import Kernel
from muster.model.event import NodeSeen, Submit
from muster.model.reason import Code
from muster.model.spec import Spec
from muster.scheduler.reasons import explain
from muster.units import AMOUNT_MAX, Resources
from muster.world.world import World

HUGE = 2**50


def queue_up(*specs: Spec) -> World:
    """A node of one core with as much memory as a node may have, and these jobs in its line."""
    kernel = Kernel(World())
    kernel.handle([NodeSeen("n0", Resources(cpu_milli=1000, memory_bytes=HUGE))], 0)
    kernel.handle([Submit(spec) for spec in specs], 1)
    return kernel.world


def test_what_is_ahead_counts_every_waiting_task() -> None:
    core = Resources(cpu_milli=1000)
    world = queue_up(Spec(("x",)), Spec(("x",), array=5, ask=core), Spec(("x",), ask=core))
    waiting = explain(world, world.jobs[3])
    assert waiting is not None
    assert (waiting.reason.code, waiting.position, waiting.ahead) == (Code.NO_ROOM, 2, [2])
    assert waiting.ahead_total == Resources(cpu_milli=5000)


def test_more_may_wait_than_any_amount() -> None:
    world = queue_up(*(Spec(("x",), array=4000, ask=Resources(memory_bytes=HUGE)) for _ in range(3)))
    waiting = explain(world, world.jobs[3])
    assert waiting is not None
    assert waiting.ahead_total.memory_bytes == 7999 * HUGE > AMOUNT_MAX


def test_what_runs_does_not_wait() -> None:
    world = queue_up(Spec(("x",)))
    assert explain(world, world.jobs[1]) is None
