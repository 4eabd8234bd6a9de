"""A rollout: the kernel driven ahead of time over a fork of the world, with tasks that run as long as somebody guesses.

The kernel cannot tell it from any other body. Whatever it starts is up at once, runs as long as `lasts` says and ends
well; whatever it stops is gone after its grace. Nodes stay as they are, and nobody comes but those who are named, in
order. Ends
are gathered on a grain of time, so that many of them are one batch. It has a limit of batches; it reads no clock.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Final, NamedTuple, TypeAlias

from muster.kernel.kernel import Kernel
from muster.model import fact
from muster.model.event import Event, Exited, Started, Submit
from muster.model.instruction import Instruction, Start, Stop
from muster.model.job import Job
from muster.model.phase import TAKEN, Running, Starting, Stopping, TaskPhase
from muster.model.reason import Done
from muster.model.spec import Spec
from muster.units import SECOND_MS
from muster.world.world import World

GRAIN_MS: Final = 5 * SECOND_MS
STOPPED: Final = 143
_LIVE: Final = (TaskPhase.STARTING, TaskPhase.RUNNING)

Lasts: TypeAlias = Callable[[int, Spec, int], int | None]
"""How long tasks of a job go on that have run so long already; None if nobody can say."""


class Arrival(NamedTuple):
    """Somebody who comes on the way, and how long their tasks run."""

    at: int
    spec: Spec
    run_ms: int | None
    """None if somebody else is to say."""


def in_order(arrivals: Iterable[Arrival]) -> list[Arrival]:
    """Whoever comes first on top; those who come at once, as they were named."""
    return sorted(arrivals, key=lambda comer: comer.at)


class _Due(NamedTuple):
    """Tasks of a run that end at an instant; they may have been stopped, or cut, before it comes."""

    at: int
    order: int
    job: int
    epoch: int
    first: int
    tasks: int
    code: int


class Rollout:
    """One run ahead, over a world that is used up by it; `first` is what happens at its beginning."""

    def __init__(
        self, world: World, now: int, lasts: Lasts, arrivals: Iterable[Arrival] = (), first: Sequence[Event] = ()
    ) -> None:
        self.world = world
        self.now = max(now, world.now)
        self.batches = 0
        self.starts: dict[int, int] = {}
        """When each job first got places on the way."""
        self.came: dict[int, tuple[str, int]] = {}
        """Whose jobs came on the way, and when."""
        self.lengths: dict[int, int] = {}
        """How long those run who came, as far as it was said."""
        self.taken = 0
        """How often somebody was stopped for somebody else."""
        self.is_endless = False
        """Whether somebody runs of whom nobody can say how long."""
        self.last_ended: list[int] = []
        """Whose tasks ended in the last batch that had ends."""
        self._kernel = Kernel(world)
        self._lasts = lasts
        self._arrivals = iter(arrivals)
        self._comer = next(self._arrivals, None)
        self._due: list[_Due] = []
        self._soon: list[Event] = list(first)
        self._order = 0
        self._wake_at: int | None = self.now
        for job in world.jobs.values():
            self._take_over(job)

    def run(self, until: int, batches_max: int, only: int = 0) -> bool:
        """Go on until an instant, or until one job has started; False if there were too many batches."""
        while only not in self.starts:
            instant = self._find_next()
            if instant is None or instant > until:
                self.now = max(self.now, until)
                return True
            if self.batches >= batches_max:
                return False
            self._turn(instant)
        return True

    def _find_next(self) -> int | None:
        if self._soon:
            return self.now
        known = [due.at for due in self._due[:1]]
        if self._comer is not None:
            known.append(self._comer.at)
        if self._wake_at is not None:
            known.append(self._wake_at)
        return max(min(known), self.now) if known else None

    def _turn(self, instant: int) -> None:
        self.now = instant
        self.batches += 1
        comers = self._comers()
        events = [*self._soon, *self._ends(), *(Submit(comer.spec) for comer in comers)]
        outcome = self._kernel.handle(events, instant)
        for comer, answer in zip(comers, outcome.answers[len(events) - len(comers) :], strict=True):
            if isinstance(answer, Done):
                if comer.run_ms is not None:
                    self.lengths[answer.job] = comer.run_ms
                self.came[answer.job] = (comer.spec.tenant, instant)
        self._note(outcome.facts)
        self._soon = list(self._carry_out(outcome.instructions))
        wake_at = outcome.wake_at
        self._wake_at = wake_at if wake_at is None or wake_at > instant else instant + 1

    def _note(self, facts: Iterable[fact.Fact]) -> None:
        for item in facts:
            if isinstance(item, fact.Placed):
                self._place(item.jobs)
            elif isinstance(item, fact.TasksPlaced):
                self._place([item.job])
            elif isinstance(item, fact.StopAsked) and item.why in TAKEN:
                self.taken += 1

    def _place(self, jobs: Iterable[int]) -> None:
        for number in jobs:
            self.starts.setdefault(number, self.now)

    # -- tasks

    def _carry_out(self, instructions: Iterable[Instruction]) -> Iterator[Event]:
        """What engines would do: starts are up at once, stops take their grace."""
        for item in instructions:
            if isinstance(item, Start):
                count = sum(item.counts)
                self._plan(item.job, item.epoch, item.first, count, self._length_of(item.job, item.spec, 0), 0)
                yield Started(item.job, item.epoch, item.first, count)
            elif isinstance(item, Stop):
                self._plan(item.job, item.epoch, item.first, item.count, item.grace_ms, STOPPED)

    def _take_over(self, job: Job) -> None:
        """What runs already, or is being stopped."""
        phase = job.phase
        if isinstance(phase, Stopping):
            left = max(0, phase.since + job.spec.grace_ms - self.now)
            self._plan(job.id, phase.run.epoch, 0, self._width(job), left, STOPPED)
        elif isinstance(phase, Starting | Running):
            elapsed = self.now - phase.since if isinstance(phase, Running) else 0
            left_ms = self._length_of(job.id, job.spec, elapsed)
            self._plan(job.id, phase.run.epoch, 0, self._width(job), left_ms, 0)
        elif (tasks := self.world.arrays.get(job.id)) is not None:
            left_ms = self._length_of(job.id, job.spec, 0)
            held = [(i, tasks.epoch[i]) for i, each in enumerate(tasks.phase) if TaskPhase(each) in _LIVE]
            for epoch, first, count in _ranges(held):
                self._plan(job.id, epoch, first, count, left_ms, 0)

    def _length_of(self, job: int, spec: Spec, elapsed: int) -> int | None:
        known = self.lengths.get(job)
        return self._lasts(job, spec, elapsed) if known is None else known

    def _width(self, job: Job) -> int:
        ranks = self.world.ranks.get(job.id)
        return job.spec.gang if ranks is None else len(ranks)

    def _plan(self, job: int, epoch: int, first: int, count: int, left_ms: int | None, code: int) -> None:
        if left_ms is None:
            self.is_endless = True
        else:
            self._order += 1
            at = -(-(self.now + left_ms) // GRAIN_MS) * GRAIN_MS
            heapq.heappush(self._due, _Due(at, self._order, job, epoch, first, count, code))

    def _ends(self) -> list[Event]:
        """The ends that are due, as far as those tasks are still there."""
        found: list[Event] = []
        ended: list[int] = []
        while self._due and self._due[0].at <= self.now:
            due = heapq.heappop(self._due)
            spans = list(self._still_there(due))
            if spans:
                first, count, *more = chain(*spans)
                found.append(Exited(due.job, due.epoch, due.code, first, count, more=more))
                ended.append(due.job)
        if ended:
            self.last_ended = list(dict.fromkeys(ended))
        return found

    def _still_there(self, due: _Due) -> Iterator[tuple[int, int]]:
        job = self.world.jobs.get(due.job)
        if job is None:
            return
        tasks = self.world.arrays.get(due.job)
        if tasks is not None:
            wanted = (*_LIVE, TaskPhase.STOPPING) if due.code else _LIVE
            span = range(due.first, due.first + due.tasks)
            held = [(i, due.epoch) for i in span if tasks.epoch[i] == due.epoch and TaskPhase(tasks.phase[i]) in wanted]
            yield from ((first, count) for _, first, count in _ranges(held))
        elif isinstance(job.phase, Starting | Running | Stopping) and job.phase.run.epoch == due.epoch:
            if due.code:
                yield due.first, due.tasks
            elif not isinstance(job.phase, Stopping):
                yield 0, self._width(job)  # also those who joined it since

    def _comers(self) -> list[Arrival]:
        found: list[Arrival] = []
        while self._comer is not None and self._comer.at <= self.now:
            found.append(self._comer)
            self._comer = next(self._arrivals, None)
        return found


def _ranges(held: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Tasks that follow each other in one epoch: (epoch, first, count)."""
    for (epoch, _), group in groupby(enumerate(held), key=lambda each: (each[1][1], each[1][0] - each[0])):
        members = [task for _, (task, _) in group]
        yield epoch, members[0], len(members)
