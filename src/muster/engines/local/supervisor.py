"""Everything that happens to runs on this machine: they are recorded, launched, watched, stopped, adopted, forgotten.

The supervisor is the authority over its processes and decides nothing else. It never blocks: launches are done in
slices, and whatever must be looked at again later stands in one heap of looks. It knows no socket (`serving` does).

What can escape a Stop: a process that made a session of its own. Of a run that ends by itself, its process group is
killed; what it left behind in other process groups of its session is killed only if a Stop was asked for, or if an
earlier supervisor had started it, because finding those costs a walk over /proc.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import logging
import os
import resource
import select
import selectors
import shutil
import signal
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from muster.engines.local.frames import TaskEvent
from muster.engines.local.launch import Launch, plan_launches
from muster.engines.local.layout import LOGS, RUNS, Key, find_key, log_path
from muster.engines.local.processes import (
    Process,
    find_members,
    find_process,
    read_boot_id,
    signal_group,
    signal_member,
)
from muster.engines.local.ranges import End, merge_events, merge_held
from muster.engines.local.rundir import GONE_PREFIX, RunDirectory
from muster.engines.local.shim import spawn_shim
from muster.model.event import Held
from muster.model.instruction import Forget, Instruction, Start, Stop
from muster.ports.failpoint import failpoint

LAUNCHES_PER_TURN_MAX: Final = 16
FDS_RESERVED: Final = 64
LOOK_AGAIN_S: Final = 0.02
KILL_AGAIN_S: Final = 0.1
KILLED: Final = 128 + signal.SIGKILL
TERMINATED: Final = 128 + signal.SIGTERM
CANNOT_RUN: Final = 126
NOT_FOUND: Final = 127

_log = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True)
class Shim:
    """A living shim. Its pid, which is also its session, stays ours while it lives, and if `own` until it is reaped."""

    pid: int
    pidfd: int
    own: bool
    ended: bool = False


@dataclasses.dataclass(slots=True, eq=False)
class Run:
    """One try of one task. It waits for its launch, or has a shim and lives, or has an end and is over."""

    key: Key
    place: RunDirectory
    launch: Launch | None = None
    waits: bool = False
    begun: bool = False
    shim: Shim | None = None
    kill_at: float | None = None
    warned: bool = False
    end: End | None = None


class Supervisor:
    """The runs of one root. A shim's pidfd is registered with `selector`, the run being its data."""

    def __init__(self, root: Path, selector: selectors.BaseSelector, own: Mapping[str, str]) -> None:
        self._root = root
        self._selector = selector
        self._own = own
        self._boot = read_boot_id()
        self._runs: dict[Key, Run] = {}
        self._newest: dict[tuple[int, int], int] = {}
        self._waiting: deque[Run] = deque()
        self._looks: list[tuple[float, Key]] = []
        self._live = 0
        self._files_max, self._live_max = _raise_file_limit()
        self._started: list[Key] = []
        self._ended: list[tuple[Key, End]] = []

    # What is known and what happened.

    def held(self) -> list[Held]:
        """Every run that is not forgotten."""
        return merge_held(self._runs)

    def is_empty(self) -> bool:
        """Whether every run is forgotten."""
        return not self._runs

    def retell(self) -> list[TaskEvent]:
        """The events of every run that is not forgotten, for somebody who may have missed them."""
        started = [run.key for run in self._runs.values() if run.begun]
        return merge_events(started, ((run.key, run.end) for run in self._runs.values() if run.end is not None))

    def take_events(self) -> list[TaskEvent]:
        """What happened since the last call."""
        events = merge_events(self._started, self._ended)
        self._started.clear()
        self._ended.clear()
        return events

    def delay_s(self) -> float | None:
        """How long nothing needs to be done, unless something happens; None for ever."""
        if self._can_launch():
            return 0.0
        return max(0.0, self._looks[0][0] - time.monotonic()) if self._looks else None

    # Instructions.

    def carry_out(self, instruction: Instruction, node: str) -> None:
        """Record an instruction; what follows from it happens in later turns."""
        if isinstance(instruction, Start):
            for launch in plan_launches(instruction, node, self._own, self._boot):
                self._record(launch)
        elif isinstance(instruction, Stop):
            self._stop(instruction)
        else:
            self._forget(instruction)

    def _record(self, launch: Launch) -> None:
        key = launch.key
        if key in self._runs:
            return
        run = self._know(Run(key, self._place(key), launch))
        try:
            if key.epoch < self._newest[key.job, key.task]:
                self._end(run, End(TERMINATED, "a newer run of this task is here"))
                return
            run.place.record(launch)
        except OSError as error:  # a full disk must not end the supervisor, which holds everybody's work
            self._end(run, End(CANNOT_RUN, f"cannot record the run: {error.strerror}"))
            return
        failpoint("supervisor.after_record")
        self._line_up(run)

    def _stop(self, stop: Stop) -> None:
        asked = []
        for key in _keys(stop):
            run = self._runs.get(key)
            if run is None:
                run = self._know(Run(key, self._place(key)))
                self._end(run, End(TERMINATED, "stopped before it was started"))
            elif run.end is not None:
                self._ended.append((key, run.end))
            elif run.waits:  # it stays in line, and is passed over
                self._end(run, End(TERMINATED, "stopped before it was started"))
            else:
                asked.append(run)
        self._ask_to_end(asked, stop.grace_ms)

    def _ask_to_end(self, runs: list[Run], grace_ms: int) -> None:
        """The polite signal, once, and a date for the other one. A later Stop may only bring the date forward."""
        kill_at = time.monotonic() + grace_ms / 1000
        for run in runs:
            if run.kill_at is None:
                self._note_stop(run, grace_ms)
            if run.kill_at is None or kill_at < run.kill_at:
                run.kill_at = kill_at
                self._look_at(run, kill_at)
        self._warn(runs)

    def _warn(self, runs: list[Run]) -> None:
        """The polite signal. It waits for `stat`: a shim that has no command yet would swallow it."""
        living = []
        for run in runs:
            if run.kill_at is None or run.warned or run.shim is None or run.shim.ended:
                continue
            if run.place.find_shim() is None:
                self._look_at(run, time.monotonic() + LOOK_AGAIN_S)
                continue
            run.warned = True
            living.append((run, run.shim))
        members = find_members({shim.pid for _, shim in living})
        for run, shim in living:
            if _is_certain(shim):
                signal_group(shim.pid, signal.SIGTERM)
            others = [process for process in members[shim.pid] if process.group != shim.pid]  # once each, not twice
            self._signal_members(run, shim, others, signal.SIGTERM)

    def _note_stop(self, run: Run, grace_ms: int) -> None:
        try:
            run.place.write_stop(grace_ms)
        except OSError as error:  # on a full disk the Stop is lost with us, and asked for again
            _log.error("cannot record the stop of %s: %s", run.key.name, error)

    def _forget(self, forget: Forget) -> None:
        """Drop what has ended. What lives is not dropped: nobody would know any more who holds its devices."""
        for key in _keys(forget):
            run = self._runs.get(key)
            if run is None or run.end is None:
                continue
            del self._runs[key]
            if self._newest.get((key.job, key.task)) == key.epoch:
                del self._newest[key.job, key.task]
            with contextlib.suppress(OSError):
                run.place.remove()

    # Turns of the loop.

    def shims_ended(self, runs: list[Run]) -> None:
        """The shims of these runs are no more: clear up behind them, then tell."""
        for run in runs:
            if run.shim is not None:
                run.shim.ended = True
                self._selector.unregister(run.shim.pidfd)
        self._look(runs)

    def tend(self) -> None:
        """Do what is due, and a slice of the launches."""
        now = time.monotonic()
        due = []
        while self._looks and self._looks[0][0] <= now:
            run = self._runs.get(heapq.heappop(self._looks)[1])
            if run is not None and run.end is None:
                due.append(run)
        self._look(due)
        for _ in range(LAUNCHES_PER_TURN_MAX):
            if not self._can_launch():
                break
            run = self._waiting.popleft()
            run.waits = False
            if run.end is None:
                self._launch(run)

    def _can_launch(self) -> bool:
        return bool(self._waiting) and self._live < self._live_max

    def _look(self, runs: list[Run]) -> None:
        self._warn(runs)
        walked = {run.shim.pid for run in runs if run.shim is not None and _needs_walk(run, run.shim)}
        members = find_members(walked)
        for run in runs:
            if run.shim is None:
                self._adopt(run)
                self._clear_up_orphans([run])
            elif run.shim.ended:
                self._clear_up(run, run.shim, members.get(run.shim.pid, []))
            elif run.kill_at is not None and run.kill_at <= time.monotonic():
                self._kill(run, run.shim, members.get(run.shim.pid, []))

    def _line_up(self, run: Run) -> None:
        run.waits = True
        self._waiting.append(run)

    def _launch(self, run: Run) -> None:
        assert run.launch is not None, run.key  # noqa: S101 - only recorded runs wait
        try:
            pid = self._spawn(run, run.launch)
        except OSError as error:
            self._end(run, End(CANNOT_RUN, f"cannot start: {error.strerror}"))
            return
        if pid is None:  # a spawn that an earlier supervisor did not live to see
            self._look_at(run, time.monotonic() + LOOK_AGAIN_S)
            return
        failpoint("supervisor.after_spawn")
        self._watch(run, Shim(pid, os.pidfd_open(pid), own=True))

    def _spawn(self, run: Run, launch: Launch) -> int | None:
        lock = run.place.find_lock()
        if lock is None:
            return None
        try:
            log = log_path(self._root, run.key.job, run.key.task, run.key.epoch)
            return spawn_shim(launch, run.place.path, log, lock, self._files_max)
        finally:
            os.close(lock)

    def _watch(self, run: Run, shim: Shim) -> None:
        run.begun = True
        run.shim = shim
        self._live += 1
        self._selector.register(shim.pidfd, selectors.EVENT_READ, run)
        self._started.append(run.key)

    # Ends.

    def _kill(self, run: Run, shim: Shim, members: list[Process]) -> None:
        """All but the shim: it lives to write the code down, and needs waking if somebody stopped it."""
        self._signal_members(run, shim, members, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(shim.pidfd, signal.SIGCONT)
        self._look_at(run, time.monotonic() + KILL_AGAIN_S)

    def _clear_up(self, run: Run, shim: Shim, members: list[Process]) -> None:
        """After the shim: end what it left, and settle once that is gone, since the devices are free only then."""
        if shim.own:
            signal_group(shim.pid, signal.SIGKILL)
        if self._signal_members(run, shim, members, signal.SIGKILL):
            self._look_at(run, time.monotonic() + LOOK_AGAIN_S)
        else:
            self._settle(run, shim)

    def _signal_members(self, run: Run, shim: Shim, members: list[Process], number: int) -> int:
        """Signal those of `members` that are certainly the run's; how many there were."""
        marks = frozenset() if _is_certain(shim) or run.launch is None else run.launch.marks()
        return sum(signal_member(process.pid, shim.pid, number, marks) for process in members)

    def _settle(self, run: Run, shim: Shim) -> None:
        status = os.waitpid(shim.pid, 0)[1] if shim.own else signal.SIGKILL
        os.close(shim.pidfd)
        run.shim = None
        self._live -= 1
        end = run.place.find_end()
        if end is None:
            code = os.waitstatus_to_exitcode(status)
            note = "its shim was killed" if code < 0 else "its shim could not write its end"
            self._end(run, End(128 - code if code < 0 else code, note))
        else:
            self._tell_end(run, _explain(end, run))

    def _end(self, run: Run, end: End) -> None:
        """An end that no shim wrote down: write it, so that the next supervisor says the same."""
        try:
            run.place.write_end(end)
        except OSError as error:
            _log.error("cannot write the end of %s: %s", run.key.name, error)
        self._tell_end(run, end)

    def _tell_end(self, run: Run, end: End) -> None:
        failpoint("supervisor.after_exit")
        run.end = end
        self._ended.append((run.key, end))

    # Adoption.

    def adopt_all(self) -> None:
        """Take over what an earlier supervisor left."""
        for name in (RUNS, LOGS):
            (self._root / name).mkdir(mode=0o700, exist_ok=True)
        for path in sorted((self._root / RUNS).iterdir()):
            key = find_key(path.name)
            if key is not None:
                self._find_out(key, RunDirectory(path))
            elif path.name.startswith(GONE_PREFIX):
                shutil.rmtree(path, ignore_errors=True)
        self._clear_up_orphans(self._runs.values())

    def _find_out(self, key: Key, place: RunDirectory) -> None:
        try:
            launch = place.find_launch()
            end = place.find_end()
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            _log.error("cannot read the run %s, which is left alone: %s", key.name, error)
            return
        if launch is None and end is None:  # a crash before it was recorded; nothing ran
            place.remove()
            return
        run = self._know(Run(key, place, launch))
        run.begun = place.find_shim() is not None
        if end is None:
            self._adopt(run)
        else:
            run.end = _explain(end, run)

    def _adopt(self, run: Run) -> None:
        """Whose lock is held lives; whose lock is free does not, and `stat` tells whether it ever did."""
        if run.launch is None or run.launch.boot != self._boot:
            self._end(run, End(KILLED, "machine restarted"))
        elif run.place.is_locked():
            self._adopt_living(run)
        else:
            self._adopt_ended(run)

    def _adopt_living(self, run: Run) -> None:
        shim = _find_shim(run.place)
        if shim is None:  # it has not said yet who it is, or is just ending
            self._look_at(run, time.monotonic() + LOOK_AGAIN_S)
            return
        self._watch(run, shim)
        grace_ms = run.place.find_stop()
        if grace_ms is not None:
            self._ask_to_end([run], grace_ms)

    def _adopt_ended(self, run: Run) -> None:
        end = run.place.find_end()  # read after the lock was seen free: the shim writes before it lets go
        if end is not None:
            run.begun = True
            self._tell_end(run, _explain(end, run))
        elif run.place.find_shim() is not None:
            run.begun = True
            self._end(run, End(KILLED, "its shim was killed"))
        elif run.place.find_stop() is not None or run.kill_at is not None:
            self._end(run, End(TERMINATED, "stopped before it was started"))
        else:
            self._line_up(run)

    def _clear_up_orphans(self, runs: Iterable[Run]) -> None:
        """End what runs left behind that ended while nobody watched; only processes that carry their marks."""
        launches = {}
        for run in runs:
            shim = run.place.find_shim() if run.end is not None else None
            if shim is not None and run.launch is not None and run.launch.boot == self._boot:
                launches[shim.session] = run.launch
        for session, members in find_members(launches).items():
            for process in members:
                signal_member(process.pid, session, signal.SIGKILL, launches[session].marks())

    # Small things.

    def _place(self, key: Key) -> RunDirectory:
        return RunDirectory(self._root / RUNS / key.name)

    def _know(self, run: Run) -> Run:
        key = run.key
        self._runs[key] = run
        self._newest[key.job, key.task] = max(key.epoch, self._newest.get((key.job, key.task), 0))
        return run

    def _look_at(self, run: Run, at: float) -> None:
        heapq.heappush(self._looks, (at, run.key))


def _keys(instruction: Stop | Forget) -> Iterator[Key]:
    for task in range(instruction.first, instruction.first + instruction.count):
        yield Key(instruction.job, instruction.epoch, task)


def _needs_walk(run: Run, shim: Shim) -> bool:
    return run.kill_at is not None or not shim.own


def _is_certain(shim: Shim) -> bool:
    """Whether the session's number is still ours: its leader lives or is not reaped.

    After that the number may be somebody else's, and only processes that carry the run's marks may be touched.
    """
    return shim.own or not _has_ended(shim.pidfd)


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()  # not select(), which knows no descriptor above 1023
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _find_shim(place: RunDirectory) -> Shim | None:
    """The shim, held by a pidfd that is certainly its own.

    The pid in `stat` was the shim's; the lock, seen held after the pidfd was opened, proves that the shim lived until
    then, so that the pid was still its own when it was opened. The start time covers the one moment when somebody else
    may hold the lock: the shim's child, just before it becomes the command.
    """
    said = place.find_shim()
    if said is None:
        return None
    try:
        pidfd = os.pidfd_open(said.pid)
    except OSError:
        return None
    seen = find_process(said.pid)
    if seen is not None and seen.started == said.started and place.is_locked():
        return Shim(said.pid, pidfd, own=False)
    os.close(pidfd)
    return None


def _explain(end: End, run: Run) -> End:
    """Add why a command could not be run; a shim writes only the code."""
    if end.note or run.launch is None or end.code not in (CANNOT_RUN, NOT_FOUND):
        return end
    program = run.launch.argv[0]
    fault = run.place.find_fault()
    if fault == "workdir":
        return End(end.code, f"cannot enter workdir {run.launch.workdir}")
    if end.code == CANNOT_RUN:
        return End(end.code, f"cannot execute {program}")
    return End(end.code, f"command not found: {program}") if fault else end


def _raise_file_limit() -> tuple[int, int]:
    """Every living run costs a descriptor: take all we may have. The limit that tasks get, and the most live runs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    ceiling = 1_000_000 if hard == resource.RLIM_INFINITY else hard
    return soft, ceiling - FDS_RESERVED
