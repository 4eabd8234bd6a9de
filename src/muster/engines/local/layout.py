"""Where things lie below the local engine's root. The one place that knows; it touches nothing.

ROOT/supervisor.lock        held by the one supervisor of this root
ROOT/supervisor.sock        where it listens
ROOT/supervisor.log         what it and its keepers say when something is wrong
ROOT/keeper-N.lock .sock    the same of keeper N, which runs tasks and outlives the supervisor
ROOT/keeper-N.book          what keeper N began and how it ended (`book`)
ROOT/fences.book            ends that no keeper knows: what was fenced before it was started
ROOT/starts/JOB.TASK.EPOCH  one recorded Start, named after the first of its tasks here, until all are forgotten
ROOT/progress/JOB.TASK.EPOCH    how far the job says that it is (`progress`)
ROOT/progress/JOB.0.EPOCH.width how many tasks the run of an elastic gang has
ROOT/logs/JOB.TASK.EPOCH.log
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

KEEPERS: Final = 2
"""Processes that start tasks, side by side: one alone waits for the kernel most of its time."""
SUPERVISOR: Final = "supervisor"
SUPERVISOR_LOG: Final = "supervisor.log"
FENCES: Final = "fences.book"
STARTS: Final = "starts"
PROGRESS: Final = "progress"
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


def keeper_name(number: int) -> str:
    """What the files of a keeper are called."""
    return f"keeper-{number}"


def name_of_root(root: Path) -> str:
    """What is ours is called so where others have things too: another server on this machine has another root."""
    return f"muster-{hashlib.sha256(str(root).encode()).hexdigest()[:12]}"


def log_path(root: Path, job: int, task: int, epoch: int) -> Path:
    """Where one try of a task writes its output, stdout and stderr together."""
    return root / f"{LOGS}/{Key(job, epoch, task).name}.log"


def progress_path(root: Path, key: Key) -> Path:
    """Where one try of a task says how far it is."""
    return root / f"{PROGRESS}/{key.name}"


def width_path(root: Path, job: int, epoch: int) -> Path:
    """Where the tasks of an elastic gang read how many they are."""
    return root / PROGRESS / f"{Key(job, epoch, 0).name}.width"
