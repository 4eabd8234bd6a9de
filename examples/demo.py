"""A tour of Muster: `make demo`. It ends with a list of checks, and with 0 if all of them hold.

Everything is real: a server on this machine, real processes, real kills. Only the GPUs are declared and not there
(`muster up --capacity` says so), because a laptop has none. All files are in a temporary directory, which is removed.
It needs no terminal; on one it stays up at the end, so that you can look around.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from muster.model.errors import MusterError
from muster.model.spec import Spec
from muster.sdk import Client
from muster.sdk.home import Home
from muster.sdk.processes import find_server_process, find_start_time
from muster.units import Resources

CAPACITY: Final = "gpus=8,cpus=16,memory=32Gi"
DEADLINE_S: Final = 60.0
STEADY: Final = {"steady-1": 0, "steady-2": 3, "steady-3": 42}  # name -> the code it will exit with
SUBMITS_MIN: Final = 10
ONE_GPU: Final = Resources(gpus=1)
TRAINING: Final = Path(__file__).with_name("train.py")
HOLD: Final = 'echo $$ > "$0"; while [ ! -e "$0.go" ]; do sleep 0.1; done; exit "$1"'


class Check(NamedTuple):
    """One thing that must hold."""

    what: str
    holds: bool


class Trace(NamedTuple):
    """Which process a job is: a pid alone may be given away, with its start time it is one process for ever."""

    pid: int
    started: int | None


class Demo:
    """One home, the commands typed in it, and the checks so far."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.home = Home(place / "home")
        self.checks: list[Check] = []
        self.ended_well = True
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
        path = f"{Path(sys.executable).parent}:{kept.get('PATH', '/usr/bin:/bin')}"
        self._env = {**kept, "PATH": path, "MUSTER_HOME": str(self.home.root)}

    def type(self, line: str, code: int = 0) -> str:
        """Type one command line, show what it prints, and check how it ends; its standard output."""
        say(f"$ {line}")
        words = shlex.split(line)
        ran = subprocess.run(
            words, env=self._env, cwd=self.place, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        for told in (ran.stderr + ran.stdout).splitlines():
            say(f"  {told}")
        self.ended_well = ran.returncode == code
        if not self.ended_well:
            self.check(f"`{line}` ends with {code}, not with {ran.returncode}", holds=False)
        return ran.stdout

    def check(self, what: str, *, holds: bool) -> None:
        """Note whether something holds."""
        self.checks.append(Check(what, holds))
        say(f"  {'ok' if holds else 'FAILED'}: {what}")

    def find_supervisor(self) -> int | None:
        """The process that watches over the tasks, by the directory that it was started for."""
        wanted = str(self.home.engine_root)
        for entry in Path("/proc").iterdir():
            words = _read_words(entry) if entry.name.isdigit() else []
            if "muster.engines.local" in words and wanted in words:
                return int(entry.name)
        return None

    def kill_server(self) -> list[str]:
        """SIGKILL leader, follower and supervisor; who was hit."""
        pids = {"supervisor": self.find_supervisor()}
        for role in ("leader", "follower"):
            process = find_server_process(self.home, role)
            if process is not None:
                with process:
                    pids[role] = process.pid
        hit = {role: pid for role, pid in pids.items() if pid is not None}
        for pid in hit.values():
            os.kill(pid, signal.SIGKILL)
        return sorted(hit)


class Submitter(threading.Thread):
    """Goes on submitting, with a key each, whether or not a server is there; remembers what was acknowledged."""

    def __init__(self, demo: Demo) -> None:
        super().__init__(name="submitter")
        self._demo = demo
        self._enough = threading.Event()
        self.acknowledged: dict[str, int] = {}

    def run(self) -> None:
        """Each key is tried until somebody says yes."""
        with Client(self._demo.home, patience_s=1) as client:
            number = 0
            while not self._enough.is_set():
                number += 1
                self._pursue(client, f"key-{number}")

    def stop(self) -> None:
        """Begin nothing new."""
        self._enough.set()
        self.join()

    def _pursue(self, client: Client, key: str) -> None:
        command = ("sh", "-c", 'echo ran >> "$0"', str(self._demo.place / key))
        spec = Spec(command, name=key, ask=Resources(cpu_milli=500))
        give_up_at = time.monotonic() + DEADLINE_S
        while time.monotonic() < give_up_at:
            try:
                self.acknowledged[key] = client.submit(spec, key).job
                return
            except MusterError:  # nobody there: the key makes it safe to ask again
                time.sleep(0.05)


def show_hello(demo: Demo) -> None:
    """A server, and a job."""
    title("Start a server, run a job")
    demo.type(f"muster up --capacity {CAPACITY}")
    printed = demo.type("muster run -- echo hello")
    demo.check("a job's output comes back", holds=printed == "hello\n")
    demo.type("muster run -- sh -c 'exit 3'", code=3)
    demo.check("a job's exit code comes back", holds=demo.ended_well)


def show_gang(demo: Demo) -> None:
    """All or none, with ranks."""
    title("A gang: four tasks that start together, each with its rank and its devices")
    script = "echo rank $RANK of $WORLD_SIZE, devices $CUDA_VISIBLE_DEVICES"
    printed = demo.type(f"muster run --gang 4 --gpus 2 -- sh -c {shlex.quote(script)}")
    devices = [line.rpartition(" ")[2] for line in printed.splitlines()]
    demo.check("four ranks had two devices each, none shared", holds=sorted(devices) == ["0,1", "2,3", "4,5", "6,7"])


def show_array(demo: Demo) -> None:
    """Many small tasks."""
    title("An array: two hundred tasks, as many at once as fit")
    demo.type("muster run --array 200 --cpus 0.5 --name sweep -- sh -c 'exit 0'")
    [sweep] = [job for job in list_jobs(demo) if job.get("name") == "sweep"]
    demo.check("200 of 200 tasks succeeded", holds=sweep["counts"] == {"succeeded": 200})


def show_training(demo: Demo) -> None:
    """A crash costs what was not saved."""
    title("A gang that crashes, is tried again, and resumes from its checkpoint")
    words = "muster run --name train --tenant vision --gang 2 --gpus 2 --retries 1"
    printed = demo.type(f"{words} -- {sys.executable} {TRAINING} {demo.place}")
    demo.check("the second try went on behind the checkpoint", holds="try 2: begins at step 4" in printed)
    [train] = [job for job in list_jobs(demo) if job.get("name") == "train"]
    told = demo.type(f"muster story {train['id']}")
    demo.check("its checkpoints are known", holds="at step 3, checkpointed" in told)
    demo.check("what it used is known", holds="of CPU" in demo.type(f"muster show {train['id']}"))


def show_sharing(demo: Demo) -> None:
    """Who has had less goes first."""
    title("Two tenants, sixteen jobs and eight GPUs: who has had less goes first")
    wall = int(demo.type("muster run -d --name wall --gpus 8 -- sleep 300"))
    with Client(demo.home) as client:
        jobs = {
            client.submit(Spec(("sleep", "300"), name=f"{tenant}-{number}", tenant=tenant, ask=ONE_GPU)).job: tenant
            for tenant in ("north", "south")
            for number in range(8)
        }
        say("  (eight jobs of north, then eight of south, submitted from Python; the wall goes away)")
        demo.type(f"muster cancel {wall}")
        await_true(lambda: count_running(client, jobs).total() == 8, "eight of them run")
        shares = count_running(client, jobs)
        demo.check(f"both got the same: {dict(shares)}", holds=shares == {"north": 4, "south": 4})
        for job in jobs:
            client.cancel(job)
        for job in jobs:
            client.wait(job)


def count_running(client: Client, jobs: dict[int, str]) -> Counter[str]:
    """How many jobs of each tenant run."""
    return Counter(tenant for job, tenant in jobs.items() if client.show(job).phase == "running")


def show_preemption(demo: Demo) -> None:
    """A higher tier takes a lower one's place, by a table."""
    title("A job that cannot wait takes the place of one that can")
    sweep = demo.type("muster run -d --name sweep --tier opportunistic --gpus 8 -- sleep 300").strip()
    printed = demo.type("muster run --tier critical --gpus 8 -- echo urgent")
    demo.check("the urgent one ran at once", holds=printed == "urgent\n")
    told = demo.type(f"muster story {sweep}")
    demo.check("the other one was told why, and waits again or runs", holds="requeued" in told)
    demo.type(f"muster cancel {sweep}")
    demo.type(f"muster wait {sweep}", code=1)


def show_why(demo: Demo) -> None:
    """A job that waits can say why, and what would help."""
    title("A job that waits: why, and the advice taken")
    large = demo.type("muster run -d --name large --gpus 5 -- sleep 300").strip()
    waiting = demo.type("muster run -d --name small --gpus 4 -- true").strip()
    told = demo.type(f"muster why {waiting}")
    demo.check("the reason has numbers", holds="it needs 4 GPUs" in told or "waiting for room" in told)
    demo.check("and an offer", holds="starts now if: --gpus 3" in told)
    demo.type("muster run --name small --gpus 3 -- echo taken")
    demo.check("which holds: it ran at once", holds=demo.ended_well)
    demo.type("muster quota set lab gpus=2")
    demo.type("muster avail --tenant lab")
    demo.type(f"muster cancel {waiting} {large}")
    demo.type(f"muster wait {large}", code=1)


def show_booking(demo: Demo) -> None:
    """A window of time is somebody's: nobody else is in it, and nobody is stopped for it who could know."""
    title("A booking: the machine is vision's for a minute, in a few seconds")
    demo.type("muster reserve review --tenant vision --nodes 1 --from 4s --for 1m")
    other = demo.type("muster run -d --name other --gpus 1 -- sleep 300").strip()
    told = demo.type(f"muster why {other}")
    demo.check("who would be in the way does not start, and is told of the booking", holds="booking review" in told)
    printed = demo.type("muster run --tenant vision --booking review --gpus 8 -- echo on time")
    demo.check("the booking's own job has all of it when the window opens", holds=printed == "on time\n")
    demo.type("muster unreserve review")
    demo.type(f"muster cancel {other}")
    demo.type(f"muster wait {other}", code=1)


def show_crash(demo: Demo) -> None:
    """The promise that matters."""
    title("kill -9 the leader, the follower and the supervisor while jobs run and submits go on")
    steady = {name: start_steady(demo, name, code) for name, code in STEADY.items()}
    traces = {name: await_trace(demo, name) for name in STEADY}
    submitter = Submitter(demo)
    submitter.start()
    await_true(lambda: len(submitter.acknowledged) >= SUBMITS_MIN, "submits are acknowledged")
    hit = demo.kill_server()
    say(f"  killed with SIGKILL: {', '.join(hit)}; {len(submitter.acknowledged)} submits acknowledged so far")
    demo.check("leader, follower and supervisor died", holds=len(hit) == 3)
    demo.type("muster up")
    before = len(submitter.acknowledged)
    await_true(lambda: len(submitter.acknowledged) >= before + SUBMITS_MIN, "submits go on")
    submitter.stop()
    check_steady(demo, steady, traces)
    check_submits(demo, submitter.acknowledged)
    title("The life of one of them")
    demo.type(f"muster story {steady['steady-3']}")


def start_steady(demo: Demo, name: str, code: int) -> int:
    """A job that runs until it is let go."""
    script = f"sh -c {shlex.quote(HOLD)} {demo.place / name} {code}"
    return int(demo.type(f"muster run -d --name {name} -- {script}"))


def await_trace(demo: Demo, name: str) -> Trace:
    """Which process a steady job is, by its own word."""
    file = demo.place / name
    await_true(lambda: file.exists() and file.read_text().endswith("\n"), f"{name} runs")
    pid = int(file.read_text())
    return Trace(pid, find_start_time(pid))


def check_steady(demo: Demo, jobs: dict[str, int], traces: dict[str, Trace]) -> None:
    """Running work was adopted: the same processes, the same starts, and their own exit codes."""
    say("\n  job       process   same process  same start  epoch  exit code")
    for name, job in jobs.items():
        was, now = traces[name], await_trace(demo, name)
        (demo.place / f"{name}.go").touch()
        with Client(demo.home) as client:
            view = client.wait(job)
        code = 0 if view.phase == "succeeded" else view.exit_code
        same = was.pid == now.pid
        started = was.started is not None and was.started == now.started
        say(f"  {name:<9} {now.pid:<9} {same!s:<13} {started!s:<11} {view.epoch:<6} {code}")
        holds = same and started and view.epoch == 1 and code == STEADY[name]
        demo.check(f"{name} was adopted and ended with {STEADY[name]}", holds=holds)


def check_submits(demo: Demo, acknowledged: dict[str, int]) -> None:
    """Every acknowledged job is there once and ran once."""
    with Client(demo.home) as client:
        ends = Counter(client.wait(job).phase for job in acknowledged.values())
    listed = Counter(str(job.get("name")) for job in list_jobs(demo) if str(job.get("name")).startswith("key-"))
    ran = {key: (demo.place / key).read_text().count("ran") for key in acknowledged if (demo.place / key).exists()}
    say(f"\n  acknowledged {len(acknowledged)}, listed {len(listed)}, ended {dict(ends)}")
    demo.check("every acknowledged job is listed", holds=set(acknowledged) <= set(listed))
    demo.check("none was accepted twice", holds=set(listed.values()) == {1})
    demo.check("all of them succeeded", holds=ends == {"succeeded": len(acknowledged)})
    demo.check("each of them ran, and once", holds=ran == dict.fromkeys(acknowledged, 1))


def show_goodput(demo: Demo) -> None:
    """What it was all good for."""
    title("The account: what every moment of every GPU was spent on")
    told = demo.type("muster goodput")
    demo.check("there was useful work, and some was lost", holds="useful" in told and "lost" in told)
    demo.type("muster goodput --tenant vision")


def show_replay(demo: Demo) -> None:
    """What was decided can be decided again."""
    title("Record what this server decided, kills and all, and decide it again")
    recorded = demo.type("muster bundle day.bundle").split()[-1:]
    replayed = demo.type("muster replay day.bundle").split()[-1:]
    demo.check("the replay ends in the same world, by its digest", holds=recorded == replayed != [])


def stay(demo: Demo) -> None:
    """On a terminal, leave the server up until somebody has looked around."""
    if not sys.stdin.isatty():
        return
    title("The server is still up")
    say(f"  in another terminal:  export MUSTER_HOME={demo.home.root} PATH={Path(sys.executable).parent}:$PATH")
    say("  and then, for example:  muster ls --all · muster nodes · muster run --gpus 2 -- nvidia-smi")
    say("  Enter ends it and removes everything.")
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdin.readline()


def tidy(demo: Demo) -> None:
    """Leave nothing behind."""
    title("Tidy up")
    demo.type("muster down --jobs")
    left = [role for role in ("leader", "follower") if find_server_process(demo.home, role) is not None]
    give_up_at = time.monotonic() + DEADLINE_S
    while demo.find_supervisor() is not None and time.monotonic() < give_up_at:
        time.sleep(0.02)  # it has said goodbye, and is on its way out
    demo.check("no process is left", holds=not left and demo.find_supervisor() is None)


def list_jobs(demo: Demo) -> list[dict[str, object]]:
    """Every job, as the command line prints them for programs."""
    program = ["muster", "--home", str(demo.home.root), "ls", "--all", "--limit", "1000", "-o", "json"]
    ran = subprocess.run([Path(sys.executable).with_name("muster"), *program[1:]], capture_output=True, check=True)
    jobs: list[dict[str, object]] = json.loads(ran.stdout)["jobs"]
    return jobs


def await_true(is_true: Callable[[], bool], what: str) -> None:
    """Look until it is true, with a deadline."""
    give_up_at = time.monotonic() + DEADLINE_S
    while not is_true():
        if time.monotonic() > give_up_at:
            raise TimeoutError(what)
        time.sleep(0.02)


def title(words: str) -> None:
    """Begin a chapter."""
    say(f"\n== {words}")


def say(words: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def _read_words(process: Path) -> list[str]:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


CHAPTERS: Final = (
    show_hello,
    show_gang,
    show_training,
    show_array,
    show_sharing,
    show_preemption,
    show_why,
    show_booking,
    show_crash,
    show_goodput,
    show_replay,
)


def main() -> int:
    """The tour, the tidying, the list."""
    say(f"Muster on this machine. Its GPUs are declared, not real: {CAPACITY}")
    with tempfile.TemporaryDirectory(prefix="muster-demo-") as place:
        demo = Demo(Path(place))
        try:
            for chapter in CHAPTERS:
                chapter(demo)
        except (TimeoutError, OSError, ValueError, MusterError, subprocess.SubprocessError) as error:
            demo.check(f"the tour goes through: {type(error).__name__}: {error}", holds=False)
        finally:
            stay(demo)
            tidy(demo)
    failed = [check for check in demo.checks if not check.holds]
    title(f"{len(demo.checks) - len(failed)} of {len(demo.checks)} checks hold")
    for check in demo.checks:
        say(f"  {'ok    ' if check.holds else 'FAILED'}  {check.what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
