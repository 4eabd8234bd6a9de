"""`bench why`: how long one `muster why JOB` takes while 100,000 jobs wait for 100,000 GPUs, as in `bench cycle`.

Timed is all that a follower does for it besides HTTP: the reason with its numbers, the place in the line and who is
ahead, the copy that the question is put to, and the options, each proven. Some nodes have GPUs free and hardly a core,
so that many a job has an option that must be proven. The garbage collector is set as in a server that has loaded its
world. The reference is where the time goes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Final

from bench.cycle import fill, settle, waiting_of
from bench.fleets import NODE, make_traits
from bench.report import Metric, Result, median
from muster.app.process import settle_memory
from muster.control.views import complete_reason, find_reason
from muster.kernel.kernel import Kernel
from muster.model.event import NodeSeen
from muster.model.job import Job
from muster.scheduler.options import find_options
from muster.scheduler.promotion import find_promotion
from muster.scheduler.reasons import explain
from muster.units import Resources
from muster.wire.views import WhyView
from muster.world.world import World

ASKED: Final = 41
STARVED: Final = Resources(NODE.gpus, 3_000, NODE.memory_bytes)


def run(seed: int) -> Result:
    """Ask about jobs from all over the line."""
    dice = random.Random(seed)
    kernel = Kernel(World())
    fill(kernel, dice)
    settle(kernel, [NodeSeen(f"starved-{number}", STARVED, traits=make_traits(0)) for number in range(32)])
    world = kernel.world
    world.know_runs()  # as a follower does from the first question on
    settle_memory()
    waiting = waiting_of(kernel)
    asked = [world.jobs[waiting[place * (len(waiting) - 1) // (ASKED - 1)]] for place in range(ASKED)]
    whole = [_ms(partial(_answer, world, job)) for job in asked]
    metrics = {"why_ms": Metric(median(whole), "ms", 200, at_least=False)}
    reference = {
        "why_max_ms": max(whole),
        "fork_ms": median([_ms(world.fork) for _ in range(9)]),
        "promotion_ms": median([_ms(partial(find_promotion, world, job.spec, world.now)) for job in asked]),
        "fork_places_ms": median([_ms(world.fork_places) for _ in range(9)]),
        "explain_ms": median([_ms(partial(explain, world, job)) for job in asked]),
        "options_ms": median([_ms(partial(find_options, world, job)) for job in asked]),
        "with_options": sum(bool(find_options(world, job)) for job in asked),
        "waiting": len(waiting),
    }
    return Result("why", metrics, reference)


def _answer(world: World, job: Job) -> WhyView | None:
    """As the follower does it: the reason from its own world, the options from a fork."""
    found = find_reason(world, job.id)
    return complete_reason(world.fork(), found)


def _ms(work: Callable[[], object]) -> float:
    begin = process_time()
    work()
    return 1000 * (process_time() - begin)
