"""The packing league on a tiny fleet of its own: the same seed gives the same run, and bounds are bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.leagues.dice import Dice, _far_words
from bench.leagues.packing import (
    POLICIES,
    Stage,
    asked_by,
    bound_of,
    devices_of,
    draw,
    play,
    play_churn,
    play_hindsight,
    read_folder,
)
from bench.leagues.packing_bound import find_bound
from bench.proving_ground import table_of
from bench.standings import standings_of
from muster.model.errors import InvariantError, RejectedError
from muster.simulator.traces.openb import NodeRow
from muster.simulator.traces.record import Record
from muster.units import Resources

NODES = [NodeRow(f"n{n}", Resources(2, 8000, 2**34), "A" if n % 3 else "B") for n in range(12)]
SIZES = (0, 300, 810, 470)
PODS = [
    Record(f"p{n:03d}", 0, 0, int(n % 4 == 0), SIZES[n % 4], 500 * (1 + n % 5), 2**28, models=("B",) * (n % 9 == 0))
    for n in range(60)
]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_gives_the_same_run(policy: str) -> None:
    first, again = (play(policy, NODES, PODS, 5) for _ in range(2))
    assert first[:2] == again[:2]
    assert 100 > first.at_full >= first.at_overfull >= 0


def test_a_stream_comes_just_below_what_is_wanted_and_does_not_depend_on_the_order_of_the_list() -> None:
    most = 1.3 * devices_of(NODES)
    stream, order = draw(PODS, NODES, 1)
    assert most - 1000 <= sum(map(asked_by, stream)) <= most
    assert {node.name for node in order} == {node.name for node in NODES}
    assert (stream, order) == draw(PODS[::-1], NODES[::-1], 1)
    assert (stream, order) != draw(PODS, NODES, 2)


def test_the_published_dice_are_thrown() -> None:
    """What everybody gets who seeds that generator with 42, and one of its first words."""
    assert [Dice(42).below(100)] == [5]
    dice = Dice(42)
    assert [dice.below(100) for _ in range(3)] == [5, 87, 68]
    assert _far_words()[0] == 2**64 - 4181792142133755926
    things = list(range(50))
    dice.shuffle(things)
    assert sorted(things) == list(range(50)) == sorted(dice.ranks(50))


def test_the_bound_is_nothing_for_what_packs_well_and_the_waste_of_what_does_not() -> None:
    halves = [Record(f"h{n}", 0, 0, 0, 500) for n in range(4)]
    assert find_bound(NODES, halves) == pytest.approx(0)
    large = [Record(f"l{n}", 0, 0, 0, 810) for n in range(4)]
    assert find_bound(NODES, large) == pytest.approx(0.19)
    only_b = [Record(f"b{n}", 0, 0, 1, models=("B",)) for n in range(4)]
    assert find_bound(NODES, only_b) == pytest.approx(2 / 3)


def test_with_departures_places_come_free_and_are_used_again() -> None:
    first, again = (play_churn("muster", NODES, PODS, 2) for _ in range(2))
    assert first == again
    assert 0 <= first < 60


def test_who_got_no_place_never_takes_one_that_comes_free_later() -> None:
    """Such a pod would start as soon as another left, be cancelled, and hold its place for ever: nobody ends it."""
    stage, pod = Stage("muster", NODES[:1], PODS), Record("whole", 0, 0, 2)
    first = stage.place(pod)
    assert first is not None
    assert stage.place(pod) is None
    stage.end(first)
    second = stage.place(pod)
    assert second is not None
    stage.end(second)
    assert stage.place(pod) is not None


def test_with_departures_nothing_is_idle_where_every_pod_fits_every_hole() -> None:
    """Demand is there from the first moment on: what is measured is no fleet that fills up."""
    wholes = [Record(f"w{n}", 0, 0, 1) for n in range(60)]
    assert all(play_churn(policy, NODES, wholes, 1) < 5 for policy in ("fgd", "muster"))


def test_a_folder_without_nodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="holds no file of format openb-pods"):
        read_folder(tmp_path)


def test_a_list_is_played_on_every_list_of_nodes_and_once_on_those_that_name_the_same(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\n")
    head, node = "sn,cpu_milli,memory_mib,gpu,model\n", "n,8000,8,2,A\n"
    (tmp_path / "nodes.csv").write_text(head + node)
    (tmp_path / "with-others.csv").write_text(f"{head}without,8000,8,0,\n{node}")
    assert list(read_folder(tmp_path)) == ["pods"]
    (tmp_path / "more.csv").write_text(f"{head}{node}m,8000,8,2,A\n")
    assert [(name, len(each.nodes)) for name, each in read_folder(tmp_path).items()] == [
        ("pods-more", 2),
        ("pods-nodes", 1),
    ]


def test_a_run_that_holds_something_else_than_was_placed_is_worth_nothing() -> None:
    stage = Stage("fgd", NODES, PODS)
    stage.place(Record("whole", 0, 0, 2))
    stage.check_held(2000)
    with pytest.raises(InvariantError, match="what is held is what was placed"):
        stage.check_held(1000)


def test_a_list_of_pods_without_devices_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pods").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1,0,0\n")
    with pytest.raises(RejectedError, match="no pod that asks for a device"):
        read_folder(tmp_path)


def test_the_page_has_a_table_for_each_measure() -> None:
    metrics = {f"list.{policy}.idle": {"value": value, "unit": "%"} for policy, value in (("a", 1.5), ("bound", 1))}
    (table,) = standings_of(metrics)
    assert table_of(table)[0] == "| idle (%) | bound | a |"
    assert table_of(table)[2] == "| list | 1 | 1.5 (+0.500) |"


def test_a_fleet_that_is_never_just_full_is_measured_when_demand_has_passed_it() -> None:
    """Three nodes of two devices, and pods of four thirds of a node's demand at a time: 89 per cent, then 111."""
    nodes = [NodeRow(f"n{n}", Resources(3, 8000, 2**34), "A") for n in range(3)]
    pods = [Record(f"p{n}", 0, 0, 2, 0, 100, 2**20) for n in range(9)]
    score = play("default", nodes, pods, 42)
    assert score.at_full == pytest.approx(100 / 3)


def test_no_stream_of_a_short_list_passes_its_own_bound() -> None:
    pods = [
        Record(f"p{n}", 0, 0, int(n % 5 == 0), 0 if n % 5 == 0 else 810, models=("B",) * (n % 7 == 0)) for n in range(9)
    ]
    for seed in range(42, 46):
        assert play_hindsight(NODES, pods, seed) >= 100 * bound_of(NODES, pods, seed) - 1e-6


def test_hindsight_is_never_worse_than_who_played_the_same_stream_online() -> None:
    first, again = (play_hindsight(NODES, PODS, 5) for _ in range(2))
    assert first == again
    assert 0 <= first <= min(play(policy, NODES, PODS, 5).at_full for policy in ("fgd", "muster"))
