"""A keeper: the parent of tasks. It starts them, ends them, and writes down how they ended, whoever else lives or dies.

It is a process of its own that outlives the server and the supervisor, so that neither's death touches a task or loses
its exit code. Everything that its tasks leave behind comes to it, also what made a session of its own: a keeper is the
reaper of its descendants. Its book says what it began; if it is killed, the next one ends what it left, and says so.

It decides nothing, and never blocks: launches are done in slices, and whatever must be looked at again later stands in
one heap of looks. It knows no socket (`keeping` does).
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import heapq
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from muster.engines.local.book import Book
from muster.engines.local.ceilings import Ceilings
from muster.engines.local.containers import (
    NO_RUNTIME,
    explain_failure,
    find_runtime,
    is_minder,
    plan_container,
    plan_removal,
    plan_signal,
)
from muster.engines.local.errands import Errand, Errands
from muster.engines.local.groups import VARIABLE as GROUP_VARIABLE
from muster.engines.local.groups import find_groups
from muster.engines.local.launch import Launch, marks_of, plan_launches
from muster.engines.local.layout import LOGS, Key, keeper_name, log_path, name_of_root
from muster.engines.local.logs import (
    LOG_BYTES_MAX,
    LOG_VARIABLE,
    SCARCE_BYTES_MAX,
    most_kept,
    open_log,
    trim_log,
)
from muster.engines.local.processes import (
    Process,
    find_family,
    find_process,
    is_handled,
    list_children,
    list_processes,
    read_boot_id,
    read_environment,
    signal_group,
    signal_process,
)
from muster.engines.local.progress import Mark, Watches
from muster.engines.local.ranges import End, keys_of
from muster.engines.local.spawning import CANNOT_RUN, CannotRunError, make_expendable, spawn
from muster.engines.local.starts import find_start, list_starts
from muster.model.instruction import Forget, Stop
from muster.model.spec import Spec

LAUNCHES_PER_TURN_MAX: Final = 8
LOOK_AGAIN_S: Final = 0.02
KILL_AGAIN_S: Final = 0.1
SWEEP_S: Final = 0.05
PROGRESS_S: Final = 0.25
TRIM_S: Final = 0.25
TRIMS_MAX: Final = 128
WALKS_MAX: Final = 3
KILLED: Final = 128 + signal.SIGKILL
TERMINATED: Final = 128 + signal.SIGTERM
_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h

_log = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True, eq=False)
class Run:
    """A living run: its task's process, when it is to be killed if it was asked to end, and by what it is asked."""

    key: Key
    pid: int
    kill_at: float | None = None
    stop_signal: int = signal.SIGTERM


