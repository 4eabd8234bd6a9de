"""One suite that every engine must pass: the contract of `muster.ports.engine`, driven through the port alone.

An engine's tests build a `Bench` and run each of CHECKS on a fresh one. Tasks are real commands of a POSIX system that
leave their traces in `scratch`, a directory which tasks can write. Waiting is for something to happen, with a limit
that only a broken engine meets; nothing is proven by a pause.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from muster.model.event import Event, Exited, NodeSeen, Started
from muster.model.instruction import Forget, Start, Stop
from muster.model.spec import Spec
from muster.ports.engine import Engine
from muster.units import MINUTE_MS, Resources

PATIENCE_S: Final = 60.0
TERMINATED: Final = 143
KILLED: Final = 137


class ConformanceError(AssertionError):
    """An engine breaks the contract."""


def expect(holds: bool, what: str, seen: object = "") -> None:
    """Raise unless it holds."""
    if not holds:
        raise ConformanceError(f"{what}; seen: {seen}")


class Recorder:
    """A `report` that remembers, and lets a test wait for what it needs to see. Any thread may call it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = threading.Condition()

    def __call__(self, events: Sequence[Event]) -> None:
        """Take a report."""
        with self._changed:
            self.events += events
            self._changed.notify_all()

    def wait_for(self, is_seen: Callable[[list[Event]], bool], what: str) -> None:
        """Wait until the events so far satisfy `is_seen`."""
        with self._changed:
            expect(self._changed.wait_for(lambda: is_seen(self.events), PATIENCE_S), f"never came: {what}", self.events)


class Bench:
    """An engine under test with one node. `make` gives an engine on the same place every time it is called."""

    def __init__(self, make: Callable[[], Engine], node: str, scratch: Path) -> None:
        self._make = make
        self.node = node
        self.scratch = scratch
        self.recorder = Recorder()
        self.engine = make()
        self.engine.open(self.recorder)

    def reopen(self) -> None:
        """Close the engine and open another one, as a restarted body does; it remembers nothing."""
        self.engine.close()
        self.recorder = Recorder()
        self.engine = self._make()
        self.engine.open(self.recorder)

    def start(self, spec: Spec, job: int = 1, epoch: int = 1, devices: int = 0) -> None:
        """Start all tasks of a job on the node."""
        self.engine.carry_out([Start(job, epoch, spec, 0, [self.node], [spec.tasks], [devices])])

    def stop(self, job: int = 1, epoch: int = 1, count: int = 1, grace_ms: int = MINUTE_MS) -> None:
        """Stop tasks from the first on."""
        self.engine.carry_out([Stop(job, epoch, 0, count, grace_ms)])

    def forget(self, job: int = 1, epoch: int = 1, count: int = 1) -> None:
        """Forget tasks from the first on."""
        self.engine.carry_out([Forget(job, epoch, 0, count)])

    def shell(self, script: str, **fields: object) -> Spec:
        """A spec that runs a shell script in the scratch directory; `$MUSTER_TASK` and the like are set."""
        spec = Spec(command=("/bin/sh", "-c", script), workdir=str(self.scratch))
        return msgspec.structs.replace(spec, **fields)

    def lines(self, name: str) -> list[str]:
        """The lines of a file in the scratch directory; none if it is not there."""
        path = self.scratch / name
        return path.read_text().splitlines() if path.exists() else []

    def wait_for_line(self, name: str) -> list[str]:
        """Wait until a task has written a whole line."""
        deadline = time.monotonic() + PATIENCE_S
        while not (self.scratch / name).exists() or not (self.scratch / name).read_text().endswith("\n"):
            expect(time.monotonic() < deadline, f"no task wrote {name}", self.recorder.events)
            time.sleep(0.005)
        return self.lines(name)

    def wait_started(self, job: int = 1, epoch: int = 1, task: int = 0) -> None:
        """Wait for a task's Started."""
        self.recorder.wait_for(
            lambda events: any(isinstance(event, Started) and _covers(event, job, epoch, task) for event in events),
            f"Started of {job}.{task}.{epoch}",
        )

    def wait_exited(self, job: int = 1, epoch: int = 1, task: int = 0) -> Exited:
        """Wait for a task's Exited."""
        self.recorder.wait_for(lambda events: bool(find_exits(events, job, epoch, task)), f"Exited of {job}.{task}")
        return find_exits(self.recorder.events, job, epoch, task)[-1]

    def wait_seen(self) -> NodeSeen:
        """Wait for the node's first inventory since the last (re)open."""
        self.recorder.wait_for(lambda events: any(isinstance(event, NodeSeen) for event in events), "NodeSeen")
        return next(event for event in self.recorder.events if isinstance(event, NodeSeen))


