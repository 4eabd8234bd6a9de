"""The auditor's books of who waits for whom: kept from the facts alone, with the conditions spelled out once more.

It shares with the rest the words of the conditions, and not the table by which they are judged. How far a job is it is
told by the auditor's other books.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from muster.model.after import When
from muster.model.fact import AfterMet
from muster.model.phase import TaskPhase, Why
from muster.model.spec import Spec
from muster.world.law import require

_OVER: Final = (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED)
_MET_AT: Final = {
    When.STARTED: (TaskPhase.RUNNING, *_OVER),
    When.SUCCEEDED: _OVER[:1],
    When.OVER: _OVER,
    When.NOT_SUCCEEDED: _OVER[1:],
}
_UNTIL: Final = "a job waits until its conditions are met"
_GIVEN_UP: Final = "only what can never start is given up"


class AfterBooks:
    """By job, the jobs that it waits for and what it wants of them; and by these, who waits for them. `stage_of` is how
    far a job is: QUEUED if it never had a place, RUNNING if it had, its phase if it is over, None if it is not here."""

    def __init__(self, stage_of: Callable[[int], TaskPhase | None]) -> None:
        self._stage_of = stage_of
        self._waits: dict[int, dict[int, When]] = {}
        self._behind: dict[int, dict[int, None]] = {}
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
        waits = self._waits.get(job)
        require(not waits, "what waits for others starts nothing", f"job {job}: {waits}")

    def end(self, job: int, why: Why) -> None:
        """A job is over."""
        waits = self._waits.pop(job, {})
        stages = {other: self._stage_of(other) for other in waits}
        never = any(stages[other] in _OVER and stages[other] not in _MET_AT[when] for other, when in waits.items())
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