class Keeper:
    """The runs of one keeper. `started`, `marks` and `ended` collect what happened until somebody takes it."""

    def __init__(self, root: Path, number: int, own: Mapping[str, str]) -> None:
        self._root = root
        self._own = own
        self._book = Book(root / f"{keeper_name(number)}.book", read_boot_id())
        self._queued: set[Key] = set()
        self._launches: deque[Iterator[Launch]] = deque()
        self._runs: dict[Key, Run] = {}
        self._by_pid: dict[int, Run] = {}
        self._leaving: dict[Key, tuple[End, list[Process]]] = {}
        self._looks: list[tuple[float, Key]] = []
        self._sweep_at: float | None = None
        self._progress_at = 0.0
        self._trim_at = 0.0
        self._log_bytes_max = _read_log_bytes_max(own)
        self._ceilings = Ceilings(find_groups(own.get(GROUP_VARIABLE, ""), f"{name_of_root(root)}-{number}"))
        self._runtime = find_runtime(own.get("PATH", ""))
        self._images: dict[Key, str] = {}
        self._errands = Errands(own)
        self._watches = Watches(root)
        self.started: list[Key] = []
        self.ended: list[tuple[Key, End]] = []
        self.marks: list[tuple[Key, Mark]] = []

    def recover(self) -> None:
        """End what an earlier keeper of this book left behind."""
        lost = [key for key, end in self._book.runs.items() if end is None]
        is_same_life = self._book.boot_before == read_boot_id()
        if is_same_life and lost:
            _kill_marked(lost, self._root)
        note = "its keeper was killed" if is_same_life else "machine restarted"
        self._images = {key: image for key, image in self._recorded_images() if key in lost}
        self._note_ends([(key, End(KILLED, note)) for key in lost])

    def _recorded_images(self) -> Iterator[tuple[Key, str]]:
        """Which of the recorded runs have an image."""
        for recorded in map(partial(find_start, self._root), list_starts(self._root)):
            if recorded is not None and recorded.start.spec.image:
                yield from ((key, recorded.start.spec.image) for key in recorded.tasks_here())

    # What is known.

    def inventory(self) -> list[tuple[Key, bool, End | None]]:
        """Every run that is not forgotten: whether it was begun, and how it ended."""
        begun = [(key, True, end) for key, end in self._book.runs.items()]
        return [*begun, *((key, False, None) for key in sorted(self._queued))]

    def last_marks(self) -> list[tuple[Key, Mark]]:
        """How far living runs said that they are."""
        return self._watches.last()

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs and nothing waits to run."""
        return not self._runs and not self._queued and not self._leaving

    @property
    def is_launching(self) -> bool:
        """Whether there is more to start, so that the next turn comes at once."""
        return bool(self._queued)

    def delay_s(self) -> float | None:
        """How long nothing needs to be done, unless something happens; None for ever."""
        if self._queued:
            return 0.0
        looks = (
            self._sweep_at,
            self._errands.look_at,
            self._looks[0][0] if self._looks else None,
            self._progress_at if self._runs else None,
            self._ceilings.look_at if self._runs else None,
            self._trim_at if self._runs else None,
        )
        dates = [at for at in looks if at is not None]
        return max(0.0, min(dates) - time.monotonic()) if dates else None

    # What is asked.

    def keep(self, name: str, first: int, count: int) -> None:
        """Start tasks of a recorded Start, in later turns. Those that are known here are left as they are."""
        recorded = find_start(self._root, name)
        if recorded is None:
            _log.error("cannot read the start %s, which is left alone", name)
            return
        within = range(first, first + count)
        keys = [key for key in recorded.tasks_here() if key.task in within and key not in self._book.runs]
        self._queued.update(keys)
        if keys:
            launches = plan_launches(recorded.start, recorded.node, self._own, self._root, within)
            self._launches.append(self._in_containers(launches, recorded.start.spec))

    def _in_containers(self, launches: Iterator[Launch], spec: Spec) -> Iterator[Launch]:
        """The same, in containers if that is asked for and can be done; else they stay, and are refused one by one."""
        for launch in launches:
            if spec.image:
                self._images[launch.key] = spec.image
                if self._runtime is not None:
                    yield plan_container(launch, spec.image, self._runtime, self._root, spec.env)
                    continue
            yield launch

    def stop(self, stop: Stop) -> None:
        """The polite signal, once, and a date for the other one. A later Stop may only bring the date forward."""
        asked = []
        kill_at = time.monotonic() + stop.grace_ms / 1000
        for key in keys_of(stop):
            if key in self._queued:
                self._queued.discard(key)
                self._note_ends([(key, End(TERMINATED, "stopped before it was started"))])
            run = self._runs.get(key)
            if run is None:
                continue
            if run.kill_at is None:
                asked.append(run)
            if run.kill_at is None or kill_at < run.kill_at:
                run.kill_at = kill_at
                heapq.heappush(self._looks, (kill_at, key))
        self._ask_to_end(asked)

    def forget(self, forget: Forget) -> None:
        """Drop what has ended."""
        self._try_book(
            lambda: self._book.forget(key for key in keys_of(forget) if self._book.runs.get(key) is not None)
        )

    # Turns of the loop.

    def tend(self) -> None:
        """Do what is due, a slice of the launches, and take in what ended."""
        self._look()
        self._launch_some()
        self._reap()
        now = time.monotonic()
        self._errands.look(now)
        if self._sweep_at is not None and self._sweep_at <= now:
            self._sweep_at = None
            self._sweep()
        if self._runs and self._trim_at <= now:
            self._trim_at = now + TRIM_S
            self._trim_logs()
        over = self._ceilings.look(now) if self._runs else ()
        self._signal([self._runs[key] for key in over if key in self._runs], signal.SIGKILL)
        if self._runs and self._progress_at <= now:
            self._progress_at = now + PROGRESS_S
            self.marks += self._watches.look(self._runs)

    def _launch_some(self) -> None:
        slice_ = list(self._next_launches())
        if not slice_:
            return
        try:
            self._book.begin(launch.key for launch in slice_)
        except OSError as error:  # a full disk: what cannot be written down must not run
            end = End(CANNOT_RUN, f"cannot record the run: {error.strerror}")
            self._note_ends([(launch.key, end) for launch in slice_])
            return
        failed = []
        for launch in slice_:
            if launch.key in self._images and self._runtime is None:
                failed.append((launch.key, End(CANNOT_RUN, NO_RUNTIME)))
                continue
            log = open_log(self._log_of(launch.key))
            try:
                pid = spawn(launch, log)
            except CannotRunError as error:
                failed.append((launch.key, error.end))
                continue
            finally:
                os.close(log)
            make_expendable(pid)
            self._ceilings.add(launch.key, pid, launch.ask.memory_bytes, launch.ask.cpu_milli, time.monotonic())
            polite = signal.Signals[f"SIG{launch.stop_signal or 'TERM'}"]
            self._runs[launch.key] = self._by_pid[pid] = Run(launch.key, pid, stop_signal=polite)
            self.started.append(launch.key)
        os.chdir(self._root)  # the last task's directory is not ours to hold
        if failed:
            self._note_ends(failed)

    def _next_launches(self) -> Iterator[Launch]:
        """The next few whose turn it is; those that were stopped meanwhile are passed over."""
        given = 0
        while self._launches and given < LAUNCHES_PER_TURN_MAX:
            launch = next(self._launches[0], None)
            if launch is None:
                self._launches.popleft()
            elif launch.key in self._queued:
                self._queued.discard(launch.key)
                given += 1
                yield launch

    def _reap(self) -> None:
        """Take in every child that ended: tasks, and what tasks left to us."""
        ends = []
        with contextlib.suppress(ChildProcessError):
            while (seen := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                run = self._by_pid.pop(seen.si_pid, None)
                left = [] if run is None else self._end_group(run)
                _, status, usage = os.wait4(seen.si_pid, 0)  # from here on its number may be somebody else's
                self._errands.end(seen.si_pid, status, time.monotonic())
                self._sweep_at = self._sweep_at or time.monotonic() + SWEEP_S
                if run is None:
                    continue
                del self._runs[run.key]
                self.marks += self._watches.end(run.key)
                code = os.waitstatus_to_exitcode(status)
                cpu_ms = round(1000 * (usage.ru_utime + usage.ru_stime))
                word = self._ceilings.remove(run.key)
                if run.key in self._images:
                    word = word or explain_failure(self._runtime, code)
                end = End(128 - code if code < 0 else code, word, cpu_ms, usage.ru_maxrss * 1024)
                if left:
                    self._leaving[run.key] = (end, left)
                    heapq.heappush(self._looks, (time.monotonic(), run.key))
                else:
                    ends.append((run.key, end))
        if ends:
            self._note_ends(ends)

    def _end_group(self, run: Run) -> list[Process]:
        """A task ended: so does its group and, if it was asked to end, all of its family. Who of them is on its way."""
        signal_group(run.pid, signal.SIGKILL)
        left: dict[int, Process] = {}
        for _ in range(WALKS_MAX if run.kill_at is not None else 0):
            family = [process for process in find_family({run.pid})[run.pid] if process.pid not in left]
            for process in family:
                signal_process(process, signal.SIGKILL)
                left[process.pid] = process
            if not family:
                break
        return list(left.values())

    def _look(self) -> None:
        now = time.monotonic()
        due = []
        while self._looks and self._looks[0][0] <= now:
            _, key = heapq.heappop(self._looks)
            if key in self._leaving:
                self._look_at_leaving(key)
            elif (run := self._runs.get(key)) is not None and run.kill_at is not None and run.kill_at <= now:
                due.append(run)
                heapq.heappush(self._looks, (now + KILL_AGAIN_S, key))
        self._signal(due, signal.SIGKILL)

    def _look_at_leaving(self, key: Key) -> None:
        """A run is over once all of it is gone, since its devices are free only then."""
        end, left = self._leaving[key]
        left = [process for process in left if _is_there(process)]
        if left:
            self._leaving[key] = (end, left)
            heapq.heappush(self._looks, (time.monotonic() + LOOK_AGAIN_S, key))
        else:
            del self._leaving[key]
            self._note_ends([(key, end)])

    def _ask_to_end(self, runs: list[Run]) -> None:
        """The polite signal. One that a job chose would end whoever does not handle it, a shell around the program for
        example, so it goes to those who do; if nobody does, all are asked as always. A container is asked by whoever
        runs it: what stands for it here may not pass on what it hears."""
        bare = [run for run in runs if run.key not in self._images]
        for run in runs if len(bare) < len(runs) else ():
            self._ask_container(run)
        choosy = [run for run in bare if run.stop_signal != signal.SIGTERM]
        families = find_family({run.pid for run in choosy})
        asked = {run.pid for run in choosy if _tell_handlers(run, families[run.pid])}
        self._signal([run for run in bare if run.pid not in asked], signal.SIGTERM)

    def _ask_container(self, run: Run) -> None:
        if run.key in self._images and self._runtime is not None:
            words = plan_signal(self._root, run.key, self._runtime, run.stop_signal)
            self._errands.send(Errand(words, partial(self._runs.__contains__, run.key)))

    def _signal(self, runs: list[Run], number: int) -> None:
        """Signal whole families. Their leaders are not reaped, so that their numbers are still their own."""
        families = find_family({run.pid for run in runs})
        for run in runs:
            signal_group(run.pid, number)
            signal_group(run.pid, signal.SIGCONT)  # one that is stopped would not hear
            for process in families[run.pid]:
                if process.group != run.pid:  # once each, not twice
                    signal_process(process, number)

    def _sweep(self) -> None:
        """End what runs that are over left to us. What a living run left to itself is its own affair, and who minds a
        container has no marks: it goes when its container is removed."""
        for pid in list_children():
            process = None if pid in self._by_pid or pid in self._errands else find_process(pid)
            if process is None or not process.is_alive or process.session in self._by_pid:
                continue
            if self._images and is_minder(pid):
                continue
            environment = read_environment(pid)
            if not self._runs or not any(marks_of(key, self._root) <= environment for key in self._runs):
                signal_process(process, signal.SIGKILL)

    def _trim_logs(self) -> None:
        """Look at a few logs at a time, those looked at longest ago first."""
        most = most_kept(self._root / LOGS, self._log_bytes_max)
        for key in list(islice(self._runs, TRIMS_MAX)):
            if trim_log(self._log_of(key), most):
                _log.warning("the log of %s is above %d bytes: its middle was dropped", key.name, most)
            self._runs[key] = self._runs.pop(key)

    # Small things.

    def _log_of(self, key: Key) -> Path:
        return log_path(self._root, key.job, key.task, key.epoch)

    def _note_ends(self, ends: list[tuple[Key, End]]) -> None:
        self._try_book(lambda: self._book.end(ends))
        self.ended += ends
        for key, _ in ends if self._images else ():
            self._remove_container(key)

    def _remove_container(self, key: Key) -> None:
        """A container is not our descendant if a daemon runs it: end it by its name, whether or not it is there."""
        if self._images.pop(key, None) is None or self._runtime is None:
            return
        self._errands.send(Errand(plan_removal(self._root, key, self._runtime), lambda: True))

    def _try_book(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:  # a full disk: it is still known to the living
            _log.error("cannot write the book of %s: %s", self._root, error)


def _read_log_bytes_max(own: Mapping[str, str]) -> int:
    words = own.get(LOG_VARIABLE, "")
    return max(SCARCE_BYTES_MAX, int(words)) if words.isdecimal() else LOG_BYTES_MAX


def become_reaper() -> None:
    """Let whatever our descendants leave behind come to us."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_marked(keys: Iterable[Key], root: Path) -> None:
    """End every process that carries the marks of one of these runs."""
    marks = [marks_of(key, root) for key in keys]
    for process in list_processes():
        environment = read_environment(process.pid) if process.pid != os.getpid() else frozenset()
        if any(mark <= environment for mark in marks):
            signal_process(process, signal.SIGKILL)


def _is_there(known: Process) -> bool:
    process = find_process(known.pid)
    return process is not None and process.started == known.started and process.is_alive


def _tell_handlers(run: Run, family: Iterable[Process]) -> bool:
    """Send a run's own signal to those of it who handle it; whether anybody does."""
    handlers = [pid for pid in (run.pid, *(process.pid for process in family)) if is_handled(pid, run.stop_signal)]
    for pid in handlers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, run.stop_signal)
    return bool(handlers)
