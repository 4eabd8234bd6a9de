"""Arrays with real processes: each task has its limit, a whole array goes back to the queue, what failed runs again
under its own numbers, also after the death of the server, and each task says for itself how far it is."""

from __future__ import annotations

import sys
from pathlib import Path

from live import LiveHome, await_true


def test_tasks_past_their_limit_fail_and_an_array_is_sent_back(live: LiveHome) -> None:
    with live.client() as client:
        script = 'test "$MUSTER_TASK" = 1 || exec sleep 600'
        ran = live.muster("run", "--array", "3", "--limit", "3s", "--", "sh", "-c", script, code=None)
        assert ran.returncode != 0
        first = int(ran.stderr.split()[1])
        view = client.show(first)
        assert view.counts is not None
        assert (view.phase, view.counts.succeeded, view.counts.failed) == ("failed", 1, 2)
        told = [line.what for line in client.story(first).lines]
        assert any(what.endswith("stopping: time limit") for what in told), told
        assert any("failed: time limit" in what for what in told), told

        job = int(live.muster("run", "--detach", "--array", "2", "--", "sleep", "600").stdout)

        def running(epoch: int) -> bool:
            found = client.show(job).counts
            lines = [line.what for line in client.story(job).lines]
            return found is not None and found.running == 2 and sum("placed" in what for what in lines) >= epoch

        await_true(lambda: running(1), "both are up")
        live.muster("requeue", str(job))
        await_true(lambda: running(2), "both are up again")
        told = [line.what for line in client.story(job).lines]
        assert any("requeued: sent back to the queue" in what for what in told), told
        live.muster("cancel", str(job))
        assert client.wait(job).phase == "cancelled"


def test_what_failed_runs_again_under_its_own_numbers(harmed: LiveHome, tmp_path: Path) -> None:
    with harmed.client() as client:
        mended = tmp_path / "mended"
        script = 'echo "$MUSTER_TASK of $MUSTER_TASKS"; test "$MUSTER_TASK" -lt 2 || test -e "$0"'
        words = ["run", "--array", "5", "--cpus", "0.1", "--", "sh", "-c", script, str(mended)]
        told = harmed.muster(*words, code=None).stderr
        first = int(told.split()[1])
        assert "  tasks 2-4: exit code 1\n" in told
        assert "tasks 2-4: exit code 1\n" in harmed.muster("show", str(first)).stdout
        harmed.kill("leader")
        harmed.muster("up")
        mended.touch()
        told = harmed.muster("requeue", str(first), "--failed").stdout
        second = int(told.split()[-1])
        assert told == f"3 failed tasks of job {first} run again as job {second}\n"
        assert client.wait(second).phase == "succeeded"
        assert list(client.outputs(second)) == [b"2 of 5\n", b"3 of 5\n", b"4 of 5\n"]
        assert harmed.muster("logs", str(second), "--task", "3").stdout == "3 of 5\n"
        assert f"tasks 2-4 of job {first}" in harmed.muster("show", str(second)).stdout
        assert client.show(first).phase == "failed", "terminal is final"
        again = harmed.muster("requeue", str(first), "--failed", code=None)
        assert (again.returncode != 0, f"what did runs again as job {second}" in again.stderr) == (True, True)


# Each task saves and says so; in its first try it then goes on, until it is sent back.
SAVING = """
import os, time
import muster

task, epoch = os.environ["MUSTER_TASK"], os.environ["MUSTER_EPOCH"]
print("from", os.environ.get("MUSTER_RESUME_STEP", "0"), flush=True)
if epoch == "1":
    assert muster.progress(10 + int(task), checkpoint=True)
    time.sleep(600)
"""


def test_tasks_that_are_sent_back_begin_where_they_saved(harmed: LiveHome) -> None:
    with harmed.client() as client:
        program = [sys.executable, "-c", SAVING]
        job = int(harmed.muster("run", "--detach", "--array", "3", "--gpus", "1", "--", *program).stdout)
        await_true(lambda: client.show(job).saved == 3, "all have a checkpoint")
        assert "3 running, 3 with a checkpoint" in harmed.muster("show", str(job)).stdout
        harmed.kill("leader")
        harmed.muster("up")
        assert client.show(job).saved == 3
        harmed.muster("requeue", str(job))
        assert client.wait(job).phase == "succeeded"
        assert list(client.outputs(job)) == [b"from 10\n", b"from 11\n", b"from 12\n"]
        told = [line.what for line in client.story(job).lines]
        for task in range(3):
            assert f"task {task} at step {10 + task}, checkpointed" in told, told
        account = client.show(job).account
        assert account is not None
        assert account.time["useful"] > 0
        assert not list((harmed.home.engine_root / "progress").iterdir()), "nothing is left behind"