def find_exits(events: Sequence[Event], job: int, epoch: int, task: int) -> list[Exited]:
    """Every Exited that speaks of this task."""
    return [event for event in events if isinstance(event, Exited) and _covers(event, job, epoch, task)]


def _covers(event: Started | Exited, job: int, epoch: int, task: int) -> bool:
    is_run = (event.job, event.epoch) == (job, epoch)
    return is_run and any(first <= task < first + count for first, count in event.spans)


def check_node_is_seen(bench: Bench) -> None:
    """After open, the node reports itself, holding nothing."""
    seen = bench.wait_seen()
    expect(seen.name == bench.node and seen.held == (), "a fresh node holds nothing", seen)


def check_start_and_exit(bench: Bench) -> None:
    """A task starts, runs once, and its code comes back."""
    bench.start(bench.shell("echo run >> trace; exit 7"))
    bench.wait_started()
    expect(bench.wait_exited().code == 7, "the exit code is the command's")
    expect(bench.lines("trace") == ["run"], "it ran once", bench.lines("trace"))


def check_signal_is_a_code(bench: Bench) -> None:
    """A command that dies of a signal exits with 128 and the signal's number."""
    bench.start(bench.shell("kill -KILL $$"))
    expect(bench.wait_exited().code == KILLED, "SIGKILL is 137")


def check_array(bench: Bench) -> None:
    """Every task of a range runs once, knows its number, and is accounted for."""
    bench.start(bench.shell('echo x >> "trace.$MUSTER_TASK"; exit $((MUSTER_TASK % 2))', array=12))
    codes = [bench.wait_exited(task=task).code for task in range(12)]
    expect(codes == [0, 1] * 6, "each task has its own code", codes)
    runs = [bench.lines(f"trace.{task}") for task in range(12)]
    expect(runs == [["x"]] * 12, "each task ran once", runs)


def check_start_is_idempotent(bench: Bench) -> None:
    """The same Start again starts nothing: while it runs, after a reopen, and after its end."""
    spec = bench.shell("echo run >> trace; while [ ! -e go ]; do sleep 0.01; done")
    bench.start(spec)
    bench.start(spec)
    bench.wait_started()
    bench.reopen()
    bench.start(spec)
    bench.wait_seen()
    (bench.scratch / "go").touch()
    bench.wait_exited()
    bench.start(spec)
    bench.start(bench.shell("exit 5"), job=2)  # orders are done in order: when this has ended, that was looked at
    bench.wait_exited(job=2)
    expect(bench.lines("trace") == ["run"], "it ran once", bench.lines("trace"))


def check_stop_is_polite(bench: Bench) -> None:
    """Stop gives a task time to clean up and to choose its code."""
    bench.start(bench.shell("trap 'echo bye > bye; exit 3' TERM; echo up > up; while :; do sleep 0.01; done"))
    bench.wait_for_line("up")
    bench.stop()
    expect(bench.wait_exited().code == 3, "a task that handles SIGTERM ends with its own code")
    expect(bench.lines("bye") == ["bye"], "it had its grace")


def check_stop_without_handler(bench: Bench) -> None:
    """A task that does not handle the signal ends with 143."""
    bench.start(bench.shell("echo up > up; exec sleep 600"))
    bench.wait_for_line("up")
    bench.stop()
    expect(bench.wait_exited().code == TERMINATED, "SIGTERM is 143")


