"""What a job waits for of another one: its start, its success, its end, that it did not succeed, or task by task.

Only words: whether a condition is met is decided by `muster.lifecycle.after`, and who waits is kept by the world.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import msgspec

from muster.model.reason import Code, Reason

AFTER_MAX: Final = 64
"""How many jobs one job may wait for."""


class When(enum.StrEnum):
    """Which moment of the other job is waited for; the words are those that people know."""

    STARTED = "after"
    SUCCEEDED = "afterok"
    OVER = "afterany"
    NOT_SUCCEEDED = "afternotok"
    TASK_BY_TASK = "aftercorr"


class After(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One condition: a job, and what is to have become of it."""

    job: int
    when: When = When.SUCCEEDED

    def __str__(self) -> str:
        return f"{self.when.value}:{self.job}"


def find_after_fault(after: Sequence[After]) -> Reason | None:
    """What is wrong with conditions by themselves. Whether there are such jobs is not known here; a job cannot name
    itself or one that waits for it, since its own number is given to it after those that it names."""
    if len(after) > AFTER_MAX:
        return Reason(Code.TOO_LARGE, "after", needed=len(after), available=AFTER_MAX)
    jobs: dict[int, None] = {}
    for each in after:
        if each.job in jobs:
            return Reason(Code.BAD_SPEC, "after", detail=f"job {each.job} is named twice; say one condition for it")
        jobs[each.job] = None
    return None
