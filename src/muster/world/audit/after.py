"""The auditor's books of who waits for whom: kept from the facts alone, with the conditions spelled out once more.

It shares with the rest the words of the conditions, and not the table by which they are judged. How far a job is it is
told by the auditor's other books.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from muster.model.after import When
from muster.model.fact import AfterMet, TasksEnded, TasksMoved
from muster.model.phase import TaskPhase, Why
from muster.model.spec import Spec
from muster.world.audit.books import JobBook
from muster.world.laws.law import require

_OVER: Final = (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED)
_MET_AT: Final = {
    When.STARTED: (TaskPhase.RUNNING, *_OVER),
    When.SUCCEEDED: _OVER[:1],
    When.OVER: _OVER,
    When.NOT_SUCCEEDED: _OVER[1:],
    When.TASK_BY_TASK: _OVER,
}
"""When nobody waits for a job any longer: of an array that is followed task by task, when all of it is over."""
_UNTIL: Final = "a job waits until its conditions are met"
_GIVEN_UP: Final = "only what can never start is given up"


class AfterBooks:
    """By job, the jobs that it waits for and what it wants of them; and by these, who waits for them. `stage_of` is how
    far a job is: QUEUED if it never had a place, RUNNING if it had, its phase if it is over, None if it is not here."""

    def __init__(self, stage_of: Callable[[int], TaskPhase | None]) -> None:
        self._stage_of = stage_of
        self._waits: dict[int, dict[int, When]] = {}
        self._behind: dict[int, dict[int, None]] = {}
        self._given_up: dict[int, None] = {}
        self._ended: list[int] = []

    def accept(self, job: int, spec: Spec, waits: Sequence[int]) -> None:
        """A job waits for these, of those that it names; the others are far enough already."""
        for each in spec.after:
            stage = self._stage_of(each.job)
            if each.job in waits:
                self._waits.setdefault(job, {})[each.job] = each.when
                self._behind.setdefault(each.job, {})[job] = None
            else:
                require(stage is None or stage in _MET_AT[each.when], _UNTIL, f"job {job}: {each}")

    def meet(self, item: AfterMet) -> None:
        """Jobs wait for another one no longer."""
        stage = self._stage_of(item.other)
        for job in item.jobs:
            when = self._waits.get(job, {}).pop(item.other, None)
            require(when is not None and stage in _MET_AT[when], _UNTIL, f"job {job}: {when} {item.other}, {stage}")
            del self._behind[item.other][job]

    def start(self, job: int) -> None:
        """A job, or part of an array, gets a place."""
        waits = [other for other, when in self._waits.get(job, {}).items() if when is not When.TASK_BY_TASK]
        require(not waits, "what waits for others starts nothing", f"job {job}: {waits}")

    def follow(self, item: TasksMoved, jobs: Mapping[int, JobBook]) -> None:
        """Tasks join their line: their likes in every array that they follow have succeeded."""
        likes = self._likes(item.job, jobs)
        for task in chain(*(range(first, first + count) for first, count in item.spans)):
            met = all(phases[task] == TaskPhase.SUCCEEDED for phases in likes)
            require(met, "a task follows its like", f"job {item.job}, task {task}")

    def give_up(self, item: TasksEnded, jobs: Mapping[int, JobBook]) -> None:
        """Tasks can never start: one of their likes is over and did not succeed."""
        likes = self._likes(item.job, jobs)
        for task in chain(*(range(first, first + count) for first, count in item.spans)):
            never = any(phases[task] in _OVER[1:] for phases in likes) and item.phase == TaskPhase.CANCELLED
            require(never, _GIVEN_UP, f"job {item.job}, task {task}")
        self._given_up[item.job] = None

    def _likes(self, job: int, jobs: Mapping[int, JobBook]) -> list[bytearray]:
        waits = self._waits.get(job, {})
        return [jobs[other].phases for other, when in waits.items() if when is When.TASK_BY_TASK]

    def cancel(self, job: int) -> None:
        """An array is to end: none of its tasks waits for its like any longer."""
        waits = self._waits.get(job, {})
        for other in [other for other, when in waits.items() if when is When.TASK_BY_TASK]:
            del waits[other], self._behind[other][job]

    def end(self, job: int, why: Why) -> None:
        """A job is over."""
        waits = self._waits.pop(job, {})
        stages = {other: self._stage_of(other) for other in waits}
        never = any(stages[other] in _OVER and stages[other] not in _MET_AT[when] for other, when in waits.items())
        never = never or job in self._given_up
        self._given_up.pop(job, None)
        require(never or why != Why.DEPENDENCY, _GIVEN_UP, f"job {job}: {waits}, {stages}")
        for other in waits:
            del self._behind[other][job]
        self._ended.append(job)

    def waits_of(self, job: int) -> tuple[int, ...]:
        """The jobs that one waits for."""
        return tuple(sorted(self._waits.get(job, ())))

    def settle(self) -> None:
        """An entry is booked: whoever waited for a job that ended in it was decided in it."""
        for job in self._ended:
            behind = self._behind.pop(job, {})
            require(not behind, "nobody waits for a job that is over", f"job {job}: {list(behind)[:5]}")
        self._ended.clear()
