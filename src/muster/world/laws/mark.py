"""The law of marks: only a task that runs has one, and what it did since it is up is in order. Looked at one by one."""

from __future__ import annotations

from muster.model.phase import TERMINAL, TaskPhase
from muster.world.laws.law import require
from muster.world.marks import MarkRow
from muster.world.tasks import Tasks
from muster.world.world import World

LAW = "marks are those of tasks that run"


def check_marks(world: World) -> None:
    """All arrays whose tasks said how far they are, and where gangs could resume."""
    over = [number for number in world.goodput.saves if isinstance(world.jobs[number].phase, TERMINAL)]
    require(not over, LAW, f"jobs {over[:5]} are over")
    for number, tasks in sorted(world.arrays.items()):
        if tasks.marks is not None:
            is_live = not isinstance(world.jobs[number].phase, TERMINAL)
            require(is_live, LAW, f"job {number} is over")
            for row in tasks.marks.rows():
                _check_row(f"job {number}, task {row[0]}", tasks, row, world.now)
            strangers = [task for task in tasks.marks.carries if not tasks.marks.since[task]]
            require(not strangers, LAW, f"job {number}: tasks {strangers[:5]} did something and said nothing")


def _check_row(who: str, tasks: Tasks, row: MarkRow, now: int) -> None:
    task, mark, since, carried = row
    require(tasks.phase[task] == TaskPhase.RUNNING, LAW, f"{who}: {TaskPhase(tasks.phase[task]).name}")
    require(mark.saved_step <= mark.step, LAW, f"{who}: {mark}")
    resume = mark.saved_step if tasks.marks is None else tasks.marks.resume[task]
    require(not mark.saved_at or resume == mark.saved_step, LAW, f"{who}: {mark}, could resume at {resume}")
    began = tasks.since[task]
    instants = [began, max(began, mark.saved_at), *(instant for stretch in carried for instant in stretch)]
    instants += [max(began, since), now]
    require(instants == sorted(instants), LAW, f"{who}: {instants}")
    require(not since or since >= began, LAW, f"{who}: at it since {since}, and up since {began}")
