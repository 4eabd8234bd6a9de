"""The tables are total, their terminal rows are empty, and the diagram in the docs is the one they give."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.lifecycle import gang, node
from muster.model.job import NodePhase
from muster.model.phase import ACTIVE, TERMINAL, Phase, Queued, Spread, TaskPhase

DOCS = Path(__file__).resolve().parents[3] / "docs" / "concepts" / "lifecycle.md"
OVER = (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED)


def test_every_phase_has_a_row() -> None:
    assert set(gang.TABLE) == set(TaskPhase)
    assert set(node.TABLE) == set(NodePhase)


def test_every_phase_record_has_its_integer() -> None:
    assert set(gang.PHASE_OF) | {Spread} == set(Phase.__args__)
    assert sorted([*gang.PHASE_OF.values(), TaskPhase.BLOCKED]) == sorted(TaskPhase)  # only tasks are blocked


def test_terminal_rows_are_empty_and_no_other_is() -> None:
    assert [phase for phase in TaskPhase if not gang.TABLE[phase]] == list(OVER)
    assert {gang.PHASE_OF[kind] for kind in TERMINAL} == set(OVER)


def test_every_phase_can_be_reached_and_left_to_an_end() -> None:
    reached, frontier = {TaskPhase.QUEUED, TaskPhase.BLOCKED}, [TaskPhase.QUEUED, TaskPhase.BLOCKED]
    while frontier:
        for to in gang.TABLE[frontier.pop()]:
            if to not in reached:
                reached.add(to)
                frontier.append(to)
    assert reached == set(TaskPhase)


def test_only_what_was_placed_runs() -> None:
    assert gang.sources_of(TaskPhase.RUNNING) == (TaskPhase.STARTING,)
    assert gang.sources_of(TaskPhase.STARTING) == (TaskPhase.QUEUED,)
    assert not gang.can_move(Queued(0), TaskPhase.RUNNING)
    assert gang.can_move(Queued(0), TaskPhase.STARTING)
    assert {gang.PHASE_OF[kind] for kind in ACTIVE} == set(gang.sources_of(TaskPhase.STOPPING))


@pytest.mark.parametrize("phase", NodePhase)
def test_a_node_never_moves_to_where_it_is_and_may_always_come_back(phase: NodePhase) -> None:
    assert not node.can_move(phase, phase)
    assert phase == NodePhase.UP or node.can_move(phase, NodePhase.UP)
    assert not node.can_move(NodePhase.GONE, NodePhase.UNKNOWN)


def test_the_docs_show_the_diagram_of_the_table() -> None:
    assert f"```mermaid\n{gang.diagram()}\n```" in DOCS.read_text(encoding="utf-8")


def test_jobs_leave_on_the_full_minute() -> None:
    assert gang.retires_at(0) == gang.RETAIN_MS
    assert gang.retires_at(1) == gang.RETAIN_MS + 60_000
    for now in (0, 59_999, gang.RETAIN_MS, gang.RETAIN_MS + 60_001):
        assert gang.retires_at(gang.retired_by(now)) <= now < gang.retires_at(gang.retired_by(now) + 1)
