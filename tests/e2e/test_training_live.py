"""A gang that says how far it is, crashes, and resumes from its checkpoint: and the account of what that was worth."""

from __future__ import annotations

import sys
from pathlib import Path

from live import LiveHome

# Rank 0 takes 6 steps with a checkpoint after each third one; the first try of rank 1 crashes once step 4 is told.
TRAINING = """
import os, sys, time
from pathlib import Path
import muster

place, rank, epoch = Path(sys.argv[1]), os.environ["RANK"], os.environ["MUSTER_EPOCH"]
saved = place / "checkpoint"
first = int(saved.read_text()) + 1 if saved.exists() else 1
if rank == "1":
    while not (place / f"step-{4 if epoch == '1' else 6}").exists():
        time.sleep(0.02)
    time.sleep(0.8)  # so that the mark is heard before the crash
    sys.exit(3 if epoch == "1" else 0)
print("from", first, flush=True)
for step in range(first, 7):
    if step % 3 == 0:
        assert muster.progress(step, checkpointing=True)
        time.sleep(0.8)  # so that it is heard how long it took
        saved.write_text(str(step))
    assert muster.progress(step, checkpoint=step % 3 == 0)
    (place / f"step-{step}").touch()
    time.sleep(0.05)
    while epoch == "1" and step == 4:
        time.sleep(0.05)
"""


def test_a_gang_that_crashes_resumes_from_its_checkpoint(live: LiveHome, tmp_path: Path) -> None:
    words = ["run", "--gang", "2", "--gpus", "1", "--retries", "1", "--tenant", "training", "--name", "train"]
    ran = live.muster(*words, "--", sys.executable, "-c", TRAINING, str(tmp_path))
    assert [line for line in ran.stdout.splitlines() if "from" in line] == ["[0] from 1", "[0] from 4"]
    job = ran.stderr.split()[1]
    story = live.muster("story", job).stdout
    assert "at step 3, checkpointed" in story
    assert "at step 3, writes a checkpoint" in story
    assert "at step 4" in story
    assert "at step 6, checkpointed" in story
    assert "requeued" in story
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
