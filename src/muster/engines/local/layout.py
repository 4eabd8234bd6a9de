"""Where things lie below the local engine's root. The one place that knows; it touches nothing.

ROOT/supervisor.lock        held by the one supervisor of this root
ROOT/supervisor.sock        where it listens
ROOT/supervisor.log         what it says when something is wrong
ROOT/runs/JOB.TASK.EPOCH/   one try of one task, until Forget (`rundir`)
ROOT/logs/JOB.TASK.EPOCH.log
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

LOCK: Final = "supervisor.lock"
SOCKET: Final = "supervisor.sock"
SUPERVISOR_LOG: Final = "supervisor.log"
RUNS: Final = "runs"
LOGS: Final = "logs"


class Key(NamedTuple):
    """One try of one task. The order makes neighbours of tasks that can be reported as one range."""

    job: int
    epoch: int
    task: int

    @property
    def name(self) -> str:
        """The key as a file name."""
        return f"{self.job}.{self.task}.{self.epoch}"


def find_key(name: str) -> Key | None:
    """The key that a file name spells, if it does."""
    words = name.split(".")
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        return None
    job, task, epoch = (int(word) for word in words)
    return Key(job, epoch, task)


def log_path(root: Path, job: int, task: int, epoch: int) -> Path:
    """Where one try of a task writes its output, stdout and stderr together."""
    return root / LOGS / f"{Key(job, epoch, task).name}.log"
