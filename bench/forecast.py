"""`bench forecast`: how often a job starts when it was foretold to. Foretold spans are to hold four times in five.

Histories of two days are simulated: a fleet of eight nodes, six tenants with four kinds of work each, whose run times
are spread around their own middle, gangs of up to four nodes, and a load that the fleet just bears, so that queues come
and go. From the eighth hour on some of those who wait are asked about, as `muster why` asks: with what had ended until
then, and nothing of what comes. A span is right if the job then started in it; an open end is right if it started after
its beginning. Jobs that have names and limits, and jobs that have neither, are told apart.

The reference is the same with the future known: how wide a span is beside the wait, and how many were asked about.
Seeded, in virtual time: the figures are the same on any machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Final, NamedTuple

from bench.report import Metric, Result, median
from muster.forecast.comers import gather
from muster.forecast.lengths import Lengths, Ran
from muster.forecast.rollout import GRAIN_MS, Arrival, Rollout
from muster.forecast.starts import Outlook, foresee
from muster.kernel.kernel import Kernel
from muster.model.event import NodeSeen
from muster.model.spec import Spec
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, Resources
from muster.world.world import World

NODES: Final = 8
NODE: Final = Resources(gpus=8, cpu_milli=64_000)
SPAN_MS: Final = 2 * DAY_MS
FROM_MS: Final = 8 * HOUR_MS
STEP_MS: Final = 30 * MINUTE_MS
ASKED_AT_ONCE: Final = 1
SEEDS: Final = 3
KNOWN: Final = 2000
UNBOUNDED: Final = 10**9
SIZES: Final = ((1, 1), (1, 1), (2, 1), (4, 1), (8, 1), (8, 1), (8, 2), (8, 4))
"""GPUs of a task and tasks of the gang, each as likely as the others."""
LOAD: Final = 0.95
NAMED: Final = {"named": 1.0, "nameless": 0.0}


class Kind(NamedTuple):
    """Work that one tenant runs again and again."""

    tenant: str
    name: str
    middle_ms: float
    spread: float


class Foretold(NamedTuple):
    """What was said of a job, when, and when it started."""

    asked_at: int
    outlook: Outlook
    started_at: int

    @property
    def side(self) -> int:
        """0 if it started in the span, -1 if before, 1 if after; to the grain of rollouts."""
        earliest, latest = self.outlook.earliest, self.outlook.latest
        if earliest is None or self.started_at < earliest - GRAIN_MS:
            return -1
        return 1 if latest is not None and self.started_at > latest + GRAIN_MS else 0


def run(seed: int) -> Result:
    """Ask about jobs of each manner, in a few histories."""
    metrics: dict[str, Metric] = {}
    reference: dict[str, float] = {}
    for name, share in NAMED.items():
        told = [each for number in range(SEEDS) for each in play(seed + number, share)]
        sides = [each.side for each in told]
        metrics[f"{name}_right"] = Metric(100 * sides.count(0) / len(told), "%", 75)
        reference[f"{name}_asked"] = len(told)
        reference[f"{name}_early_pct"] = 100 * sides.count(-1) / len(told)
        reference[f"{name}_late_pct"] = 100 * sides.count(1) / len(told)
        reference[f"{name}_wait_min"] = median([(each.started_at - each.asked_at) / MINUTE_MS for each in told])
        reference[f"{name}_span_min"] = median([_span(each.outlook) / MINUTE_MS for each in told])
    return Result("forecast", metrics, reference)


def play(seed: int, named: float, span_ms: int = SPAN_MS) -> list[Foretold]:
    """One history: what was foretold on its way, and what came true."""
    truth = Rollout(_make_fleet(), 0, lambda *_: None, list(_draw_jobs(random.Random(seed), named, span_ms)))
    dice, asked, specs = random.Random(seed), dict[int, tuple[int, Outlook]](), dict[int, Spec]()
    for now in range(STEP_MS, span_ms, STEP_MS):
        truth.run(now, UNBOUNDED)
        specs |= {number: job.spec for number, job in truth.world.jobs.items()}
        waiting = [number for number, job in truth.world.jobs.items() if truth.world.is_waiting(job)]
        fresh = [number for number in waiting if number not in asked] if now >= FROM_MS else []
        for number in dice.sample(fresh, min(ASKED_AT_ONCE, len(fresh))):
            outlook = _ask(truth, number, now, specs)
            if outlook is not None:
                asked[number] = (now, outlook)
    truth.run(2 * span_ms, UNBOUNDED)
    return [Foretold(*said, truth.starts[number]) for number, said in asked.items() if number in truth.starts]


def _ask(truth: Rollout, number: int, now: int, specs: dict[int, Spec]) -> Outlook | None:
    """As the server asks: with what ended until now, and who came in the last day."""
    over = {job for job, at in truth.starts.items() if at + truth.lengths[job] <= now and job in specs}
    lengths = Lengths(Ran(specs[job].tenant, specs[job].name, truth.lengths[job]) for job in sorted(over)[-KNOWN:])
    came = [
        Arrival(at, specs[job], truth.lengths[job] if job in over else None)
        for job, (_, at) in truth.came.items()
        if job in specs
    ]
    return foresee(truth.world, number, now, lengths, gather(came, now))


def _make_fleet() -> World:
    kernel = Kernel(World())
    kernel.handle([NodeSeen(f"n{number}", NODE) for number in range(NODES)], 0)
    return kernel.world


def _draw_jobs(dice: random.Random, named: float, span_ms: int) -> Iterator[Arrival]:
    kinds = [
        Kind(f"t{tenant}", f"k{kind}", dice.lognormvariate(3.4, 0.9) * MINUTE_MS, dice.choice((0.2, 0.4, 0.8)))
        for tenant in range(6)
        for kind in range(4)
    ]
    mean_ms = sum(kind.middle_ms * math.exp(kind.spread**2 / 2) for kind in kinds) / len(kinds)
    gpus = sum(gpus * tasks for gpus, tasks in SIZES) / len(SIZES)
    gap_ms, at = mean_ms * gpus / (NODES * NODE.gpus * LOAD), 0.0
    while (at := at + dice.expovariate(1 / gap_ms)) < span_ms:
        kind, (each, tasks), is_named = dice.choice(kinds), dice.choice(SIZES), dice.random() < named
        run_ms = int(kind.middle_ms * dice.lognormvariate(0, kind.spread))
        limit_ms = int(kind.middle_ms * dice.choice((3, 5, 10))) if is_named else None
        spec = Spec(
            ("work",),
            name=kind.name if is_named else "",
            tenant=kind.tenant,
            gang=tasks,
            ask=Resources(gpus=each, cpu_milli=1000),
            limit_ms=limit_ms,
        )
        yield Arrival(int(at), spec, run_ms if limit_ms is None else min(run_ms, limit_ms))


def _span(outlook: Outlook) -> int:
    return 0 if outlook.earliest is None or outlook.latest is None else outlook.latest - outlook.earliest
