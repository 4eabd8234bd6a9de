"""`bench replay`: hours of a fleet of 12,500 nodes through the door, faster than they would take.

A million jobs of 200 tenants, in teams with guarantees, three tiers and gangs of up to 64 nodes; half of them have a
limit. They come about as fast as the fleet can serve them, so that a queue waits, borrowed room is taken back and large
gangs need room to be kept for them. Then two million tasks of arrays on a fleet of the same kind, for the same tenants:
`bench.sweeps` says what they are and how their ends are reported. Of how many tasks and of how many ranges an event
about ends is, is a reference; and so is what comes of it if they end in random order (`scattered`).
Timed are `Kernel.handle` and the journal's encoding; all laws are checked at some moments, outside the time.
`growth_percent` is how much larger the process is when three quarters are over than when one is. The reference is where
the jobs went, and how fast it was while anybody waited. `--jobs N`
replays fewer: below some 20,000 the fleet is never full, and below some 150,000 the hours that are remembered, and with
them the process, are still growing when they would not any more.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count, islice
from pathlib import Path
from time import process_time
from typing import Final

from bench.fleets import NODE, make_traits
from bench.report import Metric, Result
from bench.sweeps import Reports, make_sweeps
from muster.app.process import settle_memory
from muster.kernel.kernel import Kernel, Outcome
from muster.model import fact
from muster.model.event import Event, Exited, NodeSeen, SetTenant, Started, Submit
from muster.model.instruction import Start, Stop
from muster.model.spec import Spec
from muster.model.tenant import GPU, Line, Tenant, gpu_amount
from muster.units import MINUTE_MS, SECOND_MS, Resources
from muster.wire.codec import encode_entry
from muster.world.laws.invariants import check_world
from muster.world.world import World

NODES: Final = 12_500
JOBS: Final = 1_000_000
ARRAY_TASKS: Final = 2_000_000
SCATTERED_TASKS: Final = 1_000_000
WARM_TASKS: Final = 10_000
TEAMS: Final = 10
MEMBERS: Final = 20
WINDOW_MS: Final = 2 * SECOND_MS
BATCH_MAX: Final = 256
CHECKS: Final = 4
MEAN_RUN_MS: Final = 30 * MINUTE_MS
LOAD_PERCENT: Final = 98
SHAPES: Final = ((1, 1), (2, 1), (4, 1), (8, 1), (8, 4), (8, 16), (8, 64))
WEIGHTS: Final = (400, 250, 150, 150, 40, 9, 1)
TIERS: Final = ("critical", "standard", "standard", "standard", "opportunistic")
PAGE_BYTES: Final = 4096


def run(seed: int, jobs: int = JOBS) -> Result:
    """Both mixes, each on a fleet of its own."""
    singles = _Replay(random.Random(seed), jobs)
    singles.run(jobs)
    _replay_arrays(seed, WARM_TASKS)  # so that all is compiled
    arrays = _replay_arrays(seed, ARRAY_TASKS)
    scattered = _replay_arrays(seed, SCATTERED_TASKS, is_scattered=True)
    metrics = {
        "events_per_s": Metric(singles.events / singles.seconds, "events/s", 40_000, at_least=True),
        "array_tasks_per_s": Metric(ARRAY_TASKS / arrays.seconds, "tasks/s", 500_000, at_least=True),
        "growth_percent": Metric(singles.growth_percent, "%", 5, at_least=False),
    }
    counts = singles.counts
    reference = {
        "waiting_most": singles.waiting_most,
        "full_events_per_s": singles.full_events / singles.full_seconds if singles.full_seconds else 0.0,
        "virtual_hours": singles.now / (60 * MINUTE_MS),
        "placed": counts["placed"],
        "requeued": counts["requeued"],
        "ended": counts["ended"],
        "us_per_event": 1e6 * singles.seconds / singles.events,
        "array_tasks_per_event": arrays.tasks_per_event,
        "array_ranges_per_event": arrays.ranges_per_event,
        "scattered_tasks_per_s": SCATTERED_TASKS / scattered.seconds,
        "scattered_tasks_per_event": scattered.tasks_per_event,
        "scattered_ranges_per_event": scattered.ranges_per_event,
        "resident_mb": _resident_bytes() / 2**20,
    }
    return Result("replay", metrics, reference)


def _replay_arrays(seed: int, tasks: int, is_scattered: bool = False) -> _Replay:
    replay = _Replay(random.Random(seed), 0)
    replay.run_arrays(tasks, is_scattered)
    return replay


class _Replay:
    """One fleet, and an agenda of what its engine will report."""

    def __init__(self, dice: random.Random, jobs: int) -> None:
        self.seconds = 0.0
        self.events = 0
        self.now = 0
        self.growth_percent = 0.0
        self.waiting_most = 0
        self.full_events, self.full_seconds = 0, 0.0
        self.counts: Counter[str] = Counter()
        self.tasks_per_event = self.ranges_per_event = 0.0
        self._reports: Reports | None = None
        self._dice = dice
        self._jobs = jobs
        self._kernel = Kernel(World())
        self._agenda: list[tuple[int, int, Event | None]] = []
        self._order = count()
        self._wake_at: int | None = None
        self._arrivals: Iterator[tuple[int, Event]] = iter(())
        self._kernel.handle([NodeSeen(f"node-{slot:05d}", NODE, traits=make_traits(slot)) for slot in range(NODES)], 0)
        self._kernel.handle(_tree(), 0)
        settle_memory()

    def run(self, jobs: int) -> None:
        """Submit so many jobs at the pace of the load, and go on until all of them are over."""
        self._arrivals = _arrivals(random.Random(self._dice.random()), jobs)
        self._admit()
        self._drive()

    def run_arrays(self, tasks: int, is_scattered: bool = False) -> None:
        """Submit sweeps of so many tasks together, and go on until all of them are over."""
        reports = self._reports = Reports(self._dice, is_scattered)
        self._arrivals = make_sweeps(random.Random(self._dice.random()), tasks, NODES * NODE.gpus, TEAMS * MEMBERS)
        self._admit()
        self._drive()
        self.tasks_per_event, self.ranges_per_event = tasks / reports.ends, reports.ranges / reports.ends

    def _admit(self) -> None:
        """The next one who comes."""
        for at, event in islice(self._arrivals, 1):
            self._note(at, event)

    def _note(self, at: int, event: Event | None) -> None:
        """Something will happen; None is a report of the arrays' engine."""
        heappush(self._agenda, (at, next(self._order), event))

    def _drive(self) -> None:
        checks = [self._jobs * part // CHECKS for part in range(1, CHECKS) if self._jobs]
        sizes: list[int] = []
        while self._agenda or (self._wake_at is not None and self._kernel.world.queue.shapes):
            self._handle(self._next_batch())
            if len(sizes) < len(checks) and self.counts["ended"] >= checks[len(sizes)]:
                check_world(self._kernel.world)  # first: what a check leaves behind in the process is no growth
                gc.collect()
                sizes.append(_resident_bytes())
        check_world(self._kernel.world)
        self.growth_percent = 100 * (sizes[-1] - sizes[0]) / sizes[0] if sizes else 0.0

    def _next_batch(self) -> list[Event]:
        """What is reported in the next window, or nothing if only a timer is due."""
        begin = self._agenda[0][0] if self._agenda else self._wake_at or self.now
        self.now = max(self.now, begin if self._wake_at is None else min(begin, self._wake_at))
        batch: list[Event] = []
        while self._agenda and self._agenda[0][0] <= self.now + WINDOW_MS and len(batch) < BATCH_MAX:
            at, _, event = heappop(self._agenda)
            self.now = max(self.now, at)
            if event is not None:
                batch.append(event)
            elif self._reports is not None:
                batch += self._reports.take(at)
            if isinstance(event, Submit):
                self._admit()
        return batch

    def _handle(self, batch: list[Event]) -> None:
        waiting = len(self._kernel.world.queue)
        begin = process_time()
        outcome = self._kernel.handle(batch, self.now)
        if outcome.facts:
            encode_entry(outcome.seq, outcome.at, outcome.facts)
        spent = process_time() - begin
        self.seconds += spent
        self.events += len(batch)
        self.waiting_most = max(self.waiting_most, waiting)
        if waiting:
            self.full_events += len(batch)
            self.full_seconds += spent
        self._wake_at = None if outcome.wake_at is None else max(outcome.wake_at, self.now)
        self._count(outcome)
        for item in outcome.instructions:
            if isinstance(item, Start):
                self._start(item)
            elif isinstance(item, Stop):
                self._note(
                    self.now + SECOND_MS, Exited(item.job, item.epoch, 143, item.first, item.count, cause="bench")
                )

    def _start(self, item: Start) -> None:
        if self._reports is not None:
            for at in self._reports.note_start(item, self.now):
                self._note(at, None)
            return
        tasks = sum(item.counts)
        run_ms = min(int(self._dice.expovariate(1 / MEAN_RUN_MS)), 8 * MEAN_RUN_MS)
        self._note(self.now + SECOND_MS, Started(item.job, item.epoch, item.first, tasks, cause="bench"))
        self._note(self.now + 2 * SECOND_MS + run_ms, Exited(item.job, item.epoch, 0, item.first, tasks, cause="bench"))

    def _count(self, outcome: Outcome) -> None:
        for item in outcome.facts:
            if isinstance(item, fact.Placed):
                self.counts["placed"] += len(item.jobs)
            elif isinstance(item, fact.Ended):
                self.counts["ended"] += 1
            elif isinstance(item, fact.Requeued):
                self.counts["requeued"] += 1


def _tree() -> list[Event]:
    """Teams that own three quarters of the fleet together; their members share what a team has."""
    part = gpu_amount(NODES * NODE.gpus * 3 // 4 // TEAMS)
    events: list[Event] = [
        SetTenant(f"team-{team}", Tenant(lines=(Line(GPU, guaranteed=part),), weight=1 + team % 3))
        for team in range(TEAMS)
    ]
    return events + [
        SetTenant(f"tenant-{number}", Tenant(f"team-{number % TEAMS}")) for number in range(TEAMS * MEMBERS)
    ]


def _spec(dice: random.Random, number: int) -> Spec:
    gpus, gang = dice.choices(SHAPES, WEIGHTS)[0]
    return Spec(
        ("train",),
        name=f"job-{number}",
        tenant=f"tenant-{dice.randrange(TEAMS * MEMBERS)}",
        gang=gang,
        ask=Resources(gpus, gpus * 8_000, gpus << 36),
        limit_ms=8 * MEAN_RUN_MS + MINUTE_MS if dice.random() < 0.5 else None,
        tier=dice.choice(TIERS),
    )


def _arrivals(dice: random.Random, jobs: int) -> Iterator[tuple[int, Event]]:
    """When each job comes: at the pace of the load."""
    gap_ms = _gpu_ms_each() * 100 / (LOAD_PERCENT * NODES * NODE.gpus)
    at = 0.0
    for number in range(jobs):
        at += dice.expovariate(1 / gap_ms)
        yield int(at), Submit(_spec(dice, number), cause="bench")


def _gpu_ms_each() -> int:
    """What a job takes on average."""
    total = sum(weight * gpus * gang for (gpus, gang), weight in zip(SHAPES, WEIGHTS, strict=True))
    return MEAN_RUN_MS * total // sum(WEIGHTS)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
