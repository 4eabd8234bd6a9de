"""The local engine with real processes and real SIGKILLs: nothing starts twice, no end is lost, no stranger is hurt."""

from __future__ import annotations

import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from muster.engines.local.engine import LocalEngine, shut_down
from muster.engines.local.frames import FRAME_BYTES_MAX, Kept
from muster.engines.local.launch import KEPT
from muster.engines.local.layout import KEEPERS, STARTS, Key, keeper_name, log_path
from muster.engines.local.processes import find_family, find_process, read_boot_id, signal_process
from muster.engines.local.starts import Recorded, find_start, list_starts, record_start
from muster.engines.local.supervisor import Supervisor
from muster.model.event import Exited, NodeSeen
from muster.model.instruction import Start, Stop
from muster.model.spec import Spec
from muster.testing.engine_conformance import PATIENCE_S, Bench, find_exits
from muster.units import MINUTE_MS, Resources

COUNTED = 'echo run >> "trace.$MUSTER_TASK.$MUSTER_EPOCH"; exit $((MUSTER_TASK % 3))'


class Scene:
    """A root, a place for traces, and the processes that a test starts."""

    def __init__(self, home: Path) -> None:
        self.root = home / "engine"
        self.scratch = home / "scratch"
        self.scratch.mkdir()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._bench: Bench | None = None

    def bench(self) -> Bench:
        """The engine, opened at the first call."""
        if self._bench is None:
            capacity = Resources(cpu_milli=4000)
            self._bench = Bench(lambda: LocalEngine(self.root, "here", capacity), "here", self.scratch)
        return self._bench

    def supervise(self, **environment: str) -> subprocess.Popen[bytes]:
        """A supervisor as a child of the test; ready when this returns."""
        command = [sys.executable, "-m", "muster.engines.local", str(self.root)]
        process = self.spawn(command, env={**os.environ, **environment})
        wait_until(lambda: self.find_supervisor() == process.pid or process.poll() is not None, "a supervisor")
        return process

    def spawn(self, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        """Any process that must not outlive the test."""
        process = subprocess.Popen(command, start_new_session=True, **options)  # type: ignore[call-overload]  # options pass through
        self._processes.append(process)
        return process  # type: ignore[no-any-return]  # the same

    def find_supervisor(self) -> int | None:
        """The pid of whoever listens at this root, from the kernel."""
        if not (self.root / "supervisor.sock").exists():
            return None
        directory = os.open(self.root, os.O_PATH)
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(f"/proc/self/fd/{directory}/supervisor.sock")
                credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                return int(struct.unpack("3i", credentials)[0])
        except OSError:
            return None
        finally:
            os.close(directory)

    def kill_supervisor(self) -> bool:
        """SIGKILL the supervisor of this root and no other process; whether there was one."""
        pid = self.find_supervisor()
        if pid is None:
            return False
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if str(self.root).encode() not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except (ProcessLookupError, FileNotFoundError):
            return False
        else:
            wait_until(lambda: not is_alive(pid), "the supervisor's end")
            return True
        finally:
            os.close(handle)

    def find_keepers(self) -> list[int]:
        """The keepers of this root, by the command lines of processes."""
        return [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and {b"muster.engines.local.keeping", str(self.root).encode()} <= _words(entry)
        ]

    def book_of(self, key: Key) -> str:
        """The last line that a keeper wrote of a run; nothing if there is none."""
        books = [self.root / f"{keeper_name(number)}.book" for number in range(KEEPERS)]
        lines = [line for book in books if book.exists() for line in book.read_text().splitlines()]
        return next((line for line in reversed(lines) if f" {key.name}" in line), "")

    def record(self, key: Key, script: str, boot: str | None = None) -> None:
        """A start as a supervisor records it before it hands it out."""
        (self.root / STARTS).mkdir(parents=True, exist_ok=True)
        spec = Spec(command=("/bin/sh", "-c", script), workdir=str(self.scratch))
        start = Start(key.job, key.epoch, spec, key.task, ["here"], [1], [0])
        record_start(self.root, key.name, Recorded("here", boot or read_boot_id(), start))

    def clear(self) -> None:
        """End everything: politely through the engine, and whatever is left by its session."""
        try:
            self._stop_all()
        finally:
            if self._bench is not None:
                self._bench.engine.close()
            shut_down(self.root)
            self._kill_leftovers()
            for process in self._processes:
                process.kill()
                process.wait()

    def _stop_all(self) -> None:
        names = list(list_starts(self.root)) if (self.root / STARTS).exists() else []
        starts = [found for name in names if (found := find_start(self.root, name)) is not None]
        keys = [key for found in starts for key in found.tasks_here()]
        if not keys:
            return
        bench = self.bench()
        bench.engine.carry_out([Stop(key.job, key.epoch, key.task, 1, 0) for key in keys])
        for key in keys:
            bench.wait_exited(*key)

    def _kill_leftovers(self) -> None:
        for keeper in self.find_keepers():
            for process in find_family({keeper})[keeper]:
                signal_process(process, signal.SIGKILL)


def _words(process: Path) -> set[bytes]:
    try:
        return set((process / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return set()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    try:
        yield scene
    finally:
        scene.clear()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    process = find_process(pid)
    return process is not None and process.state not in (b"Z", b"X")


def check_each_ran_once(bench: Bench, tasks: int, epoch: int = 1) -> None:
    for task in range(tasks):
        assert bench.wait_exited(epoch=epoch, task=task).code == task % 3
    traces = {path.name: path.read_text() for path in bench.scratch.glob("trace.*")}
    assert traces == {f"trace.{task}.{epoch}": "run\n" for task in range(tasks)}


@pytest.mark.parametrize("turn", [1, 4])
@pytest.mark.parametrize("point", ["supervisor.after_record", "supervisor.after_spawn", "supervisor.after_exit"])
def test_killed_at_a_failpoint(scene: Scene, point: str, turn: int) -> None:
    supervisor = scene.supervise(MUSTER_FAILPOINT=f"{point}:{turn}")
    bench = scene.bench()
    spec = bench.shell(COUNTED, array=6)
    bench.engine.carry_out([Start(1, 1, spec, task, ["here"], [1], [0]) for task in range(6)])
    check_each_ran_once(bench, 6)
    assert supervisor.wait() == -signal.SIGKILL


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 23))])
def test_killed_at_random_moments(scene: Scene, seed: int) -> None:
    dice = random.Random(seed)
    bench = scene.bench()
    bench.wait_seen()
    pause = "sleep 0.0$((MUSTER_TASK * 7 % 10)); "
    killed = 0
    for first in range(0, 30, 6):
        spec = bench.shell(pause + COUNTED, array=30)
        bench.engine.carry_out([Start(1, 1, spec, first, ["here"], [6], [0])])
        time.sleep(dice.random() * 0.08)  # the moment is the dice's; nothing waits for it
        killed += scene.kill_supervisor()
    check_each_ran_once(bench, 30)
    assert killed > 0


