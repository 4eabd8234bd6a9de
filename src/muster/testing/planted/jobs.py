"""Bugs planted in the life of a job: one that is lost, runs twice, ends twice or is never stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final
from unittest import mock

import msgspec

from muster.kernel import again, attempts, nodes
from muster.kernel.reactors import REACTORS
from muster.kernel.turn import Turn
from muster.model import fact
from muster.model.event import Exited
from muster.model.job import Job
from muster.model.phase import TERMINAL, Failed, Lease, Queued, Run, Succeeded, TaskPhase, Why
from muster.model.ranges import Ranges
from muster.scheduler import cycle
from muster.testing.planted.plant import Plant
from muster.world import apply, draft, snapshot
from muster.world.limits import TaskLimits
from muster.world.line import Line
from muster.world.tasks import Tasks
from muster.world.timers import Timers
from muster.world.world import World

_replace = msgspec.structs.replace


@contextlib.contextmanager
def job_lost() -> Iterator[None]:
    """A job that is requeued falls out of the queue."""
    honest = apply.APPLY[fact.Requeued]

    def requeue(world: World, item: fact.Requeued, at: int) -> None:
        honest(world, item, at)
        world.dequeue(world.jobs[item.job])

    with mock.patch.dict(apply.APPLY, {fact.Requeued: requeue}):
        yield


@contextlib.contextmanager
def hold_forgotten() -> Iterator[None]:
    """A job that is held keeps its place in the line."""

    def set_held(world: World, job: Any, held: bool) -> None:
        world.jobs[job.id] = _replace(job, held=held)

    with mock.patch.object(World, "set_held", set_held):
        yield


@contextlib.contextmanager
def job_forgotten() -> Iterator[None]:
    """A job that ends is dropped at once, without a fact that says so."""
    honest = apply.APPLY[fact.Ended]

    def end(world: World, item: fact.Ended, at: int) -> None:
        honest(world, item, at)
        del world.jobs[item.job]

    with mock.patch.dict(apply.APPLY, {fact.Ended: end}):
        yield


@contextlib.contextmanager
def epoch_not_raised() -> Iterator[None]:
    """A second try carries the epoch of the first."""

    class Careless(draft.Draft):
        def place(self, job: Any, leases: list[Lease], claim: int = 0, line: Line | None = None) -> None:
            super().place(_replace(job, epoch=max(0, job.epoch - 1)) if job.epoch else job, leases, claim, line)

    with mock.patch.object(cycle, "Draft", Careless):
        yield


@contextlib.contextmanager
def terminal_overwritten() -> Iterator[None]:
    """A late word about a job that succeeded makes it failed."""
    react, end = REACTORS[Exited], apply.APPLY[fact.Ended]

    def on_exited(turn: Any, item: Exited) -> Any:
        job = turn.world.jobs.get(item.job)
        if job is not None and isinstance(job.phase, Succeeded):
            turn.emit(fact.Ended(job.id, TaskPhase.FAILED, Why.EXIT, 1))
        return react(turn, item)

    def overwrite(world: World, item: fact.Ended, at: int) -> None:
        job = world.jobs[item.job]
        if isinstance(job.phase, Succeeded):
            world.put(_replace(job, phase=Failed(at, Why.EXIT, 1)))
        else:
            end(world, item, at)

    with mock.patch.dict(REACTORS, {Exited: on_exited}), mock.patch.dict(apply.APPLY, {fact.Ended: overwrite}):
        yield


@contextlib.contextmanager
def over_and_admitted_again() -> Iterator[None]:
    """After a restart whatever is over waits again."""
    honest = snapshot._rebuild

    def rebuild(content: snapshot.Snapshot) -> World:
        jobs = [
            job
            if job.spec.array or not isinstance(job.phase, TERMINAL)
            else _replace(job, phase=Queued(job.phase.since))
            for job in content.jobs
        ]
        return honest(_replace(content, jobs=jobs))

    with mock.patch.object(snapshot, "_rebuild", rebuild):
        yield


@contextlib.contextmanager
def fold_differs() -> Iterator[None]:
    """The fold of a `Placed` gives the gang another start time than the draft that made it."""
    honest = apply.APPLY[fact.Placed]

    def place(world: World, item: fact.Placed, at: int) -> None:
        honest(world, item, at + 1)

    with mock.patch.dict(apply.APPLY, {fact.Placed: place}):
        yield


@contextlib.contextmanager
def stale_epoch_accepted() -> Iterator[None]:
    """The word of an older try is taken for that of the newest."""
    honest = attempts._find_job

    def lenient(turn: Any, item: Any) -> Any:
        job = turn.world.jobs.get(item.job)
        return honest(turn, item if job is None or job.spec.array else _replace(item, epoch=job.epoch))

    with mock.patch.object(attempts, "_find_job", lenient):
        yield


@contextlib.contextmanager
def stopped_too_early() -> Iterator[None]:
    """A gang gives its places back when it is told to stop, not when the stop is confirmed."""
    honest = apply.APPLY[fact.StopAsked]

    def stop(world: World, item: fact.StopAsked, at: int) -> None:
        honest(world, item, at)
        job = world.jobs[item.job]
        for lease in _run_of(job.phase).leases:
            world.fleet.vacate(lease.slot, job.id, job.spec.ask, lease.tasks, lease.devices)

    with mock.patch.dict(apply.APPLY, {fact.StopAsked: stop}):
        yield


@contextlib.contextmanager
def stop_not_sent() -> Iterator[None]:
    """A gang is told to stop in the journal, and nobody tells the engine."""
    with mock.patch.object(Turn, "stop", return_value=None):
        yield


@contextlib.contextmanager
def start_not_repeated() -> Iterator[None]:
    """What a node did not hear is not said again when it comes back."""
    with mock.patch.object(nodes, "_say_again", return_value=None):
        yield


@contextlib.contextmanager
def over_ranks_restarted() -> Iterator[None]:
    """A gang's start is repeated for every rank, also for those that are over."""
    with mock.patch.object(nodes, "_fence_over", return_value=None):
        yield


