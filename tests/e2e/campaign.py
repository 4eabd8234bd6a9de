"""The crash campaign: submit under load, kill -9 whoever is to die, bring it back, and compare the books at the end.

Three books must agree: what clients were told (acknowledged job numbers by key), what the journal says, and what the
jobs themselves wrote (one line per run of each). A long job that runs through it all must still be the same process.
The journal is folded once more under the auditor's eyes, so that no law was broken on the way: quota, devices and
bookings are what they were, and history is what the journal says.
"""

from __future__ import annotations

import contextlib
import random
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from live import LiveHome, await_true

from muster.control.history import fold_history
from muster.lifecycle.gang import TABLE
from muster.model.errors import MusterError
from muster.model.fact import Accepted, Ended, Retired
from muster.model.phase import TaskPhase
from muster.model.spec import Spec
from muster.model.tenant import Tenant, limits
from muster.ports.failpoint import VARIABLE
from muster.ports.store import Commit, Wanted
from muster.sdk.client import Client
from muster.stores.memory import MemoryStore
from muster.stores.sqlite import SqliteJournal
from muster.units import DAY_MS, HOUR_MS, Resources
from muster.wire.codec import Entry, decode_entry
from muster.wire.views import BookingView, JobView
from muster.world.apply import apply_entry
from muster.world.audit.auditor import Auditor
from muster.world.laws.invariants import check_world
from muster.world.world import World

THREADS: Final = 3
ROLES: Final = ("leader", "follower", "supervisor")
STEADY_CODE: Final = 7
SMALL: Final = Resources(cpu_milli=1000)
TENANT: Final = "lab"
LOAD: Final = Resources(gpus=1, cpu_milli=1000)
QUOTA_GPUS: Final = 6


class Tally(NamedTuple):
    """What a campaign came to."""

    acknowledged: int
    accepted: int
    runs: int
    tried_again: int
    entries: int


