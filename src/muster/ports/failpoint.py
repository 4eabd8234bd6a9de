"""Failpoints: named moments at which a test may kill the process with SIGKILL, to prove that nothing is lost.

`MUSTER_FAILPOINT=store.in_commit:3` kills at the third pass of that point. Unarmed, a failpoint is one comparison.
Every point is listed here, so that a test can visit them all; passing a name that is not listed raises.
"""

from __future__ import annotations

import os
import signal
from typing import Final

FAILPOINTS: Final = (
    "leader.after_handle",  # the world is ahead of the journal
    "store.in_commit",  # rows written, COMMIT not yet
    "leader.after_commit",  # durable, nobody has been told
    "leader.after_answer",  # the client knows, the engine does not
    "leader.after_dispatch",  # the engine has been told
    "leader.after_snapshot",  # a snapshot was saved
    "engine.before_send",  # an instruction is about to leave for the supervisor
    "supervisor.after_record",  # a start is recorded, nothing runs
    "supervisor.after_spawn",  # a process runs, nobody has been told
    "supervisor.after_exit",  # a process ended, nobody has been told
    "follower.before_forward",  # a write was parsed and not yet sent to the leader
    "follower.after_answer",  # the leader has answered, the client does not know
    "follower.after_fold",  # an entry was folded
)
VARIABLE: Final = "MUSTER_FAILPOINT"


def _read_arming() -> tuple[str, int]:
    name, _, passes = os.environ.get(VARIABLE, "").partition(":")
    if name and name not in FAILPOINTS:
        raise ValueError(f"{VARIABLE} names {name!r}; the points are {', '.join(FAILPOINTS)}")
    return name, int(passes or 1)


_armed, _passes_left = _read_arming()


def failpoint(name: str) -> None:
    """Die here if this point is armed and its turn has come."""
    global _passes_left
    if not _armed:
        return
    assert name in FAILPOINTS, name  # noqa: S101 - a misspelt point would never fire
    if name == _armed:
        _passes_left -= 1
        if _passes_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