def check_stop_after_grace(bench: Bench) -> None:
    """A task that ignores the signal is killed after its grace."""
    bench.start(bench.shell("trap '' TERM; echo up > up; while :; do sleep 0.01; done"))
    bench.wait_for_line("up")
    bench.stop(grace_ms=100)
    expect(bench.wait_exited().code == KILLED, "after the grace it is SIGKILL")


def check_stop_of_ended(bench: Bench) -> None:
    """Stop of a task that had ended is answered by its Exited, with its code."""
    bench.start(bench.shell("exit 4"))
    bench.wait_exited()
    before = len(find_exits(bench.recorder.events, 1, 1, 0))
    bench.stop()
    bench.recorder.wait_for(lambda events: len(find_exits(events, 1, 1, 0)) > before, "a second Exited")
    expect({event.code for event in find_exits(bench.recorder.events, 1, 1, 0)} == {4}, "terminal is final")


def check_stop_fences(bench: Bench) -> None:
    """Stop of a task never seen: a late Start of that epoch starts nothing, also after a reopen; another epoch may."""
    spec = bench.shell('echo "$MUSTER_EPOCH" >> trace')
    bench.stop()
    expect(bench.wait_exited().code == TERMINATED, "the fence is answered by Exited")
    bench.start(spec)
    bench.reopen()
    bench.start(spec)
    expect(bench.wait_exited().code == TERMINATED, "a fenced Start is answered by Exited")
    bench.start(spec, epoch=2)
    expect(bench.wait_exited(epoch=2).code == 0, "the next epoch is not fenced")
    expect(bench.lines("trace") == ["2"], "only the next epoch ran", bench.lines("trace"))


def check_forget(bench: Bench) -> None:
    """After Forget nothing is said of a task again."""
    bench.start(bench.shell("exit 0"))
    bench.wait_exited()
    bench.forget()
    bench.start(bench.shell("exit 0"), job=2)
    bench.wait_exited(job=2)
    bench.reopen()
    seen = bench.wait_seen()
    bench.wait_exited(job=2)
    expect([held.job for held in seen.held] == [2], "the node holds only what is not forgotten", seen)
    expect(not find_exits(bench.recorder.events, 1, 1, 0), "nothing is said of it", bench.recorder.events)


def check_unknown_command(bench: Bench) -> None:
    """A command that is not there is 127; one that cannot be executed, or a directory that is not there, is 126."""
    plain = bench.scratch / "plain"
    plain.write_text("not a program\n")
    plain.chmod(0o644)
    bench.start(Spec(command=("no-such-command-anywhere",), workdir=str(bench.scratch)), job=1)
    bench.start(Spec(command=(str(plain),), workdir=str(bench.scratch)), job=2)
    bench.start(Spec(command=("/bin/sh", "-c", "exit 0"), workdir=str(bench.scratch / "nowhere")), job=3)
    for job, code in ((1, 127), (2, 126), (3, 126)):
        ended = bench.wait_exited(job=job)
        expect(ended.code == code and bool(ended.note), f"job {job} is {code} and the note says why", ended)


def check_words_are_inert(bench: Bench) -> None:
    """Words of a command reach it unchanged: no shell reads them."""
    words = ("$(touch owned)", "`id`", "; touch owned", "a b", "", "*", "-n", '"', "'", "\\", "é\n", "$HOME")
    script = 'for word in "$@"; do printf "%s\\000" "$word" >> words; done'
    bench.start(Spec(command=("/bin/sh", "-c", script, "sh", *words), workdir=str(bench.scratch)))
    expect(bench.wait_exited().code == 0, "it ran")
    got = (bench.scratch / "words").read_bytes().decode().split("\0")[:-1]
    expect(tuple(got) == words, "the words are those that were given", got)
    expect(not (bench.scratch / "owned").exists(), "nothing was executed")