class Load:
    """Threads that submit keyed jobs, each until it is acknowledged, however often the server dies meanwhile."""

    def __init__(self, live: LiveHome, out: Path, pace_s: float) -> None:
        self._live = live
        self._out = out
        self._pace_s = pace_s
        self._enough = threading.Event()
        self._abandoned = threading.Event()
        self._numbers = iter(range(1_000_000_000))
        self._turn = threading.Lock()
        self.acknowledged: dict[str, int] = {}
        self._threads = [threading.Thread(target=self._run, name=f"load-{n}") for n in range(THREADS)]

    def start(self) -> None:
        """Begin to submit."""
        for thread in self._threads:
            thread.start()

    def provoke(self) -> threading.Thread:
        """Submit one job, besides or without the load."""
        thread = threading.Thread(target=self._submit_one, name="provoker")
        thread.start()
        self._threads.append(thread)
        return thread

    def count_living(self) -> int:
        """How many threads still submit."""
        return sum(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Begin nothing new, and pursue what was begun to its acknowledgement."""
        self._enough.set()
        await_true(lambda: not any(thread.is_alive() for thread in self._threads), "all submits are acknowledged")

    def abandon(self) -> None:
        """Let go of everything: the campaign is over, one way or the other."""
        self._enough.set()
        self._abandoned.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _submit_one(self) -> None:
        with self._live.client(patience_s=1) as client:
            self._pursue(client, self._next_key())

    def _next_key(self) -> str:
        with self._turn:
            return f"k{next(self._numbers)}"

    def _run(self) -> None:
        with self._live.client(patience_s=1) as client:
            while not self._enough.is_set():
                self._pursue(client, self._next_key())
                self._enough.wait(self._pace_s)  # leaves the machine room to run the jobs

    def _pursue(self, client: Client, key: str) -> None:
        script = f'echo "$MUSTER_EPOCH" >> {shlex.quote(str(self._out / key))}'
        spec = Spec(("/bin/sh", "-c", script), name=key, ask=LOAD, tenant=TENANT)
        while not self._abandoned.is_set():
            try:
                job = client.submit(spec, key).job
            except MusterError:
                self._abandoned.wait(0.05)
                continue
            with self._turn:
                self.acknowledged[key] = job
            return


class Campaign:
    """One server, one load, one steady job, any number of deaths."""

    def __init__(self, live: LiveHome, place: Path, pace_s: float = 0.02) -> None:
        self.live = live
        self._out = place / "out"
        self._out.mkdir()
        self._steady_file = place / "steady"
        self._release_file = place / "release"
        self._steady_job = 0
        self._spawned: list[subprocess.Popen[bytes]] = []
        self._bookings: tuple[BookingView, ...] = ()
        self.load = Load(live, self._out, pace_s)

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.load.abandon()
        self._end_spawned()

    def begin(self, *, is_loaded: bool = True) -> None:
        """Set a quota, book a window, start the job that is to live through everything, and then the load."""
        words = (str(self._steady_file), str(self._release_file))
        script = f'echo $$ >> "$0"; while [ ! -e "$1" ]; do sleep 0.1; done; exit {STEADY_CODE}'
        with self.live.client() as client:
            client.set_tenant(TENANT, Tenant(lines=limits(gpus=QUOTA_GPUS)))
            opens_at = int(time.time() * 1000) + 30 * DAY_MS
            client.reserve("later", "default", 1, [(opens_at, opens_at + HOUR_MS)])
            self._bookings = client.bookings()
            self._steady_job = client.submit(Spec(("/bin/sh", "-c", script, *words), ask=SMALL), "steady").job
        await_true(lambda: self._steady_pids() != [], "the steady job runs")
        if is_loaded:
            self.load.start()

    def arm(self, point: str, passes: int, *, is_recovering: bool = False) -> subprocess.Popen[bytes] | None:
        """Replace the process that passes `point` by one that will die there. None if it is the supervisor. What is
        recovering finds everybody dead, and begins anew beside those who wait."""
        role = role_of(point)
        if is_recovering:
            self._end_spawned()  # one of them may be so young that it has not said yet who it is
            for other in ROLES:
                self.live.kill(other)
            process = self._spawn("follower" if role == "follower" else "leader", f"{point}:{passes}")
            self._spawn("leader" if role == "follower" else "follower", "")
            return None if role == "supervisor" else process
        if role == "supervisor":  # it is the leader's to start, and inherits its environment
            self.live.kill("leader")
            self.live.kill("supervisor")
            self._spawn("leader", f"{point}:{passes}")
            return None
        self.live.kill(role)
        return self._spawn(role, f"{point}:{passes}")

    def _spawn(self, role: str, arming: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-P", "-m", "muster.app", role, "--home", str(self.live.root)]
        with self.live.home.log_file(role).open("ab") as log:
            process = subprocess.Popen(
                program,
                env={**self.live.env, VARIABLE: arming},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._spawned.append(process)
        return process

    def _end_spawned(self) -> None:
        for process in self._spawned:
            process.kill()
            process.wait(60)

    def evidence(self) -> str:
        """Who lives, how far the load is, and the last words of each."""
        lines = [f"acknowledged {len(self.load.acknowledged)}, {self.load.count_living()} threads submit"]
        for role in ROLES:
            log = self.live.home.log_file(role)
            words = log.read_text(errors="replace")[-1500:] if log.exists() else ""
            lines.append(f"{role} {self.live.find_pid(role)}\n{words}")
        return "\n".join(lines)

    def strike(self, dice: random.Random) -> int:
        """Kill up to all three roles, each at a random moment of its own, and bring the server back; how many died."""
        died = 0
        for role in dice.sample(ROLES, dice.choice((1, 2, 3, 3))):
            time.sleep(dice.uniform(0, 0.2))  # not a wait for anything: the moment itself is what is drawn
            died += self.live.kill(role) is not None
        self.live.muster("up")
        return died

    def finish(self) -> Tally:
        """End the load, let everything run out, and compare the books."""
        self.load.stop()
        self.live.muster("up")
        with self.live.client() as client:
            self._check_steady(client)
            for key, job in self.load.acknowledged.items():
                view = self._await_over(client, job)
                assert (view.phase, view.name) == ("succeeded", key), client.story(job)
            self._check_listing(client)
            self._check_conserved(client)
        self._check_laws()
        return self._check_journal()

    def _await_over(self, client: Client, job: int) -> JobView:
        give_up_at = time.monotonic() + 120
        while not (view := client.show(job, wait_ms=5_000)).is_over:
            assert time.monotonic() < give_up_at, f"job {job} does not end: {view}\n{client.story(job)}"
        return view

    def _check_steady(self, client: Client) -> None:
        """The long job was adopted each time: one process from the beginning, and its own exit code."""
        [pid] = self._steady_pids()
        assert Path(f"/proc/{pid}").exists(), "the steady job was lost"
        self._release_file.touch()
        view = self._await_over(client, self._steady_job)
        assert (view.phase, view.exit_code, view.epoch) == ("failed", STEADY_CODE, 1), client.story(self._steady_job)
        assert self._steady_pids() == [pid], "the steady job ran twice"

    def _check_listing(self, client: Client) -> None:
        """Each acknowledged job is listed once; over a long campaign, the first have retired to history."""
        listed: Counter[int] = Counter()
        after: int | None = 0
        while after is not None:
            page = client.list(state="all", after=after, limit=1000)
            listed.update(job.id for job in page.jobs)
            after = page.next_after
        assert set(listed.values()) == {1}
        retired = {job for item in self._facts() if isinstance(item, Retired) for job in item.jobs}
        assert set(self.load.acknowledged.values()) <= set(listed) | retired

    def _check_conserved(self, client: Client) -> None:
        """Nothing is held any more, everything is free, and what was booked is booked."""
        [tenant] = [each for each in client.tenants() if each.name == TENANT]
        assert not any(tenant.used.values()), tenant
        [node] = client.nodes()
        assert node.free == node.capacity
        assert client.bookings() == self._bookings

    def _check_laws(self) -> None:
        """Fold the journal again, all of it, with every law watched; and history once more from the same facts."""
        world, auditor, again = World(), Auditor(TABLE), MemoryStore()
        for entry in self._entries():
            apply_entry(world, entry.seq, entry.at, entry.facts)
            auditor.observe(world, entry.facts)
            again.append([Commit(entry.seq, b"", b"")])
        check_world(world)
        with contextlib.closing(SqliteJournal(self.live.home.journal_file)) as journal:
            again.fill(chapter for _, chapter in fold_history(journal, world.seq))
            everything = Wanted(limit=10**6)
            assert journal.read_finished(everything) == again.read_finished(everything)
            assert journal.read_uses(0, 10**9, hourly=True)[1] == again.read_uses(0, 10**9, hourly=True)[1]

    def _check_journal(self) -> Tally:
        """No key was accepted twice, no acknowledgement is missing, no job ended twice, no run wrote twice."""
        accepted: dict[str, list[int]] = {}
        ended: Counter[int] = Counter()
        for item in self._facts():
            if isinstance(item, Accepted):
                accepted.setdefault(item.key, []).append(item.job)
            elif isinstance(item, Ended):
                ended[item.job] += 1
                assert item.phase is not TaskPhase.CANCELLED
        assert not {key: jobs for key, jobs in accepted.items() if len(jobs) > 1}, "a key made two jobs"
        assert self.load.acknowledged.items() <= {key: jobs[0] for key, jobs in accepted.items()}.items()
        assert set(ended.values()) == {1}
        assert len(ended) == len(accepted)
        runs = [self._runs_of(key) for key in accepted if key != "steady"]
        tried_again = sum(len(epochs) > 1 for epochs in runs)
        entries = sum(1 for _ in self._entries())
        return Tally(len(self.load.acknowledged), len(accepted), sum(map(len, runs)), tried_again, entries)

    def _runs_of(self, key: str) -> list[int]:
        """The epochs that a job itself saw. Each try ran once; a second try is rare, and fenced by its epoch."""
        file = self._out / key
        assert file.exists(), f"job {self.load.acknowledged.get(key)} of {key} never ran"
        epochs = [int(line) for line in file.read_text().split()]
        assert len(set(epochs)) == len(epochs), f"{key} ran twice in one epoch: {epochs}"
        return epochs

    def _facts(self) -> list[object]:
        return [item for entry in self._entries() for item in entry.facts]

    def _entries(self) -> Iterator[Entry]:
        with contextlib.closing(SqliteJournal(self.live.home.journal_file)) as journal:
            after = 0
            while entries := journal.read_entries(after):
                yield from map(decode_entry, entries)
                after += len(entries)

    def _steady_pids(self) -> list[int]:
        try:
            return [int(line) for line in self._steady_file.read_text().split()]
        except FileNotFoundError:
            return []


def role_of(point: str) -> str:
    """Which process passes a failpoint: the store and the engine's near end live in the leader."""
    room = point.partition(".")[0]
    return room if room in ROLES else "leader"
