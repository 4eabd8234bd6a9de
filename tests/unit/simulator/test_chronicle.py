"""The chronicle agrees with those who watched the same run: what it tells from facts is what was held."""

from __future__ import annotations

from muster.model import fact
from muster.model.after import After, When
from muster.model.phase import TaskPhase, Why
from muster.model.spec import Spec
from muster.simulator.chronicle import Chronicle, read_history
from muster.simulator.options import SimOptions
from muster.simulator.simulation import Simulation
from muster.units import Resources
from muster.wire.codec import decode_entry


def test_a_run_is_told_from_its_facts_alone() -> None:
    simulation = Simulation(SimOptions(nodes=6, days=0.2, pace=8, faults=400.0, seed=5, record=True))
    report = simulation.run()
    chronicle = Chronicle()
    for data in simulation.body.bundle().entries:
        entry = decode_entry(data)
        chronicle.take(entry.at, entry.facts)
    lives = list(chronicle.lives.values())
    assert len(lives) == report.accepted
    area = sum(life.area_ms * life.spec.ask.gpus for life in lives)
    assert 100 * area // (6 * 8 * report.span_ms) == report.busy_pct
    assert any(life.spec.array and life.most > 1 for life in lives)
    assert any(len(life.spans) > 1 for life in lives), "somebody had to start again"
    reading = read_history(chronicle, dict.fromkeys(chronicle.lives, "ada"))
    assert len(reading.records) == sum(report.outcomes.values())
    assert reading.records[0].submit_ms == 0
    for life in lives:
        assert life.held == 0
        assert life.wait_ms >= 0
        assert all(begin <= end for begin, end in life.spans)


def test_tasks_whose_likes_failed_held_nothing() -> None:
    spec = Spec(("x",), array=3, ask=Resources(gpus=1), after=(After(1, When.TASK_BY_TASK),))
    chronicle = Chronicle()
    chronicle.take(0, [fact.Accepted(2, spec, "ada")])
    chronicle.take(10, [fact.TasksEnded(2, 0, 1, TaskPhase.CANCELLED, Why.DEPENDENCY)])
    chronicle.take(20, [fact.TasksMoved(2, 1, 2, TaskPhase.QUEUED), fact.TasksPlaced(2, 1, [0], [2], [])])
    chronicle.take(50, [fact.TasksEnded(2, 1, 1, TaskPhase.SUCCEEDED)])
    chronicle.take(70, [fact.TasksEnded(2, 2, 1, TaskPhase.SUCCEEDED), fact.Ended(2, TaskPhase.FAILED, Why.EXIT)])
    [life] = chronicle.lives.values()
    assert (life.spans, life.most, life.held, life.area_ms) == ([(20, 70)], 2, 0, 2 * 30 + 20)
    assert chronicle.gpus_held == 0


def test_who_is_not_over_is_counted() -> None:
    simulation = Simulation(SimOptions(nodes=4, days=0.05, faults=0.0, seed=2, drain=False, record=True))
    report = simulation.run()
    chronicle = Chronicle()
    for data in simulation.body.bundle().entries:
        entry = decode_entry(data)
        chronicle.take(entry.at, entry.facts)
    reading = read_history(chronicle, dict.fromkeys(chronicle.lives, "ada"))
    left = report.accepted - sum(report.outcomes.values())
    assert left > 0
    assert reading.dropped == {"is not over": left}


def test_who_came_before_the_first_entry_or_is_forgotten_is_not_told() -> None:
    simulation = Simulation(SimOptions(nodes=4, days=0.1, pace=8, faults=0.0, seed=2, record=True))
    simulation.run()
    entries = [decode_entry(data) for data in simulation.body.bundle().entries]
    chronicle = Chronicle()
    for entry in entries[len(entries) // 2 :]:
        chronicle.take(entry.at, entry.facts)
    told = read_history(chronicle, dict.fromkeys(list(chronicle.lives)[1:], "ada"))
    assert 0 < len(told.records) == len(chronicle.lives) - 1
    assert told.dropped == {"is forgotten": 1}
    assert chronicle.gpus_held == 0
