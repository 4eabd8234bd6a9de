"""Spares of a gang, and arrays that follow each other task by task, with real processes and SIGKILL in between.

One machine is one node, so no rank loses its node here, and a spare that was let go is not made up for: it would be
beside its ranks. That is simulated. What is shown is that spares are held and let go over the deaths of all three
processes, and that no task starts before its like, twice, or never.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from live import LiveHome, await_true

from muster.model.after import After, When
from muster.model.spec import Spec
from muster.units import Resources
from muster.wire.views import JobView

ROLES: Final = ("leader", "follower", "supervisor")
ALL_GPUS: Final = 8
ONE_GPU: Final = Resources(gpus=1, cpu_milli=500)
SMALL: Final = Resources(cpu_milli=100)
HOLD: Final = 'echo $$ >> "$0.$RANK"; while [ ! -e "$0.go" ]; do sleep 0.05; done'
# Each task of the first waits for a file of its own and takes its exit code from it; each of the second notes itself.
LEAD: Final = 'while [ ! -s "$0/go.$MUSTER_TASK" ]; do sleep 0.05; done; exit "$(cat "$0/go.$MUSTER_TASK")"'
FOLLOW: Final = 'test -s "$0/go.$MUSTER_TASK" && echo "$MUSTER_EPOCH" >> "$0/ran.$MUSTER_TASK"'


def kill_all(live: LiveHome) -> None:
    for role in ROLES:
        live.kill(role)
    live.muster("up")
    await_true(lambda: live.find_pid("supervisor") is not None, "a supervisor is back")


def free_gpus(live: LiveHome) -> int:
    with live.client() as client:
        return client.nodes()[0].free.gpus


def spares_of(view: JobView) -> int:
    return sum(place.tasks for place in view.spares)


@pytest.mark.slow
def test_spares_are_held_and_let_go_whoever_dies(harmed: LiveHome, tmp_path: Path) -> None:
    mark = tmp_path / "rank"
    marks = [Path(f"{mark}.{rank}") for rank in range(2)]
    words = ["run", "--detach", "--gang", "2", "--spares", "2", "--gpus", "1", "--cpus", "0.5"]
    job = int(harmed.muster(*words, "--", "/bin/sh", "-c", HOLD, str(mark)).stdout)
    await_true(lambda: all(each.exists() and each.read_text() for each in marks), "both ranks run")
    assert free_gpus(harmed) == ALL_GPUS - 4, "two ranks and two spares are held"

    kill_all(harmed)
    with harmed.client() as client:
        node = client.nodes()[0].name
        assert spares_of(client.show(job)) == 2
        harmed.muster("cordon", node, "--reason", "spares")
        await_true(lambda: spares_of(client.show(job)) == 0, "a barred node keeps no spare")
        assert client.nodes()[0].free.gpus == ALL_GPUS - 2

    kill_all(harmed)
    harmed.muster("uncordon", node)
    with harmed.client() as client:
        assert spares_of(client.show(job)) == 0
        assert client.nodes()[0].free.gpus == ALL_GPUS - 2
        Path(f"{mark}.go").touch()
        view = client.wait(job)
    assert (view.phase, view.epoch) == ("succeeded", 1)
    assert [len(each.read_text().split()) for each in marks] == [1, 1], "each rank is one process all along"
    story = harmed.muster("story", str(job)).stdout
    assert "spare" in story
    assert "2 spares let go" in story
    await_true(lambda: free_gpus(harmed) == ALL_GPUS, "all is free")


@pytest.mark.parametrize("deaths", [(4,), pytest.param((1, 4, 7), marks=pytest.mark.slow)])
def test_tasks_follow_their_likes_whoever_dies(harmed: LiveHome, tmp_path: Path, deaths: tuple[int, ...]) -> None:
    tasks, failing = 8, 5
    with harmed.client() as client:
        first = client.submit(Spec(("/bin/sh", "-c", LEAD, str(tmp_path)), array=tasks, ask=SMALL)).job
        spec = Spec(
            ("/bin/sh", "-c", FOLLOW, str(tmp_path)), array=tasks, ask=SMALL, after=(After(first, When.TASK_BY_TASK),)
        )
        second = client.submit(spec).job
    for turn, task in enumerate((3, 0, failing, 7, 1, 6, 2, 4)):
        (tmp_path / f"go.{task}").write_text("9" if task == failing else "0")
        if turn in deaths:
            kill_all(harmed)
        if task != failing:
            await_true((tmp_path / f"ran.{task}").exists, f"task {task} follows its like")
    with harmed.client() as client:
        lead, follow = client.wait(first), client.wait(second)
    assert lead.counts is not None
    assert follow.counts is not None
    assert (lead.counts.succeeded, lead.counts.failed) == (tasks - 1, 1)
    assert (follow.counts.succeeded, follow.counts.cancelled) == (tasks - 1, 1)
    ran = {task: (tmp_path / f"ran.{task}").read_text().split() for task in range(tasks) if task != failing}
    assert set(map(tuple, ran.values())) == {("1",)}, "each once, in its first epoch"
    assert not (tmp_path / f"ran.{failing}").exists(), "whose like failed never starts"
