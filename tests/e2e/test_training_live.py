"""A gang that says how far it is, crashes, and resumes from its checkpoint: and the account of what that was worth."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from functools import partial
from pathlib import Path
from subprocess import PIPE

from live import DEADLINE_S, LiveHome, await_true

from muster.sdk import Client

# Rank 0 takes 6 steps with a checkpoint after each third one; the first try of rank 1 crashes once step 4 is heard of.
TRAINING = """
import os, sys, time
from pathlib import Path
import muster

place, rank, epoch = Path(sys.argv[1]), os.environ["RANK"], os.environ["MUSTER_EPOCH"]
saved = place / "checkpoint"
first = int(saved.read_text()) + 1 if saved.exists() else 1

def await_file(name):
    while not (place / name).exists():
        time.sleep(0.02)

if rank == "1":
    await_file("heard-4" if epoch == "1" else "heard-6")
    sys.exit(3 if epoch == "1" else 0)
print("from", first, flush=True)
for step in range(first, 7):
    if step % 3 == 0:
        assert muster.progress(step, checkpointing=True)
        await_file(f"writing-{step}")
        saved.write_text(str(step))
    assert muster.progress(step, checkpoint=step % 3 == 0)
    while epoch == "1" and step == 4:
        time.sleep(0.05)
"""
HEARD = {
    "at step 3, writes a checkpoint": "writing-3",
    "at step 3, checkpointed": "saved-3",
    "at step 4": "heard-4",
    "requeued": "again",
    "at step 6, writes a checkpoint": "writing-6",
    "at step 6, checkpointed": "heard-6",
}
"""What is told of the job, one after the other; and the file that its processes wait for before they go on, if any."""


def is_told(client: Client, job: int, words: str) -> bool:
    return any(words in line.what for line in client.story(job).lines)


def test_a_gang_that_crashes_resumes_from_its_checkpoint(live: LiveHome, tmp_path: Path) -> None:
    words = ["run", "--gang", "2", "--gpus", "1", "--retries", "1", "--tenant", "training", "--name", "train"]
    program = ["muster", *words, "--", sys.executable, "-c", TRAINING, str(tmp_path)]
    with (
        subprocess.Popen(program, env=live.env, stdout=PIPE, stderr=PIPE, text=True) as running,
        contextlib.ExitStack() as ending,
        live.client() as client,
    ):
        ending.callback(running.kill)  # else it would be waited for, whatever went wrong here
        assert running.stderr is not None
        job = running.stderr.readline().split()[1]
        for told, file in HEARD.items():
            await_true(partial(is_told, client, int(job), told), told)
            (tmp_path / file).touch()
        printed, _ = running.communicate(timeout=DEADLINE_S)
    assert [line for line in printed.splitlines() if "from" in line] == ["[0] from 1", "[0] from 4"]
    shown = live.muster("show", job).stdout
    assert "used:" in shown
    assert "of CPU, at most" in shown
    assert "GPU time:" in shown
    assert "useful" in shown, "journey 4: what was lost, and how much was of use"
    assert ", lost " in shown
    assert ", checkpointing " in shown
    own = live.muster("goodput", "--job", job).stdout
    assert "checkpointing" in own
    told = live.muster("goodput", "--tenant", "training").stdout
    assert "useful" in told
    assert "lost" in told


# Saves and leaves when it is told to by SIGUSR1, and by nothing else; the shell around it handles no signal.
SAVING = """
import signal, sys, time
from pathlib import Path

place = Path(sys.argv[1])

def save(*_):
    (place / "saved").write_text("step 7")
    sys.exit(0)

signal.signal(signal.SIGUSR1, save)
(place / "up").touch()
while True:
    time.sleep(0.05)
"""


def test_a_job_is_told_to_stop_by_the_signal_that_it_handles(live: LiveHome, tmp_path: Path) -> None:
    script = f"{sys.executable} -c '{SAVING}' {tmp_path}; echo left with $?"
    words = ["run", "--detach", "--signal", "USR1", "--grace", "120s", "--", "sh", "-c", script]
    job = live.muster(*words).stdout.strip()
    await_true((tmp_path / "up").exists, "it runs")
    live.muster("cancel", job)
    live.muster("wait", job, code=1)
    assert (tmp_path / "saved").read_text() == "step 7"
    assert live.muster("logs", job).stdout == "left with 0\n", "the shell was not told, and lived to say this"


def test_who_handles_no_such_signal_is_told_as_always(live: LiveHome) -> None:
    job = live.muster("run", "--detach", "--signal", "sigusr2", "--grace", "120s", "--", "sleep", "300").stdout.strip()
    with live.client() as client:
        await_true(lambda: client.show(int(job)).phase == "running", "it runs")
        client.cancel(int(job))
        assert client.wait(int(job)).phase == "cancelled"
    assert (
        "is none of TERM, INT, HUP, USR1, USR2" in live.muster("run", "--signal", "KILL", "--", "true", code=2).stderr
    )
