"""The auditor's books of what runs said of their progress, and of what a next try is to be told: kept from the facts
alone, of arrays task by task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from muster.model.fact import Fact, Progressed, TasksProgressed
from muster.model.goodput import Mark
from muster.model.instruction import NOT_SAVED, Instruction, Start
from muster.world.laws.law import require
from muster.world.tasks import Tasks

NO_MARK: Final = Mark(0)
_TOLD: Final = "whoever starts again is told of its last checkpoint"
_LAW: Final = "a task is as far as it said, in the try that said it"


class MarkBooks:
    """The newest mark of each task that said anything since it is up, and of whom there is news. The last checkpoints
    of tasks, and of gangs as their first one, outlive their tries."""

    def __init__(self) -> None:
        self._saved: dict[tuple[int, int], int] = {}
        self._marks: dict[tuple[int, int], Mark] = {}
        self._touched: dict[tuple[int, int], None] = {}

    def tell(self, item: TasksProgressed, task: int, at: int) -> None:
        """A task that runs is so far."""
        known = self._marks.get((item.job, task), NO_MARK)
        evidence = f"job {item.job}, task {task}: {item.step} after {known.step}"
        require(item.step >= known.step, "no step goes back", evidence)
        saved = (item.step, at) if item.checkpointed else (known.saved_step, known.saved_at)
        self._marks[item.job, task] = Mark(item.step, *saved, item.checkpointing)
        self.save(item, task)
        self._touched[item.job, task] = None

    def save(self, item: Progressed | TasksProgressed, task: int = 0) -> None:
        """A gang is so far, or a task."""
        if item.checkpointed:
            self._saved[item.job, task] = item.step

    def check_starts(self, facts: Iterable[Fact], told: Iterable[Instruction]) -> None:
        """Whoever is started is told of its last checkpoint; but for those who had news in the same batch, for they may
        have been told before."""
        spoke = {item.job for item in facts if isinstance(item, Progressed | TasksProgressed)}
        for start in told:
            if isinstance(start, Start) and start.job not in spoke:
                tasks = range(start.first, start.first + sum(start.counts)) if start.spec.array else range(1)
                booked = [self._saved.get((start.job, task), NOT_SAVED) for task in tasks]
                wanted = booked if max(booked) != NOT_SAVED else []
                require(start.resumes == wanted, _TOLD, f"job {start.job}: told {start.resumes}, booked {wanted}")

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
