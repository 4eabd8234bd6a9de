"""The auditor's books of what tasks of arrays said of their progress: kept task by task, from the facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from muster.model.fact import TasksProgressed
from muster.model.goodput import Mark
from muster.world.law import require
from muster.world.tasks import Tasks

NO_MARK: Final = Mark(0)
_LAW: Final = "a task is as far as it said, in the try that said it"


class MarkBooks:
    """The newest mark of each task that said anything since it is up, and of whom there is news."""

    def __init__(self) -> None:
        self._marks: dict[tuple[int, int], Mark] = {}
        self._touched: dict[tuple[int, int], None] = {}

    def tell(self, item: TasksProgressed, task: int, at: int) -> None:
        """A task that runs is so far."""
        known = self._marks.get((item.job, task), NO_MARK)
        evidence = f"job {item.job}, task {task}: {item.step} after {known.step}"
        require(item.step >= known.step, "no step goes back", evidence)
        saved = (item.step, at) if item.checkpointed else (known.saved_step, known.saved_at)
        self._marks[item.job, task] = Mark(item.step, *saved, item.checkpointing)
        self._touched[item.job, task] = None

    def drop(self, job: int, task: int) -> None:
        """A try of a task begins, or ends."""
        if self._marks.pop((job, task), None) is not None:
            self._touched[job, task] = None

    def compare(self, arrays: Mapping[int, Tasks]) -> None:
        """Whether the world knows the same of whom there is news."""
        for job, task in self._touched:
            marks = arrays[job].marks if job in arrays else None
            kept, booked = NO_MARK if marks is None else marks.get(task), self._marks.get((job, task), NO_MARK)
            require(kept == booked, _LAW, f"job {job}, task {task}: kept {kept}, booked {booked}")
        self._touched.clear()
