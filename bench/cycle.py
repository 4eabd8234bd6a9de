"""`bench cycle`: 100,000 jobs of 200 tenants wait for 100,000 GPUs, and one in a hundred changes from cycle to cycle.

Of the jobs, 30 % take either flavor, 10 % must stay in a rack or a block, 5 % want a zone, 5 % are gangs of more than
128 GPUs, 20 % are elastic, up to twice as wide, and 20 % belong to tenants that are over their quota. Timed is the
cycle alone: order, quota, search, draft and commit, and what is given to elastic gangs afterwards. `steady` cycles
follow a batch in which running jobs end and new ones come; the `cold` one is the first of a world that was just
restored, so that nothing is remembered. Reasons cost nothing here, as they are computed when asked for.
The garbage collector is set as in a server that has loaded its world. The reference
is the handling of the same batch without its cycle.
"""

from __future__ import annotations

import random
from time import process_time
from typing import Final
from unittest import mock

from bench.fleets import NODE, make_traits
from bench.report import Metric, Result, median
from muster.app.process import settle_memory
from muster.kernel import kernel as door
from muster.kernel.kernel import Kernel
from muster.kernel.turn import Turn
from muster.kernel.widths import grow_all
from muster.model.event import Event, Exited, NodeSeen, SetFlavor, SetTenant, Submit
from muster.model.fact import Fact, Placed
from muster.model.node import Flavor, Traits
from muster.model.phase import ACTIVE
from muster.model.spec import ANYWHERE, Needs, Spec
from muster.model.tenant import Tenant, limits
from muster.scheduler.cycle import run_cycle
from muster.scheduler.timeshare import Shares
from muster.units import Resources
from muster.world.snapshot import restore, snapshot
from muster.world.world import World

NODES: Final = 12_500
PENDING: Final = 100_000
CHANGED: Final = PENDING // 100
TENANTS: Final = 200
POOR: Final = TENANTS // 5
"""So many tenants may hold no more than one large gang, so most of what they ask for waits for quota."""
ROUNDS: Final = 9


def run(seed: int) -> Result:
    """Fill the fleet, let 100,000 wait, and time cycles."""
    dice = random.Random(seed)
    kernel, clock = Kernel(World()), _Clock()
    with mock.patch.object(door, "run_cycle", clock.watch), mock.patch.object(door, "grow_all", clock.watch_growth):
        fill(kernel, dice)
        settle_memory()
        filled = clock.starts
        rounds = [_round(kernel, clock, dice) for _ in range(ROUNDS)]
        starts = (clock.starts - filled) / ROUNDS
        cold = [_cold(kernel, clock, dice) for _ in range(3)]
    steady = median([cycle for cycle, _ in rounds])
    metrics = {
        "cycle_ms": Metric(steady, "ms", 50, at_least=False),
        "cold_ms": Metric(median(cold), "ms", 250, at_least=False),
    }
    reference = {
        "batch_without_cycle_ms": median([batch - cycle for cycle, batch in rounds]),
        "starts_per_cycle": starts,
        "us_per_start": 1000 * steady / max(1, starts),
        "waiting": len(waiting_of(kernel)),
        "running": sum(isinstance(job.phase, ACTIVE) for job in kernel.world.jobs.values()),
        "shapes": len(kernel.world.queue.shapes),
    }
    return Result("cycle", metrics, reference)


def fill(kernel: Kernel, dice: random.Random) -> None:
    """The fleet, and as many jobs as it takes until 100,000 wait."""
    open_fleet(kernel)
    while len(waiting_of(kernel)) < PENDING:
        settle(kernel, [Submit(make_spec(dice)) for _ in range(10_000)])


class _Clock:
    """CPU time of the cycles that went by, and what they started."""

    def __init__(self) -> None:
        self.ms = 0.0
        self.starts = 0

    def watch(
        self, world: World, now: int, cause: str, shares: Shares | None = None, *, serves: bool = True
    ) -> list[Fact]:
        """Run a cycle, and time it."""
        begin = process_time()
        facts = run_cycle(world, now, cause, shares=shares, serves=serves)
        self.ms += 1000 * (process_time() - begin)
        self.starts += sum(len(item.jobs) for item in facts if isinstance(item, Placed))
        return facts

    def watch_growth(self, turn: Turn) -> None:
        """Let elastic gangs grow, and time it."""
        begin = process_time()
        grow_all(turn)
        self.ms += 1000 * (process_time() - begin)


