"""When a job may follow another: every condition against every stage of the job that it names, in one table.

A condition is met for good or can never be met any more as soon as the other job is over, so nobody ever waits for a
job that is. The table in `docs/concepts/dependencies.md` is generated from this one by `render`.
"""

from __future__ import annotations

import enum
from typing import Final

from muster.model.after import When
from muster.model.phase import TaskPhase


class Verdict(enum.IntEnum):
    """What is to be said of a condition."""

    OPEN = 0
    MET = 1
    NEVER = 2


_OPEN, _MET, _NEVER = Verdict.OPEN, Verdict.MET, Verdict.NEVER

STAGES: Final = {
    TaskPhase.QUEUED: "has no place yet",
    TaskPhase.RUNNING: "had one",
    TaskPhase.SUCCEEDED: "succeeded",
    TaskPhase.FAILED: "failed",
    TaskPhase.CANCELLED: "cancelled",
}
"""How far a job is, as far as others care: without a place so far, with one now or before, or over."""

TABLE: Final[dict[When, tuple[Verdict, ...]]] = {
    When.STARTED: (_OPEN, _MET, _MET, _MET, _MET),
    When.SUCCEEDED: (_OPEN, _OPEN, _MET, _NEVER, _NEVER),
    When.OVER: (_OPEN, _OPEN, _MET, _MET, _MET),
    When.NOT_SUCCEEDED: (_OPEN, _OPEN, _NEVER, _MET, _MET),
    When.TASK_BY_TASK: (_OPEN, _OPEN, _MET, _NEVER, _NEVER),
}
"""By condition, the verdict at each of the stages, in their order; task by task, at those of each task by itself."""


def judge(when: When, stage: TaskPhase) -> Verdict:
    """What is to be said of a condition while the job that it names is at a stage."""
    return TABLE[when][tuple(STAGES).index(stage)]


def render() -> str:
    """The table as Markdown."""
    lines = [f"| condition | {' | '.join(STAGES.values())} |", f"|{'---|' * (1 + len(STAGES))}"]
    lines += [f"| `{when.value}` | {' | '.join(each.name.lower() for each in row)} |" for when, row in TABLE.items()]
    return "\n".join(lines)
