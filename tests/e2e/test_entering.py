"""A command beside a running task sees what the task sees."""

from __future__ import annotations

from pathlib import Path

from live import LiveHome, await_true

WAIT = 'cd "$0"; echo up > up; while [ ! -e go ]; do sleep 0.05; done'


def test_a_command_beside_a_task_has_its_environment_and_its_directory(live: LiveHome, tmp_path: Path) -> None:
    words = ["run", "-d", "--gang", "2", "--gpus", "1", "--env", "WORD=x y"]
    job = live.muster(*words, "--", "sh", "-c", WAIT, str(tmp_path)).stdout.strip()
    await_true(lambda: (tmp_path / "up").exists(), "the job runs")
    script = 'echo "$MUSTER_JOB $RANK $WORD ${MUSTER_HOME:-none}"; pwd'
    with live.client() as client:
        await_true(lambda: client.show(int(job)).phase == "running", "both ranks run")
    ran = live.muster("exec", job, "--task", "1", "--", "sh", "-c", script)
    assert ran.stdout.splitlines() == [f"{job} 1 x y none", str(tmp_path)]
    live.muster("exec", job, "--", "sh", "-c", "exit 9", code=9)
    assert live.muster("shell", job).returncode == 0  # with nothing to read it leaves at once
    assert "error[M346]: task 2 of job" in live.muster("exec", job, "--task", "2", "--", "true", code=2).stderr
    assert "surely-not-there" in live.muster("exec", job, "--", "surely-not-there", code=127).stderr
    (tmp_path / "go").touch()
    live.muster("wait", job)
    assert "error[M121]" in live.muster("shell", job, code=2).stderr
    assert "error[M120]" in live.muster("exec", "999999", "--", "true", code=2).stderr
