"""Bugs planted in waiting: for other jobs to start or end, and for one's turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final
from unittest import mock

from muster.kernel import afters, throttles
from muster.lifecycle import after
from muster.lifecycle.after import Verdict
from muster.model import fact
from muster.model.after import When
from muster.model.job import Job
from muster.model.phase import TaskPhase
from muster.testing.planted.plant import Plant
from muster.world import queue
from muster.world.line import Line
from muster.world.queue import Queue
from muster.world.world import World


@contextlib.contextmanager
def dependency_ignored() -> Iterator[None]:
    """A job that waits for others stands in its line."""

    def enqueue(world: World, job: Job) -> None:
        world.queue.add(job, world.tiers[job.spec.tier])

    def dequeue(world: World, job: Job) -> None:
        if world.queue.find_line(job) is not None:
            world.queue.remove(job)

    with mock.patch.object(World, "enqueue", enqueue), mock.patch.object(World, "dequeue", dequeue):
        yield


@contextlib.contextmanager
def dependency_forgotten() -> Iterator[None]:
    """Whoever waits for a job that fails is not told."""
    honest = afters._moved

    def moved(item: fact.Fact) -> Sequence[int]:
        return () if isinstance(item, fact.Ended) and item.phase == TaskPhase.FAILED else honest(item)

    with mock.patch.object(afters, "_moved", moved):
        yield


@contextlib.contextmanager
def any_end_is_a_success() -> Iterator[None]:
    """Whoever waits for a success starts after any end."""

    def judge(when: When, stage: TaskPhase) -> Verdict:
        return Verdict.MET if after.judge(when, stage) is Verdict.NEVER else after.judge(when, stage)

    with mock.patch.object(afters, "judge", judge):
        yield


@contextlib.contextmanager
def any_end_of_its_like() -> Iterator[None]:
    """A task follows its like however that ended."""
    ends = (*afters._MET_AT, *afters._NEVER_AT)
    with mock.patch.object(afters, "_MET_AT", ends), mock.patch.object(afters, "_NEVER_AT", (TaskPhase.BLOCKED,)):
        yield


@contextlib.contextmanager
def likes_forgotten() -> Iterator[None]:
    """Nobody tells a task that its like is over."""
    with mock.patch.object(afters, "_decide_tasks", return_value=None):
        yield


@contextlib.contextmanager
def throttle_lets_on_too_many() -> Iterator[None]:
    """Of an array that says how many tasks may be at it at once, one more follows than ended."""
    honest = throttles._find_next

    def find_next(world: World, job: Job, most: int) -> list[tuple[int, int]]:
        return honest(world, job, most + 1)

    with mock.patch.object(throttles, "_find_next", find_next):
        yield


@contextlib.contextmanager
def throttled_for_ever() -> Iterator[None]:
    """Nobody follows the first tasks of such an array."""
    with mock.patch.object(throttles, "_find_next", return_value=[]):
        yield


@contextlib.contextmanager
def due_time_ignored() -> Iterator[None]:
    """A line offers its oldest, whatever is due sooner."""

    def soonest(line: Line, since: int) -> int:  # noqa: ARG001 - not looking is the bug
        return line.heap[0]

    with mock.patch.object(Line, "_soonest", soonest):
        yield


@contextlib.contextmanager
def size_before_due_time() -> Iterator[None]:
    """Whoever asks for less goes first, and only of equal sizes whoever is due sooner."""
    honest = Line._key

    def key(line: Line, place: int, since: int) -> int:
        due = line._due_at.pop(place & ((1 << 50) - 1), None)
        found = honest(line, place, since)
        if due is not None:
            line._due_at[place & ((1 << 50) - 1)] = due
        return found

    with mock.patch.object(Line, "_key", key):
        yield


@contextlib.contextmanager
def promise_without_order() -> Iterator[None]:
    """Whoever is promised something stands in its line as if nothing were."""
    with mock.patch.object(queue, "due_of", side_effect=lambda job, _: job.spec.due_at):
        yield


@contextlib.contextmanager
def head_unnoticed() -> Iterator[None]:
    """A line stays where it stood among its tenant's when somebody joins it who goes before all others."""
    honest = Line._keep_place

    def keep_place(line: Line) -> None:
        if line.first(-1) >= line.place:
            honest(line)

    with mock.patch.object(Line, "_keep_place", keep_place):
        yield


@contextlib.contextmanager
def shadows_replaced() -> Iterator[None]:
    """Whoever stands in a shadow is written on a new list in every cycle, which nobody looks at."""

    def wake_shaded(lines: Queue) -> None:
        lines.awake |= lines.shadowed
        lines.shadowed = {}

    with mock.patch.object(Queue, "wake_shaded", wake_shaded):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    dependency_ignored,
    dependency_forgotten,
    any_end_is_a_success,
    any_end_of_its_like,
    likes_forgotten,
    throttle_lets_on_too_many,
    throttled_for_ever,
    due_time_ignored,
    size_before_due_time,
    promise_without_order,
    head_unnoticed,
    shadows_replaced,
)
