"""The books of one root: what is to run here, which keeper has it, how it ended, and what nobody may start any more.

The supervisor records a Start before anything else happens with it, hands its tasks to keepers, and tells what they
report until it is told to forget. Everything that it knows is on disk or with a keeper, so it may die at any moment. It
starts no process and knows no socket (`keeper` and `serving` do).
"""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from muster.engines.local.book import Book
from muster.engines.local.frames import Keep, KeeperAsked, Kept, News, TaskEvent
from muster.engines.local.launch import keys_on
from muster.engines.local.layout import FENCES, KEEPERS, LOGS, PROGRESS, STARTS, Key
from muster.engines.local.processes import read_boot_id
from muster.engines.local.progress import Mark
from muster.engines.local.ranges import End, keys_of, merge_exited, merge_held, merge_marks, merge_started
from muster.engines.local.spawning import CANNOT_RUN
from muster.engines.local.starts import (
    Recorded,
    clear_halves,
    drop_start,
    find_start,
    list_starts,
    record_start,
    record_width,
)
from muster.model.event import Held
from muster.model.instruction import Forget, Instruction, Start, Stop
from muster.ports.failpoint import failpoint

KILLED: Final = 137
TERMINATED: Final = 143

_log = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True, eq=False)
class Run:
    """One try of one task: the record it came with, the keeper that has it, whether it was begun, how it ended, and the
    last checkpoint and step of which it told."""

    key: Key
    start: str = ""
    keeper: int | None = None
    begun: bool = False
    end: End | None = None
    marks: tuple[Mark, ...] = ()


