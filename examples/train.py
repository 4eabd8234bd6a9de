"""A toy training, as a gang runs it: it saves every third step, says so to Muster, and its first try crashes.

python examples/train.py PLACE: the checkpoint is a file in PLACE, and whoever finds one goes on behind it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

import muster

STEPS: Final = 8
SAVE_EVERY: Final = 3
CRASH_AT: Final = 5
STEP_S: Final = 0.3


def main(checkpoint: Path) -> int:
    """Train; rank 0 saves and tells, and rank 1 does not survive its first try."""
    rank, attempt = int(os.environ.get("RANK", "0")), int(os.environ.get("MUSTER_EPOCH", "1"))
    done = int(checkpoint.read_text()) if checkpoint.exists() else 0
    say(f"rank {rank}, try {attempt}: begins at step {done + 1} of {STEPS}")
    for step in range(done + 1, STEPS + 1):
        time.sleep(STEP_S)  # the work
        if rank == 0:
            is_saved = step % SAVE_EVERY == 0
            if is_saved:
                checkpoint.write_text(str(step))
            muster.progress(step, checkpoint=is_saved)
        elif step == CRASH_AT and attempt == 1:
            say(f"rank {rank}: out of luck at step {step}")
            return 1
    return 0


def say(words: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) / "checkpoint"))
