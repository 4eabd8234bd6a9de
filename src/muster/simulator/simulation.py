"""A simulation: a fleet, its users and its faults against the real kernel, with every law watched on the way.

`run_simulation` is the one way in. All randomness comes from the options' seed, no clock is read, and a broken law is
raised with the command that runs the same simulation again.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from muster.kernel.kernel import Outcome
from muster.model import fact
from muster.model.again import indexes_of
from muster.model.errors import InvariantError
from muster.model.event import Cancel, Event, HoldJob, MigrateJob, Progressed, ReleaseJob, RequeueJob, ScaleJob, Submit
from muster.model.goodput import Bucket, Mark
from muster.model.phase import TAKEN, TERMINAL, Running, TaskPhase
from muster.model.ranges import ranges_of
from muster.model.reason import Done
from muster.model.spec import bring_back
from muster.simulator.agenda import Agenda
from muster.simulator.appointments import Appointments
from muster.simulator.body import Body
from muster.simulator.devices import DeviceFaults
from muster.simulator.engine import Network, SimulatedEngine
from muster.simulator.faults import Faults, Maintenance, Trials
from muster.simulator.feeds import Feeds
from muster.simulator.load import Load
from muster.simulator.options import SimOptions
from muster.simulator.report import Report, Sample, percentiles
from muster.simulator.witness import Witness
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from muster.wire.bundle import encode_bundle
from muster.wire.codec import encode_entry
from muster.world.accounting import read_account
from muster.world.goodput import Times
from muster.world.snapshot import digest

START_MS: Final = 1_767_225_600_000  # 2026-01-01, so that instants look like instants
DRAIN_DAYS_MAX: Final = 60
LIFT_DAYS: Final = 30
"""How long after the last arrival the hard budget is lifted: at once where jobs are like those of a published cluster,
which are often too large for it."""
PROGRESS_REACH: Final = 30
"""How many of the newest jobs may say how far they are, one whenever somebody submits."""
SCALED_SHARE: Final = 0.02
"""How many of those that are not elastic somebody tries to scale all the same."""
MOVED_SHARE: Final = 0.2
"""How often, when somebody submits, somebody also wants a gang moved."""
AGAIN_SHARE: Final = 0.1
"""How often, when somebody submits, somebody also wants tasks that failed back."""
TOLD_SHARE: Final = 0.3
"""How often, when somebody submits, tasks of an array say how far they are."""
LATE_SHARE: Final = 0.1
"""How much of what tasks say is of a try before the latest."""
TRIALS: Final = 4
"""Other weights are tried four times as often as one node is barred: seldom, but in a storm."""
FEEDS: Final = 3
"""And nodes are put behind each of two feeds three times as often."""


class Progress(msgspec.Struct, frozen=True):
    """How far a run is."""

    done_pct: int
    entries: int
    waiting: int


def run_simulation(
    options: SimOptions, progress: Callable[[Progress], None] | None = None, witness: Witness | None = None
) -> Report:
    """Run one simulation to its end. A broken law raises InvariantError, with the command to see it again."""
    options.check()
    try:
        simulation = Simulation(options)
        if witness is not None:
            world = simulation.body.world
            simulation.body.observers.append(lambda outcome, _: witness.watch(world, outcome.at, outcome.facts))
        return simulation.run(progress)
    except InvariantError as error:
        raise InvariantError(error.law, f"{error.evidence} [again: {options.command()}]") from error
    except Exception as error:
        error.add_note(f"again: {options.command()}")
        raise


class Simulation:
    """One run, step by step."""

    def __init__(self, options: SimOptions) -> None:
        self.options = options
        self._load = Load(options)
        self._agenda = agenda = Agenda(START_MS)
        self._end = START_MS + int(options.days * DAY_MS)
        network = Network(options.lost, options.doubled)
        engine = SimulatedEngine(agenda, self._load.fate, self._dice("engine"), network)
        names = [self._add_node(engine, number) for number in range(options.nodes)]
        self.body = Body(agenda, engine, inspect_every=options.inspect_every, record=options.record)
        self._faults = Faults(agenda, engine, names, self._dice("faults"))
        self._maintenance = Maintenance(agenda, self.body.take, names, self._dice("maintenance"))
        self._trials = Trials(agenda, self.body.take, self._dice("trials"))
        self._feeds = Feeds(agenda, self.body.take, options, names, self._dice("feeds"))
        self._appointments = Appointments(agenda, self.body.take, options, self._dice("bookings"))
        self._device_faults = DeviceFaults(agenda, engine, names, self._dice("devices"))
        self._widths = self._dice("widths")
        self._marks = self._dice("progress")
        self._task_marks = self._dice("progress of tasks")
        self._moves = self._dice("moves")
        self._returns = self._dice("returns")
        self._names = names
        self._figures = _Figures(self.body)
        self._arrival_gpu_ms = 0

    def run(self, progress: Callable[[Progress], None] | None = None) -> Report:
        """From the first node to the last end."""
        for event in self._load.opening():
            self.body.take(event)
        self.body.run_until(START_MS + SECOND_MS)
        self._faults.begin(self.options.faults, self._end)
        self._maintenance.begin(self.options.maintenance, self._end)
        self._trials.begin(TRIALS * self.options.maintenance, self._end)
        self._feeds.begin(FEEDS * self.options.maintenance, self._end)
        self._appointments.begin(self.options.bookings, self._end)
        self._device_faults.begin(self.options.device_faults, self._end)
        self._agenda.after(self._load.next_gap_ms(), self._arrive)
        while self._agenda.now < self._end:
            self._go_on(min(self._end, self._agenda.now + HOUR_MS), progress)
        self._arrival_gpu_ms = self._figures.gpu_ms_until(self._end)
        if self.options.drain:
            self._drain(progress)
        self.body.inspector.inspect()
        return self._report()

    def _add_node(self, engine: SimulatedEngine, number: int) -> str:
        name, capacity = f"node-{number:04d}", self._load.node_capacity()
        devices = tuple(f"GPU-{number:04d}-{device}" for device in range(capacity.gpus))
        return engine.add_node(name, capacity, self._load.node_traits(number), devices)

    def _go_on(self, until: int, progress: Callable[[Progress], None] | None) -> None:
        self.body.run_until(until)
        sample = self._figures.sample()
        if progress is not None:
            done = 100 * (self._agenda.now - START_MS) // max(1, self._end - START_MS)
            progress(Progress(min(100, done), self.body.world.seq, sample.waiting))

    def _drain(self, progress: Callable[[Progress], None] | None) -> None:
        """Liveness: once nothing new comes and every node is back, all that was accepted ends."""
        lifts_at = self._end if self.options.like else self._end + LIFT_DAYS * DAY_MS
        deadline = self._end + DRAIN_DAYS_MAX * DAY_MS
        while self._agenda.now < deadline and not self._is_quiet():
            if lifts_at <= self._agenda.now < lifts_at + HOUR_MS:
                self.body.take(self._load.closing())
            self._go_on(self._agenda.now + HOUR_MS, progress)
        left = [job.id for job in self.body.world.jobs.values() if not isinstance(job.phase, TERMINAL)]
        if left:
            job = self.body.world.jobs[left[0]]
            raise InvariantError("what is accepted ends", f"{len(left)} jobs do not, such as {job}")
        live = self.body.engine.count_live()
        if live:
            raise InvariantError("nothing runs that nobody wants", f"{live} tasks run though every job is over")

    def _is_quiet(self) -> bool:
        return all(isinstance(job.phase, TERMINAL) for job in self.body.world.jobs.values())

    def _arrive(self) -> None:
        if self._agenda.now >= self._end:
            return
        submit = self._load.next_submit(self.body.world.next_job - 1, self._agenda.now)
        self.body.take(submit)
        if submit.key and self._load.is_sent_twice():
            self._agenda.after(SECOND_MS, self.body.take, submit)
        cancel_ms = self._load.find_cancel_ms()
        if cancel_ms is not None:
            self._agenda.after(MINUTE_MS, self._plan_cancel, self.body.world.next_job, cancel_ms)
        hold_ms = self._load.find_hold_ms()
        if hold_ms is not None:
            self._agenda.after(MINUTE_MS, self._plan_hold, self.body.world.next_job, hold_ms)
        self._scale(self.body.world.next_job - 1 - self._widths.randrange(PROGRESS_REACH))
        self._progress(self.body.world.next_job - 1 - self._marks.randrange(PROGRESS_REACH))
        if self._task_marks.random() < TOLD_SHARE:
            self._progress_tasks()
        if self.options.maintenance and self._moves.random() < MOVED_SHARE:
            self._migrate(self.body.world.next_job - 1 - self._moves.randrange(PROGRESS_REACH))
        if self._returns.random() < AGAIN_SHARE:
            self._bring_back()
        self._agenda.after(self._load.next_gap_ms(), self._arrive)

    def _bring_back(self) -> None:
        """Somebody wants some of the tasks that failed in an array back, and now and then the same ones twice; whether
        another has them already is for the kernel to say."""
        world = self.body.world
        arrays = [number for number, tasks in sorted(world.arrays.items()) if tasks.counts[TaskPhase.FAILED]]
        if arrays:
            number = self._returns.choice(arrays)
            job, tasks = world.jobs[number], world.arrays[number]
            indexes = indexes_of(job.spec.again, len(tasks))
            failed = [index for index, phase in zip(indexes, tasks.phase, strict=True) if phase == TaskPhase.FAILED]
            wanted = sorted(self._returns.sample(failed, self._returns.randint(1, len(failed))))
            spec = bring_back(job.spec, number, ranges_of(wanted))
            self.body.take(Submit(spec, f"again-{world.seq}", "its owner"))

    def _migrate(self, number: int) -> None:
        """Where nodes are maintained, somebody now and then wants a gang or an array off some, or on others."""
        names = tuple(self._moves.choice(self._names) for _ in range(self._moves.randrange(3)))
        others = tuple(self._moves.choice(self._names) for _ in range(4 * self._moves.randrange(2)))
        self.body.take(MigrateJob(number, others, names, cause="its owner"))

    def _progress(self, number: int) -> None:
        """Now and then a run says how far it is, and has a checkpoint, or begins to write one."""
        job = self.body.world.jobs.get(number)
        if job is not None and isinstance(job.phase, Running):
            step = self.body.world.goodput.marks.get(number, Mark(0)).step + self._marks.randrange(3)
            which = self._marks.random()
            begins = 0.5 <= which < 0.8
            self.body.take(Progressed(number, job.epoch, step, which < 0.5, "its run", checkpointing=begins))

    def _progress_tasks(self) -> None:
        """Some tasks of an array say how far they are, such as run and others, and now and then in a try that is not
        the latest. What of it counts is for the kernel to say."""
        world, dice = self.body.world, self._task_marks
        arrays = [number for number, tasks in sorted(world.arrays.items()) if tasks.counts[TaskPhase.RUNNING]]
        if arrays:
            number = dice.choice(arrays)
            tasks = world.arrays[number]
            first = max(tasks.phase.find(TaskPhase.RUNNING, dice.randrange(len(tasks))), 0)
            known = 0 if tasks.marks is None else tasks.marks.step[first]
            about = (tasks.epoch[first] - (dice.random() < LATE_SHARE), known + dice.randrange(3))
            where, which = (first, dice.randint(1, len(tasks) - first)), dice.random()
            self.body.take(Progressed(number, *about, which < 0.4, "its run", 0.4 <= which < 0.8, *where))

    def _plan_hold(self, job: int, delay_ms: int) -> None:
        """The owner holds a job, has it sent back should it run, and releases it later."""
        self.body.take(HoldJob(job, cause="its owner"))
        self.body.take(RequeueJob(job, cause="its owner"))
        self._agenda.after(delay_ms, self.body.take, ReleaseJob(job, cause="its owner"))

    def _scale(self, number: int) -> None:
        """Now and then the owner of a gang or an array wants other bounds; whether they make sense is for the kernel to
        say. Nobody needs so much at least that a few lost nodes would keep it waiting for ever."""
        job, most = self.body.world.jobs.get(number), self._widths.randrange(1, 9)
        is_bounded = job is not None and bool(job.spec.gang_most or job.spec.at_most)
        if job is not None and (is_bounded or self._widths.random() < SCALED_SHARE):
            least = min(self._widths.choice((0, 0, 1, 2, most)), max(1, self.options.nodes // 4))
            self.body.take(ScaleJob(number, most, least, cause="its owner"))

    def _plan_cancel(self, job: int, delay_ms: int) -> None:
        self._agenda.after(delay_ms, self.body.take, Cancel(job, cause="its owner"))

    def _dice(self, stream: str) -> random.Random:
        return random.Random(f"{self.options.seed}/{stream}")  # noqa: S311 - a simulation wants seeded dice

    def _report(self) -> Report:
        body, figures = self.body, self._figures
        span = self._agenda.now - START_MS
        gpus = max(1, self.options.nodes * self.options.gpus)
        return Report(
            options=self.options,
            span_ms=span,
            batches=body.batches,
            events=body.events,
            entries=body.world.seq,
            facts=figures.facts,
            inspections=body.inspector.inspections,
            node_faults=self._faults.count,
            node_bars=self._maintenance.count,
            device_faults=self._device_faults.count,
            accepted=body.world.accepted,
            refused=figures.refused,
            outcomes=figures.outcomes,
            tasks=figures.tasks,
            restarts=figures.restarts,
            takings=figures.takings,
            waits_ms=percentiles(figures.waits),
            busy_pct=100 * figures.gpu_ms_until(self._agenda.now) // (gpus * span),
            arrival_pct=100 * self._arrival_gpu_ms // (gpus * (self._end - START_MS)),
            samples=figures.samples,
            journal_hash=figures.journal.hexdigest(),
            goodput=_sum_buckets(read_account(body.world, self._agenda.now)),
            digest=digest(body.world),
            bundle=encode_bundle(body.bundle()) if self.options.record else None,
        )


def _sum_buckets(account: dict[str, Times]) -> dict[str, int]:
    """All flavors together."""
    return {bucket.value: sum(times[bucket] for times in account.values()) for bucket in Bucket}


class _Figures:
    """What is counted on the way, from answers and facts alone."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._since = body.agenda.now
        self._held = 0
        self._unplaced: dict[int, int] = {}
        self.waiting = 0
        self.facts = 0
        self.refused = 0
        self.restarts = 0
        self.takings = 0
        self._gpu_ms = 0
        self.waits: list[int] = []
        self.samples: list[Sample] = []
        self.outcomes = dict.fromkeys(("succeeded", "failed", "cancelled"), 0)
        self.tasks = dict.fromkeys(("succeeded", "failed", "cancelled"), 0)
        self.journal = hashlib.blake2b(digest_size=16)
        body.observers.append(self.observe)

    def observe(self, outcome: Outcome, batch: Sequence[Event]) -> None:
        """Count one batch."""
        self._gpu_ms = self.gpu_ms_until(outcome.at)
        self._since = outcome.at
        self._held = self._body.inspector.auditor.gpus_in_use
        self.facts += len(outcome.facts)
        self.refused += sum(
            isinstance(event, Submit) and not isinstance(answer, Done)
            for event, answer in zip(batch, outcome.answers, strict=True)
        )
        for item in outcome.facts:
            self._count(item, outcome.at)
        if outcome.facts:
            self.journal.update(encode_entry(outcome.seq, outcome.at, outcome.facts))

    def gpu_ms_until(self, at: int) -> int:
        """How much GPU time was held until now, of which nothing was heard since the last batch."""
        return self._gpu_ms + self._held * (at - self._since)

    def sample(self) -> Sample:
        """Look at the world as it is."""
        taken = Sample(self._body.agenda.now, self._held, len(self._body.world.queue))
        self.samples.append(taken)
        return taken

    def _count(self, item: fact.Fact, at: int) -> None:
        if isinstance(item, fact.Accepted):
            self._unplaced[item.job] = at
        elif isinstance(item, fact.Placed):
            for number in item.jobs:
                self._note_start(number, at)
        elif isinstance(item, fact.TasksPlaced):
            self._note_start(item.job, at)
        elif isinstance(item, fact.Ended):
            self.outcomes[item.phase.name.lower()] += 1
            self._unplaced.pop(item.job, None)
        elif isinstance(item, fact.Requeued):
            self.takings += item.why in TAKEN
            self.restarts += item.why not in TAKEN
        elif isinstance(item, fact.TasksEnded):
            self._count_tasks(item)

    def _count_tasks(self, item: fact.TasksEnded) -> None:
        if item.phase == TaskPhase.QUEUED:
            self.restarts += item.total
        else:
            self.tasks[item.phase.name.lower()] += item.total

    def _note_start(self, job: int, at: int) -> None:
        accepted_at = self._unplaced.pop(job, None)
        if accepted_at is not None:
            self.waits.append(at - accepted_at)