class Supervisor:
    """`asks` collects what each keeper is to be told, until somebody carries it there."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._boot = read_boot_id()
        self._runs: dict[Key, Run] = {}
        self._newest: dict[tuple[int, int], int] = {}
        self._left_of: Counter[str] = Counter()
        self._load = [0] * KEEPERS
        self._met: set[int] = set()
        self._adopted: list[Run] = []
        self._late: list[Stop] = []
        self._started: list[Key] = []
        self._marks: list[tuple[Key, Mark]] = []
        self._ended: list[tuple[Key, End]] = []
        self.asks: list[list[KeeperAsked]] = [[] for _ in range(KEEPERS)]
        for name in (STARTS, LOGS, PROGRESS):
            (root / name).mkdir(mode=0o700, exist_ok=True)
        self._fences = Book(root / FENCES, self._boot)

    def adopt_all(self) -> None:
        """Take over what an earlier supervisor recorded; the keepers will say what became of it."""
        clear_halves(self._root)
        for name in list_starts(self._root):
            recorded = find_start(self._root, name)
            if recorded is None:
                _log.error("cannot read the start %s, which is left alone", name)
                continue
            for key in recorded.tasks_here():
                if key not in self._runs:
                    self._adopted.append(self._know(Run(key, name)))
        for key, end in self._fences.runs.items():
            run = self._runs.get(key) or self._know(Run(key))
            run.end = end

    # What is known and what happened.

    def held(self) -> list[Held]:
        """Every run that is not forgotten."""
        return merge_held(self._runs)

    def is_empty(self) -> bool:
        """Whether every run is forgotten."""
        return not self._runs

    def retell(self) -> list[TaskEvent]:
        """The events of every run that is not forgotten, for somebody who may have missed them."""
        runs = self._runs.values()
        started = merge_started(run.key for run in runs if run.begun)
        marks = merge_marks((run.key, mark) for run in runs if run.end is None for mark in run.marks)
        return [*started, *marks, *merge_exited((run.key, run.end) for run in runs if run.end is not None)]

    def take_events(self) -> list[TaskEvent]:
        """What happened since the last call, starts first: a task that did both is told in order."""
        marks, ended = merge_marks(self._marks), merge_exited(self._ended)
        events: list[TaskEvent] = [*merge_started(self._started), *marks, *ended]
        self._started.clear()
        self._marks.clear()
        self._ended.clear()
        return events

    # What keepers say.

    def meet(self, number: int, kept: Kept) -> None:
        """A keeper says what it has. What it was to have and does not is handed out again: it never came to it."""
        self._met.add(number)
        for key, begun, end in kept.runs:
            run = self._runs.get(key) or self._know(Run(key))
            run.keeper = number
            if begun:
                self._began(run)
            if end is not None:
                self._tell_end(run, end)
        self._note_marks(kept.marks)
        known = {key for key, _, _ in kept.runs}
        self._load[number] = sum(end is None for _, _, end in kept.runs)
        self._hand_out(
            [run for run in self._runs.values() if run.keeper == number and run.end is None and run.key not in known]
        )
        if len(self._met) == KEEPERS and self._adopted:
            self._hand_out_adopted()

    def lose(self, number: int) -> None:
        """A keeper is gone. What it had is known again when the next one of its number has read its book."""
        self._met.discard(number)
        self.asks[number] = [ask for ask in self.asks[number] if not isinstance(ask, Keep)]

    def hear(self, number: int, news: News) -> None:
        """A keeper says what happened."""
        for key in news.started:
            run = self._runs.get(key)
            if run is not None:
                failpoint("supervisor.after_spawn")
                self._began(run)
        self._note_marks(news.marks)
        for key, end in news.ended:
            run = self._runs.get(key)
            self._load[number] -= 1
            if run is not None:
                failpoint("supervisor.after_exit")
                self._tell_end(run, end)

    # Instructions.

    def carry_out(self, instruction: Instruction, node: str) -> None:
        """Record an instruction; what follows from it happens in later turns."""
        if isinstance(instruction, Start):
            self._start(instruction, node)
        elif isinstance(instruction, Stop):
            self._stop(instruction)
        else:
            self._forget(instruction)

    def _start(self, start: Start, node: str) -> None:
        if start.width:
            record_width(self._root, start.job, start.epoch, start.width)
        new = [self._know(Run(key)) for key in keys_on(start, node) if key not in self._runs]
        stale = [run for run in new if run.key.epoch < self._newest[run.key.job, run.key.task]]
        self._fence(stale, End(TERMINATED, "a newer run of this task is here"))
        fresh = [run for run in new if run.end is None]
        if not fresh:
            return
        name = fresh[0].key.name
        try:
            record_start(self._root, name, Recorded(node, self._boot, start))
        except OSError as error:  # a full disk must not end the supervisor, which holds everybody's work
            self._fence(fresh, End(CANNOT_RUN, f"cannot record the run: {error.strerror}"))
            return
        failpoint("supervisor.after_record")
        self._left_of[name] += len(fresh)
        for run in fresh:
            run.start = name
        self._hand_out(fresh)

    def _stop(self, stop: Stop) -> None:
        unseen, keepers = [], set()
        if stop.width:
            record_width(self._root, stop.job, stop.epoch, stop.width)
        for key in keys_of(stop):
            run = self._runs.get(key)
            if run is None:
                unseen.append(self._know(Run(key)))
            elif run.end is not None:
                self._ended.append((key, run.end))
            elif run.keeper is None:  # adopted, and nobody has said yet what became of it
                self._late.append(Stop(*key[:2], key.task, 1, stop.grace_ms))
            else:
                keepers.add(run.keeper)
        self._fence(unseen, End(TERMINATED, "stopped before it was started"))
        for number in sorted(keepers):
            self.asks[number].append(stop)

    def _forget(self, forget: Forget) -> None:
        """Drop what has ended. What lives is not dropped: nobody would know any more who holds its devices."""
        keepers = set()
        fenced = []
        for key in keys_of(forget):
            run = self._runs.get(key)
            if run is None or run.end is None:
                continue
            del self._runs[key]
            if self._newest.get((key.job, key.task)) == key.epoch:
                del self._newest[key.job, key.task]
            self._drop_of(run.start)
            if run.keeper is None:
                fenced.append(key)
            else:
                keepers.add(run.keeper)
        for number in sorted(keepers):
            self.asks[number].append(forget)
        self._write_fences(lambda: self._fences.forget(fenced))

    # Handing out.

    def _hand_out(self, runs: list[Run]) -> None:
        """Give runs to keepers in stretches, to the one with the least to do."""
        if not self._met:
            self._adopted += runs
            return
        share = -(-len(runs) // len(self._met))
        for stretch in _stretches(runs, share):
            number = min(sorted(self._met), key=lambda each: self._load[each])
            self._load[number] += len(stretch)
            for run in stretch:
                run.keeper = number
            self.asks[number].append(Keep(stretch[0].start, stretch[0].key.task, len(stretch)))

    def _hand_out_adopted(self) -> None:
        """All keepers have spoken: what none of them has was recorded, and never begun."""
        waiting = [run for run in self._adopted if run.keeper is None and run.end is None]
        self._adopted = []
        lost = [run for run in waiting if self._boot_of(run) != self._boot]
        self._fence(lost, End(KILLED, "machine restarted"))
        self._hand_out([run for run in waiting if run.end is None])
        late, self._late = self._late, []
        for stop in late:
            self._stop(stop)

    def _boot_of(self, run: Run) -> str:
        recorded = find_start(self._root, run.start)
        return "" if recorded is None else recorded.boot

    # Small things.

    def _fence(self, runs: list[Run], end: End) -> None:
        """An end that no keeper knows: write it, so that the next supervisor says the same."""
        if not runs:
            return
        self._write_fences(lambda: self._fences.end((run.key, end) for run in runs))
        for run in runs:
            self._tell_end(run, end)

    def _write_fences(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            _log.error("cannot write %s: %s", FENCES, error)

    def _began(self, run: Run) -> None:
        if not run.begun:
            run.begun = True
            self._started.append(run.key)

    def _note_marks(self, marks: list[tuple[Key, Mark]]) -> None:
        for key, mark in marks:
            run = self._runs.get(key)
            if run is not None and run.end is None:
                kept = () if mark.checkpointed else tuple(each for each in run.marks if each.checkpointed)
                run.marks = (*kept, mark)
                self._marks.append((key, mark))

    def _tell_end(self, run: Run, end: End) -> None:
        if run.end is None:
            run.end = end
            self._ended.append((run.key, end))

    def _know(self, run: Run) -> Run:
        key = run.key
        self._runs[key] = run
        self._newest[key.job, key.task] = max(key.epoch, self._newest.get((key.job, key.task), 0))
        if run.start:
            self._left_of[run.start] += 1
        return run

    def _drop_of(self, name: str) -> None:
        if not name:
            return
        self._left_of[name] -= 1
        if self._left_of[name] <= 0:
            del self._left_of[name]
            drop_start(self._root, name)


def _stretches(runs: list[Run], most: int) -> Iterator[list[Run]]:
    """Neighbours of one record, at most so many together."""
    stretch: list[Run] = []
    for run in runs:
        if stretch and (
            len(stretch) == most
            or run.start != stretch[0].start
            or run.key != stretch[-1].key._replace(task=stretch[-1].key.task + 1)
        ):
            yield stretch
            stretch = []
        stretch.append(run)
    if stretch:
        yield stretch
