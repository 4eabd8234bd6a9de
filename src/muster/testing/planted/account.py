"""Bugs planted in the accounts: time that is in two buckets, lost work that passes for useful, a meter that forgets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from unittest import mock

from msgspec.structs import replace

from muster.model.fact import Progressed, TasksProgressed
from muster.model.goodput import Bucket
from muster.model.instruction import NOT_SAVED
from muster.model.job import Meter
from muster.model.phase import Lease, TaskPhase
from muster.model.ranges import tasks_in
from muster.testing.planted.plant import Plant
from muster.units import HOUR_MS
from muster.world import accounting
from muster.world.diary import Diary
from muster.world.goodput import BOOKED_NODE, IDLE, KEPT, LOST, STOPPING, Goodput, Span
from muster.world.marks import Marks
from muster.world.tasks import Tasks
from muster.world.world import World


@contextlib.contextmanager
def bucket_counted_twice() -> Iterator[None]:
    """The time in which a run stops is lost, too."""
    honest = Goodput._book

    def book(goodput: Goodput, job: Any, held: Any, spans: Sequence[Span]) -> None:
        honest(goodput, job, held, spans)
        honest(goodput, job, held, [(LOST, *span[1:]) for span in spans if span[0] == STOPPING])

    with mock.patch.object(Goodput, "_book", book):
        yield


@contextlib.contextmanager
def lost_work_is_useful() -> Iterator[None]:
    """Whatever ran was of use."""
    gang, tasks = _generous(Goodput.close), _generous(Goodput.close_tasks)
    with mock.patch.object(Goodput, "close", gang), mock.patch.object(Goodput, "close_tasks", tasks):
        yield


def _generous(honest: Callable[..., None]) -> Callable[..., None]:
    def close(*about: Any, is_useful: bool) -> None:  # noqa: ARG001 - not looking is the bug
        honest(*about, is_useful=True)

    return close


@contextlib.contextmanager
def idle_while_held() -> Iterator[None]:
    """Devices that an array takes go on being idle."""
    honest = Goodput.take

    def take(goodput: Goodput, ask: Any, leases: Any, at: int, sign: int = 1) -> None:
        if not isinstance(leases, list) or sign < 0:
            honest(goodput, ask, leases, at, sign)

    with mock.patch.object(Goodput, "take", take):
        yield


@contextlib.contextmanager
def meter_forgets() -> Iterator[None]:
    """What a job used is what its last tasks used."""
    with mock.patch.object(Meter, "add", lambda _, cpu_ms, rss_bytes: Meter(cpu_ms, rss_bytes)):
        yield


@contextlib.contextmanager
def hour_without_end() -> Iterator[None]:
    """What was used is remembered of the hour in which it began."""
    honest = Diary.spend

    def spend(diary: Diary, job: Any, flavor: str, amount: int, span: Span) -> None:
        kind, begin, end = span
        hour = begin - begin % HOUR_MS
        count = -(-(end - begin) // HOUR_MS)
        for part in range(count):
            width = (end - begin) * (part + 1) // count - (end - begin) * part // count
            honest(diary, job, flavor, amount, (kind, hour, hour + width))

    with mock.patch.object(Diary, "spend", spend):
        yield


@contextlib.contextmanager
def claimed_counts_as_idle() -> Iterator[None]:
    """What comes free of a claim's devices is idle."""

    def step(goodput: Goodput, lease: Lease, amount: int, at: int) -> None:
        goodput.by_slot[lease.slot].step(KEPT if goodput.kept[lease.slot] == BOOKED_NODE else IDLE, amount, at)

    with mock.patch.object(Goodput, "_step_kept", step):
        yield


@contextlib.contextmanager
def writing_counts_as_work() -> Iterator[None]:
    """The time in which a run writes a checkpoint is judged like the rest."""
    honest = Goodput.mark

    def mark(goodput: Goodput, job: Any, item: Progressed, at: int) -> None:
        honest(goodput, job, replace(item, checkpointing=False), at)

    with mock.patch.object(Goodput, "mark", mark):
        yield


@contextlib.contextmanager
def checkpoint_of_tasks_ignored() -> Iterator[None]:
    """What a task saved is lost with the rest if it does not succeed."""
    honest = Goodput.mark_tasks

    def mark_tasks(goodput: Goodput, job: Any, tasks: Tasks, item: TasksProgressed, at: int) -> None:
        honest(goodput, job, tasks, replace(item, checkpointed=False), at)

    with mock.patch.object(Goodput, "mark_tasks", mark_tasks):
        yield


@contextlib.contextmanager
def marks_outlive_their_try() -> Iterator[None]:
    """A task that is sent back is as far as it was."""
    with mock.patch.object(Marks, "clear"):
        yield


@contextlib.contextmanager
def nobody_told_where_to_resume() -> Iterator[None]:
    """What a try saved is forgotten with it."""
    honest = Marks.clear

    def clear(marks: Marks, ranges: Any) -> None:
        honest(marks, ranges)
        for task in tasks_in(ranges):
            marks.resume[task] = NOT_SAVED

    with mock.patch.object(Marks, "clear", clear):
        yield


@contextlib.contextmanager
def any_try_may_say() -> Iterator[None]:
    """Whatever runs is as far as any try of it says."""
    honest = Tasks.find_runs

    def find_runs(tasks: Tasks, ranges: Any, wanted: Any, epoch: int) -> Any:
        known = tasks.epoch[ranges[0]] if wanted == (TaskPhase.RUNNING,) else epoch
        return honest(tasks, ranges, wanted, known)

    with mock.patch.object(Tasks, "find_runs", find_runs):
        yield


@contextlib.contextmanager
def booked_wait_counts_as_demand() -> Iterator[None]:
    """Whoever waits for a window of its booking could use any device."""
    honest = accounting._want_of

    def want_of(world: World, flavor: str, over: Any) -> Bucket:
        bookings, world.bookings = world.bookings, {}
        found = honest(world, flavor, over)
        world.bookings = bookings
        return found

    with mock.patch.object(accounting, "_want_of", want_of):
        yield


PLANTS: Final[tuple[Plant, ...]] = (
    bucket_counted_twice,
    lost_work_is_useful,
    idle_while_held,
    meter_forgets,
    hour_without_end,
    claimed_counts_as_idle,
    writing_counts_as_work,
    checkpoint_of_tasks_ignored,
    marks_outlive_their_try,
    nobody_told_where_to_resume,
    any_try_may_say,
    booked_wait_counts_as_demand,
)