def check_gang_environment(bench: Bench) -> None:
    """The tasks of a gang know their ranks, and each has its own devices."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MUSTER_TASKS", "CUDA_VISIBLE_DEVICES")
    script = " ".join(f'echo "{name}=${name}" >> env.$RANK;' for name in names) + ' echo "$MASTER_PORT" >> ports'
    bench.start(bench.shell(script, gang=2, ask=Resources(gpus=2)), devices=0b110110)
    for rank, devices in ((0, "1,2"), (1, "4,5")):
        expect(bench.wait_exited(task=rank).code == 0, "it ran")
        values = dict(line.split("=") for line in bench.lines(f"env.{rank}"))
        wanted = dict(zip(names, (str(rank), "2", str(rank), "2", "2", devices), strict=True))
        expect(values == wanted, f"rank {rank} knows its place", values)
    ports = set(bench.lines("ports"))
    expect(len(ports) == 1 and ports != {""}, "both know one port", ports)


def check_tasks_join_and_leave(bench: Bench) -> None:
    """Tasks join a run that is up and leave it; the others go on, and read how many they are."""
    read, wait = 'cat "$MUSTER_WORLD_SIZE_FILE"', "while [ ! -e stop ]; do sleep 0.01; done"
    script = f"{read} > width.$MUSTER_TASK; {wait}; {read} > last.$MUSTER_TASK"
    spec = bench.shell(script, gang=1, gang_most=3, in_place=True)
    bench.engine.carry_out([Start(1, 1, spec, 0, [bench.node], [1], [0], [], 1)])
    expect(bench.wait_for_line("width.0") == ["1"], "it begins alone")
    bench.engine.carry_out([Start(1, 1, spec, 1, [bench.node], [2], [0], [], 3)])
    for task in (1, 2):
        bench.wait_started(task=task)
        expect(bench.wait_for_line(f"width.{task}") == ["3"], "they are three")
    bench.engine.carry_out([Stop(1, 1, 2, 1, MINUTE_MS, 2)])
    expect(bench.wait_exited(task=2).code == TERMINATED, "one leaves")
    expect(not find_exits(bench.recorder.events, 1, 1, 0), "the others go on")
    (bench.scratch / "stop").touch()
    for task in (0, 1):
        expect(bench.wait_exited(task=task).code == 0, "they end by themselves")
        expect(bench.wait_for_line(f"last.{task}") == ["2"], "and know that they are two")


def check_held_after_reopen(bench: Bench) -> None:
    """A reopened engine reports all that the node holds, running or ended, and the codes still come."""
    bench.start(bench.shell("exit 9"), job=1)
    bench.start(bench.shell("echo up >> up; while [ ! -e go ]; do sleep 0.01; done; exit 6"), job=2)
    bench.wait_exited(job=1)
    bench.wait_for_line("up")
    bench.reopen()
    seen = bench.wait_seen()
    expect({held.job for held in seen.held} == {1, 2}, "both are held", seen)
    expect(bench.wait_exited(job=1).code == 9, "an end is told again")
    bench.wait_started(job=2)
    (bench.scratch / "go").touch()
    expect(bench.wait_exited(job=2).code == 6, "running work goes on through a reopen")
    expect(bench.lines("up") == ["up"], "and is not started again")


def check_order_before_seen(bench: Bench) -> None:
    """An instruction given right after open, before the node was seen, is not lost."""
    bench.reopen()
    bench.start(bench.shell("exit 2"))
    expect(bench.wait_exited().code == 2, "it ran")
    bench.wait_seen()


CHECKS: Final[tuple[Callable[[Bench], None], ...]] = (
    check_node_is_seen,
    check_start_and_exit,
    check_signal_is_a_code,
    check_array,
    check_start_is_idempotent,
    check_stop_is_polite,
    check_stop_without_handler,
    check_stop_after_grace,
    check_stop_of_ended,
    check_stop_fences,
    check_forget,
    check_unknown_command,
    check_words_are_inert,
    check_gang_environment,
    check_tasks_join_and_leave,
    check_held_after_reopen,
    check_order_before_seen,
)