def test_running_work_is_adopted(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("echo up >> up; while [ ! -e go ]; do sleep 0.01; done; exit 6"))
    bench.wait_for_line("up")
    assert scene.kill_supervisor()
    bench.recorder.wait_for(lambda events: sum(isinstance(event, NodeSeen) for event in events) == 2, "NodeSeen")
    seen = [event for event in bench.recorder.events if isinstance(event, NodeSeen)]
    assert [(held.job, held.count) for held in seen[1].held] == [(1, 1)]
    (scene.scratch / "go").touch()
    assert bench.wait_exited().code == 6
    assert bench.lines("up") == ["up"]


def test_an_end_while_nobody_watches_is_not_lost(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("echo up > up; while [ ! -e go ]; do sleep 0.01; done; exit 6"))
    bench.wait_for_line("up")
    bench.engine.close()
    assert scene.kill_supervisor()
    (scene.scratch / "go").touch()
    wait_until(lambda: scene.book_of(Key(1, 1, 0)).startswith("- 1.0.1 6 "), "the keeper's own record")
    bench.reopen()
    assert bench.wait_exited().code == 6


def test_a_stop_goes_on_after_a_crash(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("trap 'echo told > told' TERM; echo up > up; while :; do sleep 0.01; done"))
    bench.wait_for_line("up")
    bench.stop(grace_ms=300)
    bench.wait_for_line("told")
    scene.kill_supervisor()
    assert bench.wait_exited().code == 137


