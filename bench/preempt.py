"""`bench preempt`: an owner takes 512 GPUs back from 10,000 running jobs; and how much more is lost than must be.

1,250 nodes of 8 GPUs are full of jobs of a tenant that owns nothing, each of one GPU and of another age. The owner
submits one gang of 64 nodes: timed is all that goes through the door from its submit until the victims are told to
stop, the wake-ups of the kernel included. The loss is compared with an exhaustive search on small fleets.
"""

from __future__ import annotations

import random

from bench.fleets import NODE, make_traits
from bench.report import Metric, Result, cpu_seconds, median
from muster.kernel.kernel import Kernel
from muster.model import event, fact
from muster.model.phase import ACTIVE
from muster.model.spec import Spec
from muster.model.tenant import Line, Tenant, gpu_amount
from muster.scheduler.placing.fit import find_gang
from muster.scheduler.stage import Seat, Stage
from muster.scheduler.taking.victims import Candidate, Want, choose
from muster.testing.exhaustive import least_cost
from muster.units import MINUTE_MS, SECOND_MS, Resources
from muster.world.world import World

NODES = 1250
EACH = 8
WANTED = 64
ROUNDS = 5
CASES = 200
WAKES_MAX = 4
ONE = Resources(1, 8_000, 1 << 36)
WHOLE = Resources(8, 64_000, 1 << 39)


def run(seed: int) -> Result:
    """The median of a few rounds; each takes from a fleet of its own."""
    rounds = [_take_ms(seed + number) for number in range(ROUNDS)]
    chosen, least = _losses(seed)
    metrics = {
        "preempt_ms": Metric(median([ms for ms, _ in rounds]), "ms", 20, at_least=False),
        "excess_loss": Metric(100 * (chosen - least) / max(1, least), "%", 5, at_least=False),
    }
    return Result("preempt", metrics, {"victims": rounds[0][1], "running": NODES * EACH, "small_cases": CASES})


def _take_ms(seed: int) -> tuple[float, int]:
    """How long the owner's submit takes, and how many are stopped for it."""
    kernel, now = _lent(seed)
    now, warmed = _submit_until_taken(kernel, 2, now + SECOND_MS)
    stopped: list[int] = []
    seconds = cpu_seconds(lambda: stopped.append(_submit_until_taken(kernel, WANTED, now + SECOND_MS)[1]))
    assert (warmed, stopped) == (2 * EACH, [WANTED * EACH]), (warmed, stopped)
    return 1000 * seconds, stopped[0]


def _submit_until_taken(kernel: Kernel, nodes: int, now: int) -> tuple[int, int]:
    """The owner submits a gang, and the clock goes on as the kernel wishes: when victims were told to stop, and how
    many."""
    batch: list[event.Event] = [event.Submit(Spec(("train",), tenant="owner", gang=nodes, ask=WHOLE))]
    for _ in range(WAKES_MAX):
        outcome = kernel.handle(batch, now)
        stopped = sum(isinstance(item, fact.StopAsked) for item in outcome.facts)
        if stopped or outcome.wake_at is None:
            return now, stopped
        batch, now = [], max(now, outcome.wake_at)
    return now, 0


def _lent(seed: int) -> tuple[Kernel, int]:
    kernel, dice, now = Kernel(World()), random.Random(seed), 0
    kernel.handle([event.NodeSeen(f"node-{slot:05d}", NODE, traits=make_traits(slot)) for slot in range(NODES)], now)
    owned = Tenant(lines=(Line("h100", guaranteed=gpu_amount((WANTED + 2) * EACH)),))
    kernel.handle([event.SetTenant("owner", owned)], now)
    left = NODES * EACH
    while left:
        some = min(left, dice.randrange(50, 500))
        now += dice.randrange(MINUTE_MS)
        kernel.handle([event.Submit(Spec(("work",), tenant="guest", ask=ONE)) for _ in range(some)], now)
        left -= some
    return kernel, now + MINUTE_MS


def _losses(seed: int) -> tuple[int, int]:
    """What is lost on small fleets, and what would be at least."""
    chosen = least = 0
    for case in range(CASES):
        mine, best = _small_losses(random.Random(f"{seed}/{case}"))
        chosen, least = chosen + mine, least + best
    return chosen, least


def _small_losses(dice: random.Random) -> tuple[int, int]:
    kernel = Kernel(World())
    world = kernel.world
    kernel.handle([event.NodeSeen(f"node-{slot}", NODE) for slot in range(dice.randrange(2, 5))], 0)
    for number in range(8):
        ask = Resources(dice.choice((1, 2, 2, 3, 4, 8)), 1000, 1 << 30)
        kernel.handle([event.Submit(Spec(("work",), ask=ask, gang=dice.choice((1, 1, 1, 2))))], number)
    ask, gang = Resources(dice.choice((2, 4, 8)), 1000, 1 << 30), dice.choice((1, 1, 2, 3))
    want = Want(ask, gang, Spec(("x",)).needs, lambda: find_gang(world.fleet, ask, gang))
    candidates = []
    for job in list(world.jobs.values()):
        if isinstance(job.phase, ACTIVE):
            seat = Seat(job.id, 0, job.spec, job.phase.run.leases)
            candidates.append(Candidate(dice.randrange(1, 1000), job.id, 0, seat))
    with Stage(world, 10) as stage:
        if want.find() is not None:
            return 0, 0
        best = least_cost(stage, want, candidates)
        found = choose(stage, world.fleet, want, candidates)
        return (0, 0) if best is None or found is None else (found.cost, best)
