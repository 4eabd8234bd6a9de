"""Laws of scattered reports: one report about many tasks, in any order, is as many reports about one task each."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.kernel.kernel import Kernel
from muster.model import event, fact
from muster.model.after import After, When
from muster.model.instruction import Forget
from muster.model.job import BarKind
from muster.testing.rig import Rig
from muster.wire.codec import encode_entry
from muster.world.laws.invariants import check_world, fold
from muster.world.snapshot import digest, restore, snapshot

LAWFUL = settings(derandomize=True, deadline=None, max_examples=80)
TASKS = 24
some_tasks = st.lists(st.integers(0, TASKS - 1), min_size=1, max_size=40)


class Tale(NamedTuple):
    """An array of one GPU each on four nodes, another that follows it task by task, and a report of ends."""

    up: list[int]
    again: list[int]
    is_drained: bool
    is_cancelled: bool
    retries: int
    ended: list[int]
    epoch: int
    code: int


tales = st.builds(
    Tale, some_tasks, some_tasks, st.booleans(), st.booleans(), st.integers(0, 2), some_tasks, st.integers(1, 2),
    st.sampled_from((0, 1, 143)),
)  # fmt: skip


def told(tale: Tale) -> tuple[Rig, int]:
    """All that was before the report."""
    rig = Rig(nodes=4)
    job = rig.submit(1, array=TASKS, retries=tale.retries)
    rig.submit(1, array=TASKS, after=(After(job, When.TASK_BY_TASK),))
    rig.feed(event.Started(job, 1, tale.up[0], 1, more=more_of(tale.up)))
    rig.feed(event.Exited(job, 1, 1, tale.again[0], 1, more=more_of(tale.again)))
    if tale.is_drained and rig.phase(job) == "Spread":
        rig.feed(event.BarNode("node-0", BarKind.DRAIN, "ops", lets_finish=False))
    if tale.is_cancelled and rig.phase(job) == "Spread":
        rig.feed(event.Cancel(job))
    return rig, job


def more_of(tasks: list[int]) -> list[int]:
    """All tasks but the first, each as a range of its own: in any order, and some twice."""
    return [word for task in tasks[1:] for word in (task, 1)]


def report(job: int, tale: Tale) -> event.Exited:
    return event.Exited(job, tale.epoch, tale.code, tale.ended[0], 1, more=more_of(tale.ended))


@LAWFUL
@given(tales)
def test_a_report_about_many_tasks_is_as_many_reports(tale: Tale) -> None:
    one, job = told(tale)
    many, _ = told(tale)
    joined = one.feed(report(job, tale))
    single = many.feed(*[event.Exited(job, tale.epoch, tale.code, task, 1) for task in tale.ended])
    assert digest(one.world) == digest(many.world)
    assert [item for item in joined.instructions if not isinstance(item, Forget)] == [
        item for item in single.instructions if not isinstance(item, Forget)
    ]
    ended = [item for item in joined.facts if isinstance(item, fact.TasksEnded) and item.job == job]
    assert len(ended) <= 3, "at most one fact for each of: told to stop, tried again, over"
    check_world(one.world)


@LAWFUL
@given(tales)
def test_a_report_said_again_changes_nothing(tale: Tale) -> None:
    rig, job = told(tale)
    rig.feed(report(job, tale))
    before = digest(rig.world)
    rig.feed(report(job, tale))
    assert digest(rig.world) == before


@LAWFUL
@given(tales)
def test_scattered_facts_fold_and_a_restored_world_decides_the_same(tale: Tale) -> None:
    rig, job = told(tale)
    twin = Kernel(restore(snapshot(rig.world)))
    outcome = rig.feed(report(job, tale))
    assert twin.handle([report(job, tale)], rig.now).facts == outcome.facts
    entries = [encode_entry(each.seq, each.at, each.facts) for each in rig.outcomes if each.facts]
    assert digest(fold(entries)) == digest(rig.world)