def open_fleet(kernel: Kernel) -> None:
    """Two flavors of one family in two zones, and tenants of which a fifth may hold little."""
    kernel.handle([SetFlavor(name, Flavor("gpu")) for name in ("a100", "h100")], 0)
    kernel.handle([NodeSeen(f"node-{slot:05d}", NODE, traits=_traits(slot)) for slot in range(NODES)], 0)
    tenants = [Tenant(lines=limits(gpus=512 if number < POOR else None)) for number in range(TENANTS)]
    kernel.handle([SetTenant(f"tenant-{number}", tenant) for number, tenant in enumerate(tenants)], 0)


def _traits(slot: int) -> Traits:
    """Two blocks in seven are of the other flavor, and every other block is in the other zone."""
    block = slot // 512
    return Traits("a100" if block % 7 < 2 else "h100", make_traits(slot).place, (("zone", "ab"[block % 2]),))


def make_spec(dice: random.Random) -> Spec:
    """The next job of the mix."""
    gang = 1
    gpus = dice.choice((1, 1, 1, 2, 2, 4, 8))
    if dice.random() < 0.05:
        gang, gpus = dice.choice((17, 24, 32, 64)), 8
    elif dice.random() < 0.1:
        gang, gpus = dice.choice((2, 4, 8)), 8
    ask = Resources(gpus, gpus * dice.choice((4_000, 8_000, 12_000)), gpus << 36)
    tenant, needs = f"tenant-{dice.randrange(TENANTS)}", _needs(dice, gang)
    most = 2 * gang if dice.random() < 0.2 else 0
    return Spec(("train",), tenant=tenant, gang=gang, ask=ask, needs=needs, gang_most=most, in_place=bool(most))


def _needs(dice: random.Random, gang: int) -> Needs:
    roll = dice.random()
    if roll < 0.3:
        return Needs(flavors=("a100", "h100"), any_flavor=True)
    if roll < 0.4:
        return Needs(within="rack" if gang <= 16 and dice.random() < 0.5 else "block")
    if roll < 0.45:
        return Needs(labels=("zone=a",))
    return ANYWHERE


def waiting_of(kernel: Kernel) -> list[int]:
    """Who waits."""
    return list(kernel.world.queue.waiting())


def settle(kernel: Kernel, events: list[Event]) -> None:
    """Handle a batch, and go on until nobody who could start is left."""
    kernel.handle(events, kernel.world.now + 1000)
    while kernel.world.queue.awake:
        kernel.handle([], kernel.world.now + 1000)


def _changes(kernel: Kernel, dice: random.Random) -> list[Event]:
    """Half of what changes are ends, half are new jobs."""
    running = [job for job in kernel.world.jobs.values() if isinstance(job.phase, ACTIVE)]
    ends = dice.sample(running, min(len(running), CHANGED // 2))
    events: list[Event] = [Exited(job.id, job.epoch, 0, 0, job.spec.gang) for job in ends]
    return events + [Submit(make_spec(dice)) for _ in range(CHANGED // 2)]


def _timed(kernel: Kernel, clock: _Clock, events: list[Event]) -> tuple[float, float]:
    """Milliseconds of the cycle, and of the whole batch."""
    clock.ms = 0.0
    begin = process_time()
    kernel.handle(events, kernel.world.now + 1000)
    return clock.ms, 1000 * (process_time() - begin)


def _round(kernel: Kernel, clock: _Clock, dice: random.Random) -> tuple[float, float]:
    found = _timed(kernel, clock, _changes(kernel, dice))
    settle(kernel, [])
    return found


def _cold(kernel: Kernel, clock: _Clock, dice: random.Random) -> float:
    """The first cycle of a world that was restored."""
    events = _changes(kernel, dice)
    fresh = Kernel(restore(snapshot(kernel.world)))
    assert len(fresh.world.fleet.words)
    return _timed(fresh, clock, events)[0]