@contextlib.contextmanager
def limit_ignored() -> Iterator[None]:
    """A run goes on past its limit."""
    with mock.patch.object(Timers, "find_limit", return_value=None):
        yield


@contextlib.contextmanager
def task_limit_ignored() -> Iterator[None]:
    """A task of an array goes on past its limit."""
    with mock.patch.object(TaskLimits, "find", return_value=None):
        yield


@contextlib.contextmanager
def past_its_limit_and_back() -> Iterator[None]:
    """A task that was stopped for its limit waits again."""

    def judge(tasks: Tasks, stopped: Ranges) -> list[attempts.Verdict]:
        return [(ranges, TaskPhase.QUEUED, why) for why, ranges in tasks.whys_of(stopped)]

    with mock.patch.object(attempts, "_stopped_verdicts", judge):
        yield


@contextlib.contextmanager
def key_forgotten() -> Iterator[None]:
    """A submit that is repeated becomes a second job."""
    honest = apply.APPLY[fact.Accepted]

    def accept(world: World, item: fact.Accepted, at: int) -> None:
        honest(world, item, at)
        world.keys.drop(item.spec.tenant, item.key)

    with mock.patch.dict(apply.APPLY, {fact.Accepted: accept}):
        yield


@contextlib.contextmanager
def retired_too_early() -> Iterator[None]:
    """Jobs leave the world before they are over."""
    honest = Timers.take_ended

    def take(timers: Timers, jobs: dict[int, Job], *rest: Any) -> list[int]:
        found = honest(timers, jobs, *rest)
        return found + [number for number in list(jobs)[:1] if found and number not in found]

    with mock.patch.object(Timers, "take_ended", take):
        yield


def _run_of(phase: Any) -> Run:
    run: Run = phase.run
    return run


@contextlib.contextmanager
def stopped_for_a_drain() -> Iterator[None]:
    """Whatever tasks were told to stop for, it was a drain."""
    with mock.patch.object(Tasks, "whys_of", lambda _, ranges: [(Why.DRAIN, ranges)] if ranges else []):
        yield


@contextlib.contextmanager
def brought_back_twice() -> Iterator[None]:
    """Whoever asks for tasks that failed gets them, though others have them."""
    with mock.patch.object(again, "find_taken", return_value=()):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    job_lost,
    hold_forgotten,
    job_forgotten,
    epoch_not_raised,
    terminal_overwritten,
    over_and_admitted_again,
    fold_differs,
    stale_epoch_accepted,
    stopped_too_early,
    stop_not_sent,
    stopped_for_a_drain,
    start_not_repeated,
    limit_ignored,
    task_limit_ignored,
    past_its_limit_and_back,
    key_forgotten,
    retired_too_early,
    brought_back_twice,
)
