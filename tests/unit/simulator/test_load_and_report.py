"""The load is a function of its seed; the report is a function of its figures."""

from __future__ import annotations

from unittest import mock

import pytest

from muster.model.errors import RejectedError
from muster.model.reason import Code
from muster.model.spec import find_fault
from muster.simulator.load import MIX, Load
from muster.simulator.options import METAS, SimOptions
from muster.simulator.report import percentiles, plot
from muster.simulator.simulation import run_simulation
from muster.testing.planted import PLANTED
from muster.units import DAY_MS
from muster.wire.words import put_in_words
from muster.world.queue import Queue


def test_the_same_seed_submits_the_same_jobs() -> None:
    first, second, other = (Load(SimOptions(seed=seed)) for seed in (4, 4, 5))
    jobs = [load.next_submit() for load in (first, second, other) for _ in range(20)]
    assert jobs[:20] == jobs[20:40] != jobs[40:]


def test_every_job_of_the_mix_is_in_order() -> None:
    load = Load(SimOptions(nodes=1000))
    names = set()
    for _ in range(3000):
        spec = load.next_submit().spec
        assert find_fault(spec) is None
        names.add(spec.name)
    assert names == {kind.name for kind in MIX}


def test_small_fleets_get_no_gangs_that_fill_them() -> None:
    load = Load(SimOptions(nodes=8))
    specs = [load.next_submit().spec for _ in range(500)]
    assert max(spec.gang for spec in specs if not spec.needs.groups) == 2
    workers = [group.tasks for spec in specs for group in spec.needs.groups if group.ask.gpus]
    assert set(workers) == {2}, "some gangs have groups, and their workers are no more than before"


def test_a_heavier_load_comes_faster() -> None:
    light, heavy = (Load(SimOptions(load=share)) for share in (0.2, 0.8))
    assert sum(light.next_gap_ms() for _ in range(200)) > 2 * sum(heavy.next_gap_ms() for _ in range(200))


def test_the_command_names_what_differs_from_the_defaults() -> None:
    assert SimOptions().command() == "muster sim"
    assert SimOptions(seed=12345678).command() == "muster sim --seed 12345678"
    options = SimOptions(nodes=8, seed=3, drain=False, record=True, load=1.25, inspect_every=5)
    assert options.command() == "muster sim --nodes 8 --seed 3 --load 1.25 --no-drain --inspect-every 5 --record"


@pytest.mark.parametrize(
    "options",
    [
        SimOptions(nodes=0),
        SimOptions(gpus=63),
        SimOptions(days=0),
        SimOptions(days=float("inf")),
        SimOptions(load=float("nan")),
        SimOptions(pace=0),
        SimOptions(lost=1000),
        SimOptions(maintenance=-1),
        SimOptions(tenants=0),
        SimOptions(inspect_every=0),
    ],
    ids=lambda options: str(options.command()),
)
def test_options_out_of_range_are_refused(options: SimOptions) -> None:
    with pytest.raises(RejectedError) as caught:
        run_simulation(options)
    assert caught.value.reason.code == Code.BAD_AMOUNT


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (SimOptions(nodes=-1), "nodes: out of range (-1 is not from 1 to 100000)"),
        (SimOptions(days=float("inf")), "days: out of range (inf is not from 0.001 to 3660)"),
        (SimOptions(faults=2e6), "faults: out of range (2000000.0 is not from 0 to 1000000)"),
    ],
)
def test_an_option_out_of_range_is_told_as_it_was_given(options: SimOptions, said: str) -> None:
    with pytest.raises(RejectedError) as caught:
        options.check()
    assert put_in_words(caught.value.reason).what == said


def test_whatever_goes_wrong_names_the_command_that_shows_it_again() -> None:
    with mock.patch.object(Queue, "add", side_effect=KeyError("a bug")), pytest.raises(KeyError) as caught:
        run_simulation(SimOptions(nodes=4, seed=6, faults=0))
    assert caught.value.__notes__ == ["again: muster sim --nodes 4 --seed 6 --faults 0"]


def test_a_run_of_one_node_in_which_nobody_came_is_told_in_words() -> None:
    lines = run_simulation(SimOptions(nodes=1, gpus=1, days=0.001)).render().splitlines()
    assert lines[0].startswith("1 node x 1 GPU, ")
    assert "wait      nobody started" in lines
    assert any("entries audited, 1 full inspection, none broken" in line for line in lines)


def test_every_option_says_what_it_is() -> None:
    assert list(METAS) == list(SimOptions.__struct_fields__)
    assert all(meta.description for meta in METAS.values())


def test_the_long_tail_of_the_last_jobs_does_not_hide_how_full_the_fleet_was() -> None:
    report = run_simulation(SimOptions(nodes=8, days=0.2, seed=3))
    assert report.span_ms > 0.2 * DAY_MS
    assert report.arrival_pct > report.busy_pct > 0
    assert f"{report.arrival_pct}% held while jobs came, {report.busy_pct}% in all" in report.render()
    closed = run_simulation(SimOptions(nodes=8, days=0.2, seed=3, drain=False))
    assert closed.arrival_pct == closed.busy_pct == report.arrival_pct


def test_percentiles() -> None:
    assert percentiles([]) == {}
    assert percentiles([5]) == {"p50": 5, "p90": 5, "p99": 5, "max": 5}
    assert percentiles(range(101)) == {"p50": 50, "p90": 90, "p99": 99, "max": 100}


def test_a_plot_is_as_wide_as_it_may_be() -> None:
    lines = plot("load", [0, 4, 8], 40, height=2)
    assert lines == ["load, 0 to 8", " │  █", " │ ██"]
    wide = plot("load", list(range(1000)), 40)
    assert {len(line) for line in wide[1:]} == {40}
    assert plot("load", [], 40)[0] == "load, 0 to 1"


def test_plants_have_names() -> None:
    assert len(PLANTED) >= 11
