"""The command line against a real server: what a user types, and what comes back."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from live import LiveHome, await_true, serving

from muster.cli.main import run_command
from muster.model.spec import Spec
from muster.sdk.errors import RefusedError
from muster.units import AMOUNT_MAX, Resources

HOLD = 'echo $$ > "$0"; while [ ! -e "$0.release" ]; do sleep 0.05; done; exit 7'


def test_up_again_finds_nothing_missing(live: LiveHome) -> None:
    assert live.muster("up").stdout.startswith("already up: http://127.0.0.1:")


def test_two_ups_at_once_start_one_server(tmp_path: Path) -> None:
    both = LiveHome(tmp_path / "home")
    try:
        program = ["muster", "up"]
        racers = [subprocess.Popen(program, env=both.env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        told = sorted(racer.communicate(timeout=300)[0].split(":")[0] for racer in racers)
        assert told == ["already up", "started leader and follower"]
    finally:
        both.end_all()


def test_up_starts_only_what_is_missing(harmed: LiveHome) -> None:
    leader = harmed.find_pid("leader")
    harmed.kill("follower")
    assert harmed.muster("up").stdout.startswith("started follower: ")
    assert harmed.find_pid("leader") == leader


def test_up_beside_a_follower_that_just_starts_leaves_one(harmed: LiveHome) -> None:
    harmed.kill("follower")
    program = [sys.executable, "-P", "-m", "muster.app", "follower", "--home", str(harmed.root)]
    with subprocess.Popen(program, env=harmed.env, stderr=subprocess.DEVNULL, start_new_session=True) as other:
        harmed.muster("up")
        await_true(lambda: len(harmed.find_pids("follower")) == 1, "the later of the two has left")
        harmed.muster("down")
        assert other.wait(60) in (0, 2), "neither told to end nor refused"


def test_run_prints_the_output_and_nothing_else(live: LiveHome) -> None:
    ran = live.muster("run", "--", "echo", "hi")
    assert ran.stdout == "hi\n"


@pytest.mark.parametrize("code", [3, 255])
def test_run_and_wait_leave_with_the_job_s_code(live: LiveHome, code: int) -> None:
    live.muster("run", "--", "sh", "-c", f"exit {code}", code=code)
    job = live.muster("run", "-d", "--", "sh", "-c", f"exit {code}").stdout.strip()
    live.muster("wait", job, code=code)


def test_a_command_that_is_not_there_is_127(live: LiveHome) -> None:
    assert "exit code 127" in live.muster("run", "--", "surely-not-a-program", code=127).stderr


def test_ranks_environment_and_directory_reach_the_job(live: LiveHome, tmp_path: Path) -> None:
    script = 'echo "$RANK/$WORLD_SIZE $WORD $(pwd)"'
    words = ["run", "--gang", "2", "--gpus", "1", "--env", "WORD=x y", "--workdir", str(tmp_path)]
    printed = live.muster(*words, "--", "sh", "-c", script).stdout
    assert sorted(printed.splitlines()) == [f"[0] 0/2 x y {tmp_path}", f"[1] 1/2 x y {tmp_path}"]


def test_an_array_shows_progress_and_each_task_its_number(live: LiveHome) -> None:
    ran = live.muster("run", "--array", "20", "--cpus", "0.1", "--", "sh", "-c", "echo task $MUSTER_TASK")
    assert "20/20 done" in ran.stderr
    job = ran.stderr.split()[1]
    assert live.muster("logs", job, "--task", "13").stdout == "task 13\n"


def test_every_try_is_printed(live: LiveHome) -> None:
    ran = live.muster("run", "--retries", "1", "--", "sh", "-c", "echo try $MUSTER_EPOCH; [ $MUSTER_EPOCH = 2 ]")
    assert ran.stdout == "try 1\ntry 2\n"


def _heed_interrupts() -> None:
    """As at a terminal; a test run in the background has children that ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_detaches_and_the_job_goes_on(live: LiveHome, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    program = ["muster", "run", "--", "sh", "-c", HOLD, str(mark)]
    with subprocess.Popen(
        program, env=live.env, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_interrupts
    ) as running:
        assert running.stderr is not None
        job = running.stderr.readline().split()[1]  # from here on it follows
        await_true(mark.exists, "the job runs")
        running.send_signal(signal.SIGINT)
        told = running.communicate(timeout=300)[1]
    assert running.returncode == 130
    assert f"detached; job {job} goes on: muster logs -f {job} · muster cancel {job}" in told
    Path(f"{mark}.release").touch()
    live.muster("wait", job, code=7)


def test_cancel_ends_a_running_job(live: LiveHome) -> None:
    job = live.muster("run", "-d", "--", "sleep", "600").stdout.strip()
    live.muster("cancel", job)
    assert "cancelled" in live.muster("wait", job, code=1).stderr
    assert "error[M121]" in live.muster("cancel", job, code=2).stderr


def test_why_names_quota_room_and_the_line(live: LiveHome) -> None:
    live.muster("quota", "set", "poor", "gpus=1")
    first = live.muster("run", "-d", "--tenant", "poor", "--gpus", "1", "--", "sleep", "600").stdout.strip()
    second = live.muster("run", "-d", "--tenant", "poor", "--gpus", "1", "--", "true").stdout.strip()
    told = live.muster("why", second).stdout
    assert f"job {second} is waiting for quota: it needs 1 GPU, tenant poor has 0 GPUs left (line gpu) [M202]" in told
    assert "\nhelp: " in told
    assert live.muster("why", first).stdout.startswith(f"job {first} does not wait: it is ")
    live.muster("cancel", first)
    live.muster("wait", second)
    assert "is over: succeeded" in live.muster("why", second).stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--gang", "0"], "error[M102]: gang is 0, out of range"),
        (["--gang", "-1"], "error[M102]: gang '-1' is not a number of tasks such as 4, or 2-8"),
        (["--gpus", "9" * 30], "error[M102]: gpus"),
        (["--gpus", str(AMOUNT_MAX)], "error[M110]: never fits"),
        (["--gang", "2", "--gpus", str(AMOUNT_MAX)], "error[M102]: ask.gpus is"),
        (["--cpus", "0"], "error[M105]: the job asks for nothing"),
        (["--gang", "33", "--cpus", "1"], "error[M110]: never fits: 33 tasks of 1 CPU must run at once"),
        (["--array", "2", "--gang", "2"], "error[M101]: gang: an array's tasks are gangs of one"),
        (["--name", "x" * 100_000], "error[M103]: name"),
        (["--tenant", "no spaces"], "error[M103]: tenant"),
        (["--env", "1BAD=x"], "error[M103]: env"),
        (["--limit", "0s"], "error[M102]: limit_ms is 0"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_code_and_a_fix(
    live: LiveHome, words: list[str], told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(live.root))
    assert run_command(["run", *words, "--", "true"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(told)
    assert "\nhelp: " in printed.err


def test_a_megabyte_of_name_and_unknown_fields_are_refused_over_http(live: LiveHome) -> None:
    with live.client() as client, pytest.raises(RefusedError) as caught:
        client.submit(Spec(("true",), name="x" * 1_000_000))
    assert caught.value.problem.code in {"M103", "M104"}
    address = live.home.find_address()
    assert address is not None
    wire = http.client.HTTPConnection(address.host, address.port, timeout=60)
    body = msgspec.json.encode({"command": ["true"], "gpu": 8})
    wire.request("POST", "/v1/jobs", body, {"Authorization": f"Bearer {live.home.read_token()}"})
    answer = wire.getresponse()
    problem = msgspec.json.decode(answer.read())
    wire.close()
    assert (answer.status, problem["code"]) == (422, "M101")
    assert "gpu" in problem["detail"]


def test_a_key_never_makes_two_jobs(live: LiveHome) -> None:
    first = live.muster("run", "-d", "--key", "once", "--", "true").stdout
    assert live.muster("run", "-d", "--key", "once", "--", "true").stdout == first
    assert "error[M131]" in live.muster("run", "-d", "--key", "once", "--", "false", code=2).stderr


def test_many_jobs_of_a_file_are_made_once_and_the_one_that_is_wrong_has_its_place(
    live: LiveHome, tmp_path: Path
) -> None:
    jobs = [f"name: j{at}\ncommand: 'true'\nhold: true\ntenant: many\n" for at in range(600)]
    jobs[500] += "gpus: 9\n"
    (tmp_path / "jobs.yaml").write_text("---\n".join(jobs))
    first = live.muster("submit", "-o", "name", "--key", "many", str(tmp_path / "jobs.yaml"), code=2)
    numbers = first.stdout.split()
    assert "error[M110]: never fits: 9 GPUs per task asked" in first.stderr
    assert f"jobs.yaml:{500 * 5 + 1}\n" in first.stderr
    assert first.stderr.endswith("599 of 600 jobs were accepted\n")
    assert numbers == sorted(numbers, key=int)
    (tmp_path / "jobs.yaml").write_text("---\n".join(jobs).replace("gpus: 9", "gpus: 8"))
    again = live.muster("submit", "-o", "name", "--key", "many", str(tmp_path / "jobs.yaml")).stdout.split()
    assert len(set(again)) == 600
    assert set(numbers) < set(again)
    live.muster("cancel", *again)


def test_listings_filter_and_tell_what_they_left_out(live: LiveHome) -> None:
    with live.client() as client:
        job = client.submit(Spec(("true",), name="mine", tenant="filter", ask=Resources(cpu_milli=100))).job
        client.wait(job)
    assert live.muster("ls", "--tenant", "filter", "-o", "name").stdout == ""
    assert live.muster("ls", "-a", "--tenant", "filter", "-o", "name").stdout == f"{job}\n"
    assert live.muster("ls", "--phase", "succeeded", "--tenant", "filter").stdout.count("\n") == 2
    assert "succeeded" in live.muster("show", str(job)).stdout
    assert "error[M120]" in live.muster("show", "999999", code=2).stderr


def test_status_and_nodes(live: LiveHome) -> None:
    assert live.muster("status").stdout.startswith("status:   ok")
    assert "/32" in live.muster("nodes").stdout


def test_down_leaves_jobs_running_and_up_adopts_them(harmed: LiveHome, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    job = harmed.muster("run", "-d", "--", "sh", "-c", HOLD, str(mark)).stdout.strip()
    await_true(lambda: mark.exists() and mark.read_text() != "", "the job runs")
    pid = int(mark.read_text())
    told = harmed.muster("down").stdout
    assert told.startswith("stopped follower and leader\n")
    assert f"still running: job {job}" in told
    assert "error[M309]" in harmed.muster("ls", code=3).stderr
    os.kill(pid, 0)  # it lives
    harmed.muster("up")
    Path(f"{mark}.release").touch()
    harmed.muster("wait", job, code=7)
    assert int(mark.read_text()) == pid
    with harmed.client() as client:
        assert client.show(int(job)).epoch == 1


def test_following_a_job_survives_the_death_of_the_server(harmed: LiveHome, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    program = ["muster", "run", "--", "sh", "-c", f"echo before; {HOLD}", str(mark)]
    with subprocess.Popen(program, env=harmed.env, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "before\n"
        harmed.kill("follower")
        harmed.kill("leader")
        harmed.muster("up")
        Path(f"{mark}.release").touch()
        assert running.wait(300) == 7


def test_down_with_jobs_leaves_nothing_behind(harmed: LiveHome) -> None:
    harmed.muster("run", "-d", "--", "sleep", "600")
    assert harmed.muster("down", "--jobs").stdout == "cancelled 1 job\nstopped follower and leader\n"
    assert harmed.find_pid("leader") is harmed.find_pid("follower") is None
    await_true(lambda: harmed.find_pid("supervisor") is None, "the supervisor has left")
    assert harmed.muster("down").stdout.startswith("no server was running")


@pytest.mark.slow
def test_a_damaged_journal_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as mine:
        mine.muster("run", "--", "true")
        mine.muster("down")
        damaged = bytearray(mine.home.journal_file.read_bytes())
        damaged[:64] = b"\xff" * 64
        mine.home.journal_file.write_bytes(damaged)
        ran = mine.muster("up", code=2)
        assert "error[M302]: " in ran.stderr
        assert "help: restore a backup; the file was not touched" in ran.stderr
        assert "ended with exit code 2; its log is " in ran.stderr
        assert mine.home.journal_file.read_bytes() == damaged
        assert mine.find_pid("leader") is None
        await_true(lambda: mine.find_pid("follower") is None, "nothing half-started is left")


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    ran = LiveHome(tmp_path / "home").muster("up", code=2)
    assert ran.stderr.startswith("error[M305]: cannot use ")


def test_a_port_that_is_taken_is_named(live: LiveHome, tmp_path: Path) -> None:
    address = live.home.find_address()
    assert address is not None
    other = LiveHome(tmp_path / "home")
    try:
        ran = other.muster("up", "--port", str(address.port), code=2)
        assert f"error[M304]: port {address.port} is taken" in ran.stderr
    finally:
        other.end_all()
    asked = 1 if address.port != 1 else 2
    assert "error[M303]" in live.muster("up", "--port", str(asked), code=2).stderr
