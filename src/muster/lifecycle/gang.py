"""The life of a gang: every transition in one table, terminal rows listed on purpose.

It serves the one gang of a job and each task of an array alike, since an array is a job of one-task gangs. The diagram
in `docs/concepts/lifecycle.md` is generated from it by `diagram`, and a test keeps the two equal.
"""

from __future__ import annotations

from typing import Final

from muster.model.phase import Cancelled, Failed, Phase, Queued, Running, Starting, Stopping, Succeeded, TaskPhase
from muster.units import MINUTE_MS

_Q, _A, _R, _S = TaskPhase.QUEUED, TaskPhase.STARTING, TaskPhase.RUNNING, TaskPhase.STOPPING
_OK, _BAD, _OFF, _B = TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED, TaskPhase.BLOCKED

TABLE: Final[dict[TaskPhase, dict[TaskPhase, str]]] = {
    _Q: {_A: "placed", _OFF: "cancelled while waiting", _B: "fewer may be at it"},
    _A: {_R: "all ranks up", _S: "told to stop", _OK: "exited 0", _BAD: "exited with a code", _Q: "lost, or retried"},
    _R: {_S: "told to stop", _OK: "exited 0", _BAD: "exited with a code", _Q: "lost, or retried"},
    _S: {_S: "told again", _OFF: "stop confirmed", _BAD: "stop confirmed", _Q: "lost, sent back, or retried"},
    _OK: {},
    _BAD: {},
    _OFF: {},
    _B: {_Q: "its like succeeded, or its turn came", _OFF: "its like did not, or cancelled"},
}

PHASE_OF: Final[dict[type, TaskPhase]] = {
    Queued: _Q,
    Starting: _A,
    Running: _R,
    Stopping: _S,
    Succeeded: _OK,
    Failed: _BAD,
    Cancelled: _OFF,
}

RETAIN_MS: Final = 15 * MINUTE_MS
"""How long a job that is over stays in the world, at least, before it retires to history."""


def retires_at(ended_at: int) -> int:
    """When a job that is over leaves the world: on the full minute, so that they leave together in one fact."""
    return -(-(ended_at + RETAIN_MS) // MINUTE_MS) * MINUTE_MS


def retired_by(now: int) -> int:
    """The latest end that `retires_at` lets leave the world by now."""
    return now // MINUTE_MS * MINUTE_MS - RETAIN_MS


def can_move(phase: Phase, to: TaskPhase) -> bool:
    """Whether the table lets a gang in `phase` become `to`."""
    return to in TABLE[PHASE_OF[type(phase)]]


def sources_of(to: TaskPhase) -> tuple[TaskPhase, ...]:
    """The phases from which the table leads to `to`."""
    return tuple(source for source in TaskPhase if to in TABLE[source])


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    lines = [
        "stateDiagram-v2",
        "    [*] --> queued: accepted",
        "    [*] --> blocked: accepted, task by task or beyond the most at once",
    ]
    for source, row in TABLE.items():
        lines += [f"    {source.name.lower()} --> {to.name.lower()}: {word}" for to, word in row.items()]
        if not row:
            lines.append(f"    {source.name.lower()} --> [*]")
    return "\n".join(lines)