def test_a_killed_keeper_takes_its_tasks_along_and_the_next_one_says_so(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("echo $$ > pid; kill -KILL $PPID; exec sleep 600"))
    ended = bench.wait_exited()
    assert (ended.code, ended.note) == (137, "its keeper was killed")
    (pid,) = bench.lines("pid")
    wait_until(lambda: not is_alive(int(pid)), "the task's end")
    bench.start(bench.shell("exit 5"), job=2)
    assert bench.wait_exited(job=2).code == 5, "there is a keeper again"


def test_a_keeper_killed_while_nobody_watches(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; kill -KILL $PPID; exec sleep 600"))
    bench.wait_for_line("pid")
    bench.engine.close()
    assert scene.kill_supervisor()
    before = len(scene.find_keepers())
    (scene.scratch / "go").touch()
    wait_until(lambda: len(scene.find_keepers()) < before, "the keeper's end")
    bench.reopen()
    assert bench.wait_exited().code == 137
    (pid,) = bench.lines("pid")
    wait_until(lambda: not is_alive(int(pid)), "the task's end")


def test_whoever_has_the_number_of_a_lost_task_is_not_touched(scene: Scene) -> None:
    """A process is known by the marks in its environment, never by its number: that may be anybody's. The task of the
    same number of another server on this machine is somebody else's, too."""
    marks = {"MUSTER_JOB": "1", "MUSTER_PLACE": "0", "MUSTER_EPOCH": "1", "MUSTER_ENGINE": str(scene.root)}
    strangers = [
        scene.spawn(["sleep", "600"], env={**marks, "MUSTER_PLACE": "7"}),
        scene.spawn(["sleep", "600"], env={**marks, "MUSTER_ENGINE": "/another/server"}),
    ]
    scene.record(Key(1, 1, 0), "echo run >> trace")
    (scene.root / f"{keeper_name(0)}.book").write_text(f"{read_boot_id()}\n+ 1.0.1\n")
    bench = scene.bench()
    ended = bench.wait_exited()
    assert (ended.code, ended.note) == (137, "its keeper was killed")
    bench.stop(grace_ms=0)
    bench.recorder.wait_for(lambda events: len(find_exits(events, 1, 1, 0)) > 1, "the answer to Stop")
    assert [stranger.poll() for stranger in strangers] == [None, None]
    assert bench.lines("trace") == []


def test_what_was_recorded_and_never_started_is_started(scene: Scene) -> None:
    scene.record(Key(1, 1, 0), "echo run >> trace; exit 5")
    bench = scene.bench()
    assert bench.wait_exited().code == 5
    assert bench.lines("trace") == ["run"]


def test_another_boot_means_lost(scene: Scene) -> None:
    scene.record(Key(1, 1, 0), "echo run >> trace", boot="an earlier life")
    scene.record(Key(2, 1, 0), "echo run >> trace", boot="an earlier life")
    (scene.root / f"{keeper_name(1)}.book").write_text("an earlier life\n+ 2.0.1\n")
    for job in (1, 2):
        ended = scene.bench().wait_exited(job=job)
        assert (ended.code, ended.note) == (137, "machine restarted")
    assert scene.bench().lines("trace") == []


def test_scraps_of_a_crash_are_cleared(scene: Scene) -> None:
    starts = scene.root / STARTS
    starts.mkdir(parents=True)
    (starts / "1.0.new").write_bytes(b"half")
    (starts / "3.0.1").write_bytes(b"\xff not a start")
    (scene.root / f"{keeper_name(0)}.book").write_bytes(read_boot_id().encode() + b"\n+ nonsense\n- 1\n\xff\n+ 9.0.1")
    assert scene.bench().wait_seen().held == ()
    assert [path.name for path in starts.iterdir()] == ["3.0.1"], "what cannot be read is left as evidence"
    (starts / "3.0.1").unlink()


TREE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
    open("child", "w").write(f"{os.getpid()}\\n")
    time.sleep(600)
if sys.argv[1] == "polite":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
open("parent", "w").write(f"{os.getpid()}\\n")
time.sleep(600)
"""


@pytest.mark.parametrize("is_adopted", [False, True])
@pytest.mark.parametrize(("manner", "grace_ms", "code"), [("stubborn", 100, 137), ("polite", MINUTE_MS, 0)])
def test_a_whole_tree_goes(scene: Scene, manner: str, grace_ms: int, code: int, is_adopted: bool) -> None:
    bench = scene.bench()
    bench.start(Spec(command=(sys.executable, "-c", TREE, manner), workdir=str(scene.scratch)))
    pids = [int(bench.wait_for_line(name)[0]) for name in ("child", "parent")]
    if is_adopted:
        assert scene.kill_supervisor()
    bench.stop(grace_ms=grace_ms)
    assert bench.wait_exited().code == code
    assert [pid for pid in pids if is_alive(pid)] == []


def test_the_polite_signal_comes_once(scene: Scene) -> None:
    bench = scene.bench()
    count = "trap 'echo term >> terms; [ -e go ] && exit 0' TERM; echo up > up; while [ ! -e go ]; do sleep 0.01; done"
    bench.start(bench.shell(count))
    bench.wait_for_line("up")
    bench.stop()
    bench.wait_for_line("terms")
    bench.stop()
    bench.start(bench.shell("exit 0"), job=2)
    bench.wait_exited(job=2)
    (scene.scratch / "go").touch()
    assert bench.wait_exited().code == 0
    assert bench.lines("terms") == ["term"]


def test_a_stop_right_after_the_start_is_not_swallowed(scene: Scene) -> None:
    bench = scene.bench()
    for job in range(1, 21):
        bench.start(Spec(command=("sleep", "600")), job=job)
        bench.wait_started(job=job)
        bench.stop(job=job)
        assert bench.wait_exited(job=job).code == 143


def test_a_start_on_its_way_is_held(scene: Scene) -> None:
    bench = scene.bench()
    bench.engine.close()
    bench.recorder.events.clear()
    bench.start(bench.shell("exit 0", array=3))
    bench.engine.open(bench.recorder)
    assert [(held.job, held.first, held.count) for held in bench.wait_seen().held] == [(1, 0, 3)]
    assert bench.wait_exited(task=2).code == 0


BODY = """
import sys
import threading
from pathlib import Path
from muster.engines.local.engine import LocalEngine
from muster.model.instruction import Start
from muster.model.spec import Spec
from muster.units import Resources
engine = LocalEngine(Path(sys.argv[1]), "here", Resources(cpu_milli=1))
spec = Spec(command=("/bin/sh", "-c", sys.argv[2]), workdir=sys.argv[3], array=2)
is_there = threading.Event()
engine.open(lambda events: is_there.set())
is_there.wait()
for task in range(2):
    engine.carry_out([Start(1, 1, spec, task, ["here"], [1], [0])])
sys.stdin.read()
"""


@pytest.mark.parametrize("turn", [1, 2])
def test_a_body_killed_before_it_sends(scene: Scene, turn: int) -> None:
    command = [sys.executable, "-c", BODY, str(scene.root), COUNTED, str(scene.scratch)]
    environment = {**os.environ, "MUSTER_FAILPOINT": f"engine.before_send:{turn}"}
    body = scene.spawn(command, env=environment, stdin=subprocess.PIPE)
    assert body.wait() == -signal.SIGKILL
    assert body.stdin is not None
    body.stdin.close()
    bench = scene.bench()
    bench.start(bench.shell(COUNTED, array=2))
    check_each_ran_once(bench, 2)


def test_an_older_epoch_starts_nothing(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell(COUNTED), epoch=2)
    bench.start(bench.shell(COUNTED), epoch=1)
    assert bench.wait_exited(epoch=1).code == 143
    check_each_ran_once(bench, 1, epoch=2)


def test_a_task_sees_nothing_of_the_server(scene: Scene) -> None:
    scene.supervise(SERVER_KEY="hush", LD_LIBRARY_PATH="/evil", MUSTER_FAILPOINT="leader.after_commit:9")
    bench = scene.bench()
    bench.start(bench.shell("env > env; ls /proc/$$/fd > fds; trap > traps; echo out; echo err >&2"))
    assert bench.wait_exited().code == 0
    names = {line.partition("=")[0] for line in bench.lines("env")}
    allowed = {*KEPT, "PWD", "OLDPWD", "SHLVL", "_", "CUDA_VISIBLE_DEVICES"}
    assert names <= allowed | {
        f"MUSTER_{name}" for name in ("ENGINE", "JOB", "TASK", "EPOCH", "TASKS", "PLACE", "PROGRESS")
    }
    assert set(bench.lines("fds")) <= {"0", "1", "2", "3", "10"}, "3 is of ls, 10 of the shell"
    assert bench.lines("traps") == []
    assert log_path(scene.root, 1, 0, 1).read_text() == "out\nerr\n"


def test_signals_are_as_a_program_expects_them(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("grep Sig /proc/self/status > signals"))
    assert bench.wait_exited().code == 0
    masks = {line.split(":")[0]: int(line.split()[1], 16) for line in bench.lines("signals") if "Q" not in line}
    libc_own = 0b11 << 31  # 32 and 33, which glibc's posix_spawn always ignores and nobody else can use
    assert (masks["SigBlk"], masks["SigIgn"] & ~libc_own) == (0, 0)


def test_a_root_with_a_long_path(tmp_path: Path) -> None:
    home = tmp_path / ("d" * 100) / ("e" * 100)
    home.mkdir(parents=True)
    scene = Scene(home)
    try:
        bench = scene.bench()
        bench.start(bench.shell(COUNTED))
        check_each_ran_once(bench, 1)
    finally:
        scene.clear()


def test_one_supervisor_and_only_for_its_owner(scene: Scene) -> None:
    first = scene.supervise()
    second = scene.supervise()
    assert second.wait() == 0
    assert scene.find_supervisor() == first.pid
    assert scene.root.stat().st_mode & 0o777 == 0o700
    assert (scene.root / "supervisor.sock").stat().st_mode & 0o777 == 0o600
    assert shut_down(scene.root)
    assert first.wait() == 0


def test_two_engines_at_once_start_one_supervisor(scene: Scene) -> None:
    scene.bench()
    other = Bench(lambda: LocalEngine(scene.root, "here", Resources(cpu_milli=1)), "here", scene.scratch)
    try:
        other.start(other.shell(COUNTED))
        check_each_ran_once(other, 1)
        assert scene.bench().wait_exited().code == 0, "both hear of it"
    finally:
        other.engine.close()


def test_garbage_on_the_socket_harms_nobody(scene: Scene) -> None:
    bench = scene.bench()
    bench.wait_seen()
    directory = os.open(scene.root, os.O_PATH)
    try:
        for data in (b"GET / HTTP/1.1\r\n\r\n", (FRAME_BYTES_MAX + 1).to_bytes(4, "big"), b"\0\0\0\1\xc1"):
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(f"/proc/self/fd/{directory}/supervisor.sock")
                link.settimeout(PATIENCE_S)
                link.sendall(data)
                assert link.recv(1) == b"", "it hangs up"
    finally:
        os.close(directory)
    bench.start(bench.shell(COUNTED))
    check_each_ran_once(bench, 1)


def test_a_word_too_long_for_the_system_is_an_end(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(Spec(command=("/bin/true", "x" * (128 * 1024))))
    ended = bench.wait_exited()
    assert ended.code == 126
    assert "too long" in ended.note


def test_a_run_that_cannot_be_recorded_is_an_end(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path)
    supervisor.adopt_all()
    for number in range(KEEPERS):
        supervisor.meet(number, Kept([]))
    (tmp_path / STARTS / "1.0.1").mkdir()
    supervisor.carry_out(Start(1, 1, Spec(command=("true",)), 0, ["here"], [1], [0]), "here")
    (event,) = supervisor.take_events()
    assert msgspec.structs.asdict(event)["code"] == 126


DAEMON = "setsid sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do sleep 0.01; done;"


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_daemon_in_a_session_of_its_own_does_not_outlive_its_task(scene: Scene, is_stopped: bool) -> None:
    bench = scene.bench()
    bench.start(bench.shell(DAEMON + ("echo up > up; wait" if is_stopped else "exit 0")))
    if is_stopped:
        bench.wait_for_line("up")
        bench.stop()
    assert bench.wait_exited().code == (143 if is_stopped else 0)
    (pid,) = bench.lines("pid")
    wait_until(lambda: not is_alive(int(pid)), "the daemon's end")


def test_what_a_task_used_is_told(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(Spec(command=(sys.executable, "-c", "x = bytearray(64 << 20); sum(range(3_000_000))")))
    ended = bench.wait_exited()
    assert ended.code == 0
    assert ended.cpu_ms > 0
    assert ended.rss_bytes > 64 << 20


def test_endless_output_neither_fills_the_disk_nor_stops_the_task(scene: Scene) -> None:
    scene.supervise(MUSTER_LOG_BYTES_MAX=str(1 << 20))
    bench = scene.bench()
    bench.start(
        bench.shell("echo begin; head -c 30000000 /dev/urandom; echo up > up; while [ ! -e go ]; do sleep 0.01; done")
    )
    bench.wait_for_line("up")
    log = log_path(scene.root, 1, 0, 1)
    wait_until(lambda: log.stat().st_blocks * 512 <= 1 << 20, "the log is trimmed")
    (scene.scratch / "go").touch()
    assert bench.wait_exited().code == 0
    assert log.stat().st_size > 30_000_000
    assert log.read_bytes().startswith(b"begin\n")


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_keepers_killed_at_random_moments_start_nothing_twice(scene: Scene, seed: int) -> None:
    """A keeper's death ends its tasks. Each is told as it ended or as killed, and none runs again in its epoch."""
    dice = random.Random(seed)
    bench = scene.bench()
    bench.wait_seen()
    tasks = 40
    killed = 0
    for first in range(0, tasks, 8):
        spec = bench.shell("sleep 0.0$((MUSTER_TASK * 7 % 10)); " + COUNTED, array=tasks)
        bench.engine.carry_out([Start(1, 1, spec, first, ["here"], [8], [0])])
        time.sleep(dice.random() * 0.08)  # the moment is the dice's; nothing waits for it
        keepers = scene.find_keepers()
        killed += any(map(is_killed, dice.sample(keepers, len(keepers))))  # one of them
    codes = {task: {event.code for event in find_exits_of(bench, task)} for task in range(tasks)}
    assert all(len(told) == 1 and told <= {task % 3, 137} for task, told in codes.items()), codes
    traces = {path.name: path.read_text() for path in scene.scratch.glob("trace.*")}
    assert set(traces.values()) <= {"run\n"}
    clean = {f"trace.{task}.1" for task, told in codes.items() if told != {137}}
    assert clean <= set(traces), "who ended by itself ran"
    assert killed > 0


def is_killed(pid: int) -> bool:
    """Whether there was somebody to kill: the shell that starts a keeper has its words for a moment, and leaves."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def find_exits_of(bench: Bench, task: int) -> list[Exited]:
    bench.wait_exited(task=task)
    return find_exits(bench.recorder.events, 1, 1, task)


PODMAN = """#!/bin/sh
echo "$@" >> "$0.calls"
[ "$1" = run ] || exit 0
while [ "$1" != the/image:1 ]; do shift; done
shift
exec "$@"
"""


def test_a_task_with_an_image_runs_by_podman_and_its_container_is_removed(scene: Scene) -> None:
    """With a program in podman's place that runs the command itself: what it is told is what counts here."""
    podman = scene.scratch / "podman"
    podman.write_text(PODMAN)
    podman.chmod(0o755)
    scene.supervise(PATH=f"{scene.scratch}:{os.environ['PATH']}")
    bench = scene.bench()
    bench.start(bench.shell("echo $WORD > out; exit 4", image="the/image:1", env={"WORD": "secret"}))
    assert bench.wait_exited().code == 4
    assert bench.lines("out") == ["secret"]
    wait_until(lambda: any(line.startswith("rm ") for line in bench.lines("podman.calls")), "the removal")
    ran, removed = (line.split() for line in bench.lines("podman.calls"))
    assert {"--env=WORD", "--env=MUSTER_JOB", f"--volume={scene.scratch}:{scene.scratch}"} <= set(ran)
    assert "secret" not in ran
    assert "--env=HOME" not in ran
    assert f"--name={removed[-1]}" in ran


def test_a_podman_that_cannot_run_the_container_is_told_apart_from_the_job(scene: Scene) -> None:
    podman = scene.scratch / "podman"
    podman.write_text("#!/bin/sh\necho no daemon >&2\nexit 125\n")
    podman.chmod(0o755)
    scene.supervise(PATH=f"{scene.scratch}:{os.environ['PATH']}")
    bench = scene.bench()
    bench.start(bench.shell("exit 0", image="the/image:1"))
    ended = bench.wait_exited()
    assert (ended.code, ended.note) == (
        125,
        "podman could not run the container, and the job's log has its words [M349]",
    )


def test_without_podman_and_docker_a_job_with_an_image_is_refused_clearly(scene: Scene) -> None:
    scene.supervise(PATH=str(scene.scratch))
    bench = scene.bench()
    bench.start(bench.shell("echo run >> trace", image="the/image:1"))
    ended = bench.wait_exited()
    assert (ended.code, "[M349]" in ended.note, bench.lines("trace")) == (126, True, [])


EATER = "import time; x = bytearray(96 << 20); time.sleep(600)"


def test_a_task_with_more_memory_than_it_asked_for_is_ended_and_told_why(scene: Scene) -> None:
    bench = scene.bench()
    command = ("sh", "-c", f'"$0" -c "{EATER}" & wait', sys.executable)  # its child has it, not itself
    bench.start(Spec(command=command, workdir=str(scene.scratch), ask=Resources(memory_bytes=64 << 20)))
    ended = bench.wait_exited()
    assert ended.code == 137
    assert ended.note.startswith("out of memory")
    assert "asked for 64Mi [M334]" in ended.note


def test_tasks_begin_without_core_dumps_and_with_enough_files(scene: Scene) -> None:
    bench = scene.bench()
    bench.start(bench.shell("ulimit -S -c > core; ulimit -S -n > files"))
    assert bench.wait_exited().code == 0
    assert bench.lines("core") == ["0"]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert bench.lines("files") == [str(min(65_536, most) if most != resource.RLIM_INFINITY else 65_536)]
