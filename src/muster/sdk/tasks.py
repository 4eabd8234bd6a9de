"""A running task on this machine, found by the marks in its environment: what `muster exec` and `shell` enter.

Whoever may read a process's environment may do what it does, so this gives nobody anything that they had not.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from muster.model.errors import RejectedError
from muster.model.reason import Code, Reason
from muster.sdk.home import Home

RUNTIMES: Final = ("podman", "docker")


class TaskProcess(NamedTuple):
    """The first process of a task: its environment, and the directory that it is in."""

    pid: int
    env: dict[str, str]
    directory: Path


def get_task_process(home: Home, job: int, task: int) -> TaskProcess:
    """The task's latest try, if it runs here and we may look at it."""
    wanted = {"MUSTER_ENGINE": str(home.engine_root), "MUSTER_JOB": str(job), "MUSTER_TASK": str(task)}
    found = [
        each for each in map(_find_leader, _list_pids()) if each is not None and wanted.items() <= each.env.items()
    ]
    if not found:
        raise RejectedError(Reason(Code.NOT_HERE, "job", needed=job, available=task))
    return max(found, key=lambda each: (int(each.env.get("MUSTER_EPOCH", "0")), -each.pid))


def find_container(process: TaskProcess) -> tuple[str, str] | None:
    """The program that runs a task in a container, and the container's name; None if it is not that program."""
    words = os.fsdecode((Path("/proc") / str(process.pid) / "cmdline").read_bytes()).split("\0")
    runtime = Path(words[0]).name
    name = next((word.removeprefix("--name=") for word in words if word.startswith("--name=")), None)
    return (runtime, name) if runtime in RUNTIMES and name is not None else None


def _list_pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]


def _find_leader(pid: int) -> TaskProcess | None:
    """A process that leads its session, as the first one of a task does."""
    try:
        if os.getsid(pid) != pid:
            return None
        place = Path("/proc") / str(pid)
        words = (place / "environ").read_bytes().split(b"\0")
        pairs = (word.partition(b"=") for word in words if b"=" in word)
        return TaskProcess(
            pid, {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}, (place / "cwd").readlink()
        )
    except OSError:  # not ours to look at, or gone
        return None
