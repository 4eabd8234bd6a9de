"""The failures that users of other schedulers report, by the names they have in our catalogue; real processes.

One server lives through all of it. Each test says in its first line what would break it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from live import LiveHome, await_true

from muster.model.errors import MusterError
from muster.model.event import Exited, NodeSeen, Started, Submit
from muster.model.phase import Succeeded
from muster.model.spec import Spec
from muster.sdk.client import Client
from muster.testing.rig import Rig
from muster.units import Resources

HOLD: Final = 'echo $$ >> "$0"; while [ ! -e "$0.go" ]; do sleep 0.05; done; exit 7'
HERD: Final = 32
BURNERS: Final = 8
ALL_FREE: Final = Resources(gpus=8, cpu_milli=32_000, memory_bytes=64 << 30)


def start_held(live: LiveHome, mark: Path, **fields: object) -> int:
    """A job that notes each of its starts, and runs until it is let go."""
    with live.client() as client:
        spec = Spec(("/bin/sh", "-c", HOLD, str(mark)), ask=Resources(gpus=1, cpu_milli=1000), **fields)  # type: ignore[arg-type]  # fields pass through
        job = client.submit(spec).job
    await_true(lambda: mark.exists() and mark.read_text() != "", "the job runs")
    return job


def let_go(live: LiveHome, job: int, mark: Path) -> list[str]:
    """End it, check its code, and say how often it started."""
    Path(f"{mark}.go").touch()
    with live.client() as client:
        view = client.wait(job)
    assert (view.phase, view.exit_code, view.epoch) == ("failed", 7, 1)
    return mark.read_text().split()


def find_free(live: LiveHome) -> Resources:
    with live.client() as client:
        return client.nodes()[0].free


def test_f1_two_leaders_start_nothing_twice(harmed: LiveHome, tmp_path: Path) -> None:
    """Breaks if a second leader may write while the first one is only paused."""
    mark = tmp_path / "mark"
    job = start_held(harmed, mark)
    leader = harmed.find_pid("leader")
    assert leader is not None
    os.kill(leader, signal.SIGSTOP)
    try:
        program = [sys.executable, "-P", "-m", "muster.app", "leader", "--home", str(harmed.root)]
        second = subprocess.run(program, env=harmed.env, capture_output=True, text=True, timeout=300, check=False)
    finally:
        os.kill(leader, signal.SIGCONT)
    assert (second.returncode, "error[M303]" in second.stderr) == (2, True)
    assert len(let_go(harmed, job, mark)) == 1


def test_f2_and_f5_neither_a_restart_nor_silence_starts_or_kills_anything(harmed: LiveHome, tmp_path: Path) -> None:
    """Breaks if running work is not adopted, or if who is not heard of is taken for dead."""
    mark = tmp_path / "mark"
    job = start_held(harmed, mark)
    for role in ("leader", "follower", "supervisor"):
        harmed.kill(role)
    harmed.muster("up")
    await_true(lambda: harmed.find_pid("supervisor") is not None, "a supervisor is back")
    supervisor = harmed.find_pid("supervisor")
    assert supervisor is not None
    os.kill(supervisor, signal.SIGSTOP)  # silence
    harmed.muster("status")
    with harmed.client() as client:
        assert client.show(job).phase == "running"
    os.kill(supervisor, signal.SIGCONT)
    assert len(let_go(harmed, job, mark)) == 1


def test_f3_a_late_failure_does_not_overwrite_a_success() -> None:
    """Breaks if a report is believed of a job that is over."""
    rig = Rig()
    rig.feed(NodeSeen("n1", Resources(gpus=8, cpu_milli=8000)))
    rig.feed(Submit(Spec(("true",), retries=3)))
    rig.feed(Started(1, 1))
    rig.feed(Exited(1, 1, 0))
    for late in (Exited(1, 1, 137), Exited(1, 2, 1), Started(1, 1), NodeSeen("n1", Resources(gpus=8, cpu_milli=8000))):
        rig.feed(late)
        assert isinstance(rig.world.jobs[1].phase, Succeeded)


def test_f4_and_f6_whoever_dies_gives_its_place_back(harmed: LiveHome, tmp_path: Path) -> None:
    """Breaks if the end of a task, or of its keeper, is noticed by nobody, or if its devices stay counted."""
    marks = [tmp_path / name for name in ("task", "keeper")]
    jobs = [start_held(harmed, mark) for mark in marks]
    task, other = (int(mark.read_text()) for mark in marks)
    os.kill(task, signal.SIGKILL)
    stat = Path(f"/proc/{other}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)  # its parent, the keeper
    with harmed.client() as client:
        views = [client.wait(job) for job in jobs]
    assert [(view.phase, view.exit_code) for view in views] == [("failed", 137)] * 2
    await_true(lambda: find_free(harmed) == ALL_FREE, "all is free")


def test_f17_a_herd_after_a_restart_is_served_once_each(harmed: LiveHome) -> None:
    """Breaks if retries of many clients at once make jobs twice, lose some, or keep the server down."""
    harmed.muster("down")
    acknowledged: dict[str, int] = {}
    given_up = threading.Event()

    def pursue(name: str) -> None:
        spec = Spec(("true",), name=name, ask=Resources(cpu_milli=100))
        with Client(harmed.home) as client:
            while name not in acknowledged and not given_up.wait(0.02):
                with suppress(MusterError):
                    acknowledged[name] = client.submit(spec, name).job

    threads = [threading.Thread(target=pursue, args=(f"herd-{number}",)) for number in range(HERD)]
    for thread in threads:
        thread.start()
    harmed.muster("up")
    for thread in threads:
        thread.join(120)
    given_up.set()
    assert len(acknowledged) == HERD
    with harmed.client() as client:
        assert {client.wait(job).phase for job in acknowledged.values()} == {"succeeded"}
        names = Counter(job.name for job in client.list(state="all", limit=1000).jobs)
    assert {names[name] for name in acknowledged} == {1}


def test_f21_jobs_that_burn_every_core_do_not_starve_the_server(harmed: LiveHome) -> None:
    """Breaks if the server needs a core to itself in order to answer, to start and to stop."""
    with harmed.client() as client:
        burn = Spec(("/bin/sh", "-c", "while :; do :; done"), array=BURNERS, grace_ms=100)
        burner = client.submit(burn).job
        await_true(lambda: client.show(burner).phase == "running", "they burn")
        assert client.wait(client.submit(Spec(("true",))).job).phase == "succeeded"
        client.cancel(burner)
        assert client.wait(burner).phase == "cancelled"
    await_true(lambda: find_free(harmed) == ALL_FREE, "all is free")


@pytest.mark.slow
def test_a_leader_or_a_follower_that_hangs_is_named(harmed: LiveHome) -> None:
    """F21 from the other side: who is there and does nothing is not taken for fit."""
    leader, follower = harmed.find_pid("leader"), harmed.find_pid("follower")
    assert leader is not None
    assert follower is not None
    with harmed.client() as client:
        os.kill(leader, signal.SIGSTOP)
        try:
            await_true(lambda: not client.health().leader, "the follower noticed that nobody decides")
            assert "error[M307]" in harmed.muster("run", "-d", "--", "true", code=4).stderr
            assert f"process {leader}; it does not answer" in harmed.muster("status", code=3).stdout
            client.list()
        finally:
            os.kill(leader, signal.SIGCONT)
        await_true(lambda: client.health().leader, "it speaks again")
    os.kill(follower, signal.SIGSTOP)
    try:
        assert "error[M358]" in harmed.muster("status", code=3).stderr
    finally:
        os.kill(follower, signal.SIGCONT)
    harmed.muster("status")
