"""The auditor's books of goodput: kept from the facts alone, the plain way.

Device time that nobody holds is added up from entry to entry; what was held is booked run by run and task by task, each
with instants of its own. It shares with the world the words and the rule of what is of use, and not the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from muster.model.fact import Progressed, TasksProgressed
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.world.audit.books import NodeBook
from muster.world.audit.mark import MarkBooks
from muster.world.goodput import (
    BOOKED,
    CHECKPOINTING,
    LOST,
    NO_PARTS,
    PARTS,
    RESTARTING,
    SPARE,
    STARTING,
    STOPPING,
    USEFUL,
    Goodput,
    Parts,
)
from muster.world.laws.law import require
from muster.world.tasks import Tasks

Key: TypeAlias = tuple[str, str]
Seats: TypeAlias = list[tuple[str, int]]
"""Flavors, and the thousandths of devices that a run holds of each."""

_EXACT: Final = "device time is what there was, times how long"
_RULE: Final = "only what succeeded or was checkpointed is of use"
_GANG: Final = -1
KINDS: Final = len(BOOKED)


def seats_of(spec: Spec, nodes: Sequence[NodeBook], places: Iterable[tuple[int, int]]) -> Seats:
    """What tasks of one kind hold on some nodes, by flavor."""
    milli = 1000 * spec.ask.gpus + spec.ask.gpu_milli
    return [(nodes[slot].flavor(), milli * tasks) for slot, tasks in places] if milli else []


class RunBook:
    """When a try of a gang, or of a task, came to where it is; `saved` is when it was last checkpointed. `earlier` is
    what it did with other widths since then, and for how long. It `writes` a checkpoint since then, and `wrote` for so
    long, since it was saved or has its width."""

    __slots__ = ("earlier", "is_first", "placed", "ran", "saved", "stopped", "writes", "wrote")

    def __init__(self, placed: int, is_first: bool) -> None:
        self.placed = placed
        self.is_first = is_first
        self.ran: int | None = None
        self.stopped: int | None = None
        self.saved = self.wrote = 0
        self.writes: int | None = None
        self.earlier: list[tuple[Seats, int]] = []


class GoodputBooks:
    """Levels and times of each flavor, what was booked by tenant and flavor, and every run that holds devices."""

    def __init__(self, marks: MarkBooks) -> None:
        self.at = 0
        self._parts: dict[int, tuple[str, Parts]] = {}
        self._levels: dict[str, list[int]] = {}
        self._times: dict[str, list[int]] = {}
        self._booked: dict[Key, list[int]] = {}
        self._runs: dict[tuple[int, int], RunBook] = {}
        self._spares: dict[int, tuple[int, Seats]] = {}
        self._touched: dict[Key, None] = {}
        self._marks = marks

    def pass_time(self, at: int) -> None:
        """Everything stood as it did until now."""
        for flavor, levels in self._levels.items():
            times = self._times[flavor]
            for part, level in enumerate(levels):
                times[part] += level * (at - self.at)
        self.at = at

    def set_node(self, slot: int, flavor: str, parts: Parts) -> None:
        """A node has so much, and of what nobody holds so much is idle, barred, gone, kept and claimed."""
        old_flavor, old = self._parts.get(slot, (flavor, NO_PARTS))
        for name, sign, amounts in ((old_flavor, -1, old), (flavor, 1, parts)):
            levels = self._levels.setdefault(name, [0] * PARTS)
            self._times.setdefault(name, [0] * PARTS)
            for part, amount in enumerate(amounts):
                levels[part] += sign * amount
        self._parts[slot] = (flavor, parts)

    def place(self, job: int, epoch: int, task: int = _GANG) -> None:
        """A try got its places."""
        self._runs[(job, task)] = RunBook(self.at, epoch == 1)

    def run(self, job: int) -> None:
        """A gang is up."""
        if (job, _GANG) in self._runs:
            self._runs[(job, _GANG)].ran = self.at

    def mark(self, item: Progressed, spec: Spec, seats: Seats) -> None:
        """A gang is so far."""
        self._marks.save(item)
        self._mark((item.job, _GANG), spec, seats, item)

    def mark_task(self, item: TasksProgressed, task: int, spec: Spec, seats: Seats) -> None:
        """A task is so far."""
        self._marks.tell(item, task, self.at)
        self._mark((item.job, task), spec, seats, item)

    def _mark(self, who: tuple[int, int], spec: Spec, seats: Seats, item: Progressed | TasksProgressed) -> None:
        if item.checkpointed:
            self._save(self._runs[who], spec, seats)
        else:
            self._write(self._runs[who], spec, seats, writes=item.checkpointing)

    def _save(self, run: RunBook, spec: Spec, seats: Seats) -> None:
        if run.ran is not None:
            self._book(spec, seats, USEFUL, self._worked(run, spec, seats, run.ran))
            self._settle(run, spec, USEFUL)
            run.saved = self.at

    def _write(self, run: RunBook, spec: Spec, seats: Seats, *, writes: bool) -> None:
        """What runs says that it writes a checkpoint, or that it does not. If that is news, all is booked that is
        known: its start, and what it wrote."""
        if run.ran is not None and writes != (run.writes is not None):
            self._book(spec, seats, STARTING if run.is_first else RESTARTING, run.ran - run.placed)
            self._cease_writing(run, spec, seats)
            run.placed, run.writes = run.ran, self.at if writes else None

    def resize(self, job: int, spec: Spec, seats: Seats) -> None:
        """A gang that runs gets another width: what it did with the one that it had is known, its fate is not."""
        run = self._runs[(job, _GANG)]
        if run.ran is not None:
            self._book(spec, seats, STARTING if run.is_first else RESTARTING, run.ran - run.placed)
            writes = run.writes is not None
            run.earlier.append((seats, self._worked(run, spec, seats, run.ran)))
            run.placed = run.ran = self.at
            run.writes = self.at if writes else None

    def stop(self, job: int, spec: Spec, seats: Seats) -> None:
        """A gang is told to stop: whatever it does from now on is of no use, nor what it did since it was saved."""
        self._close(self._runs[(job, _GANG)], spec, seats, LOST)
        self._runs[(job, _GANG)].stopped = self.at

    def unsaved_ms(self, job: int, at: int, task: int = _GANG) -> int:
        """For how long a gang had been up at an instant, or with the width that it has, since it was last saved; or a
        task of an array."""
        run = self._runs[(job, task)]
        return 0 if run.ran is None else max(0, at - max(run.ran, run.saved))

    def end(self, job: int, spec: Spec, seats: Seats, is_useful: bool) -> None:
        """A gang holds nothing any more."""
        self._close(self._runs.pop((job, _GANG)), spec, seats, USEFUL if is_useful else LOST)

    def set_spares(self, job: int, spec: Spec, seats: Seats) -> None:
        """A gang has these spares from now on: those that it had did nothing while it had them."""
        since, before = self._spares.pop(job, (self.at, []))
        self._book(spec, before, SPARE, self.at - since)
        if seats:
            self._spares[job] = (self.at, seats)

    def move_task(self, job: int, task: int, spec: Spec, seats: Seats, to: TaskPhase) -> None:
        """A task that holds devices comes into another phase: each phase is booked as it ends."""
        run = self._runs[(job, task)]
        self._marks.drop(job, task)
        self._close(run, spec, seats, USEFUL if to == TaskPhase.SUCCEEDED else LOST)
        if to == TaskPhase.RUNNING:
            run.ran = run.placed = self.at
        elif to == TaskPhase.STOPPING:
            run.stopped = self.at
        else:
            del self._runs[(job, task)]

    def compare(self, goodput: Goodput, arrays: Mapping[int, Tasks]) -> None:
        """Whether the world's account says the same, and what tasks said."""
        self._marks.compare(arrays)
        for flavor, times in self._times.items():
            stock = goodput.stocks[flavor]
            kept = (stock.levels, [stock.time(part, self.at) for part in range(PARTS)])
            booked = (self._levels[flavor], times)
            require(kept == booked, _EXACT, f"{flavor}: kept {kept}, booked {booked}")
        for key in self._touched:
            row = goodput.booked.get(key, [0] * KINDS)
            require(row == self._booked[key], _RULE, f"{key}: kept {row}, booked {self._booked[key]}")
        self._touched.clear()

    def _close(self, run: RunBook, spec: Spec, seats: Seats, ran_as: int) -> None:
        if run.stopped is not None:
            self._book(spec, seats, STOPPING, self.at - run.stopped)
            return
        up = self.at if run.ran is None else run.ran
        self._book(spec, seats, STARTING if run.is_first else RESTARTING, up - run.placed)
        if run.ran is not None:
            self._book(spec, seats, ran_as, self._worked(run, spec, seats, run.ran))
            self._settle(run, spec, ran_as)

    def _worked(self, run: RunBook, spec: Spec, seats: Seats, ran: int) -> int:
        """For how long a run, which is up since then, worked with the width that it has since it was saved; what it
        wrote meanwhile is booked, and counted from now on."""
        self._cease_writing(run, spec, seats)
        wrote, run.wrote = run.wrote, 0
        return self.at - max(ran, run.saved) - wrote

    def _cease_writing(self, run: RunBook, spec: Spec, seats: Seats) -> None:
        if run.writes is not None:
            self._book(spec, seats, CHECKPOINTING, self.at - run.writes)
            run.wrote += self.at - run.writes
            run.writes = None

    def _settle(self, run: RunBook, spec: Spec, ran_as: int) -> None:
        for seats, span in run.earlier:
            self._book(spec, seats, ran_as, span)
        run.earlier.clear()

    def _book(self, spec: Spec, seats: Seats, kind: int, span: int) -> None:
        for flavor, amount in seats:
            self._booked.setdefault((spec.tenant, flavor), [0] * KINDS)[kind] += amount * span
            self._touched[(spec.tenant, flavor)] = None
