"""The leagues of deadlines and of faults, on files of a few rows: how large the fleet is, who is given up, what is kept
by whoever is stopped, and what the bounds say. All rows are made up.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.league import LeagueOptions, run
from bench.leagues.deadline import (
    STAY_MS,
    ElasticAdviser,
    MusterAdviser,
    Want,
    fit_fleet,
    fleet_for,
    give_up,
    is_strict,
    most_met,
)
from bench.leagues.faults import CHECKPOINT_MS, places_of, share_used
from muster.simulator.traces.faults import Outage, Outages
from muster.simulator.traces.record import Reading, Record
from muster.units import DAY_MS, HOUR_MS, INSTANT_MAX, MINUTE_MS

CHRONUS = "job_id,user,num_gpu,submit_time,model_name,duration,expect_time_list,job_type\n"
ACME = "job_id,arrival_time,num_iteration,iteration_computing_time,gpu_workers,gpu_per_worker\n"


def jobs(count: int, gpus: int = 8, apart_ms: int = MINUTE_MS) -> list[Record]:
    return [
        Record(f"{at:03}", at * apart_ms, HOUR_MS, gpus, deadline_ms=at * apart_ms + 2 * HOUR_MS) for at in range(count)
    ]


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def want(number: int, due_ms: int, left_ms: int, gpus: int = 1, *, is_strict: bool = True) -> Want:
    return Want(due_ms, number, left_ms, left_ms * gpus, is_strict)


# -- deadlines


def test_one_absurdly_wide_job_makes_no_fleet() -> None:
    reading = Reading([*jobs(60), Record("wide", 60 * MINUTE_MS, HOUR_MS, 80_000)], {})
    kept, nodes = fit_fleet("list", reading)
    assert (len(kept.records), nodes) == (60, fleet_for(jobs(60)))
    assert sum(kept.dropped.values()) == 1


def test_a_fleet_has_room_for_those_who_are_there_even_if_they_all_come_at_once() -> None:
    assert fleet_for(jobs(40, apart_ms=0)) == 20
    assert fleet_for([Record("1", 0, HOUR_MS, 64)]) == 8
    assert fleet_for([Record("1", 0, 0, 1)]) == 1


def test_who_has_most_to_do_of_what_is_too_much_is_given_up_and_a_soft_one_first() -> None:
    """A part of four devices is promised for an hour: two of three that must begin now, if each takes one."""
    small, large = want(1, HOUR_MS, HOUR_MS), want(2, HOUR_MS, HOUR_MS, 2)
    assert give_up([small], 4, 0) == set()
    assert give_up([small, large], 4, 0) == {2}
    assert give_up([small._replace(is_strict=False), large], 4, 0) == {1}
    patient = large._replace(deadline=9 * HOUR_MS)
    assert give_up([small, patient], 4, 0) == set()


def test_a_strict_one_that_nobody_could_meet_takes_no_soft_one_with_it() -> None:
    soft, huge = want(1, HOUR_MS, HOUR_MS)._replace(is_strict=False), want(2, HOUR_MS, HOUR_MS, 4)
    assert give_up([soft, huge], 4, 0) == {2}


def test_who_can_be_met_no_longer_takes_nothing_from_those_who_can() -> None:
    adviser = ElasticAdviser([], 1)
    first, second = want(1, HOUR_MS, HOUR_MS), want(2, 3 * HOUR_MS, HOUR_MS)
    assert adviser.rank([first], [1], 0)[1] == HOUR_MS
    ranks = adviser.rank([first, second], [2], MINUTE_MS)
    assert ranks[2] < ranks[1]


def test_who_must_begin_first_goes_first_and_what_runs_is_kept_for_a_while() -> None:
    adviser = MusterAdviser([], 100)
    short, long = want(1, 3 * HOUR_MS, MINUTE_MS), want(2, 9 * HOUR_MS, 8 * HOUR_MS)
    ranks = adviser.rank([short, long], [1, 2], 0)
    assert ranks[2] < ranks[1]
    near = long._replace(number=3, deadline=long.deadline - STAY_MS + 1)
    ranks = adviser.rank([long._replace(is_up=True), near], [3], 0)
    assert ranks[2] < ranks[3]
    ranks = adviser.rank([long._replace(is_up=True), near._replace(deadline=near.deadline - 1000)], [3], 0)
    assert ranks[3] < ranks[2]


def test_who_has_no_deadline_goes_behind_the_smallest_first() -> None:
    small, large = want(1, INSTANT_MAX, HOUR_MS), want(2, INSTANT_MAX, 2 * HOUR_MS)
    ranks = MusterAdviser([], 8).rank([want(3, 90 * DAY_MS, HOUR_MS), large, small], [1, 2, 3], 0)
    assert sorted(ranks, key=ranks.__getitem__) == [3, 1, 2]


def test_soft_deadlines_are_counted_apart_and_nobody_is_missed_where_nobody_is_strict(tmp_path: Path) -> None:
    rows = "0,a,1,0,m,60,90,strict\n1,a,1,0,m,60,70-80-90,soft\n2,a,1,0,m,60,9999,best\n"
    found = run("deadline", LeagueOptions(write(tmp_path, x=CHRONUS + rows))).metrics
    assert found["x.muster.strict_met"].value == found["x.muster.soft_met"].value == 1
    assert found["x.muster.strict_met"].goal == 1
    assert found["x.muster.best_effort_wait_h"].goal == found["x.edf.best_effort_wait_h"].value
    assert not is_strict(Record("1", 0, 1, 1, deadline_ms=5, tier="soft"))
    assert most_met([Record("1", 0, 1, 1)], 8) == 1


# -- faults


def faults_of(times: list[float]) -> str:
    kinds = ("fault_start", "fault_end")
    return json.dumps(
        [{"node_id": "a", "event_time": at, "event_type": kinds[n % 2]} for n, at in enumerate(times)], indent=1
    )


def test_what_is_stopped_for_others_is_saved_first_and_what_a_fault_stops_is_not(tmp_path: Path) -> None:
    """A long job on all servers is stopped for a short one: nothing is lost. A fault does cost what was done since."""
    rows = "0,0,400000,0.5,400,8\n1,3600,20,0.5,400,8\n"
    quiet = run("faults", LeagueOptions(write(tmp_path, jobs=ACME + rows, faults=faults_of([90.0, 91.0])))).metrics
    assert quiet["jobs.muster.restarts"].value > 0
    assert quiet["jobs.muster.lost"].value == 0
    struck = run("faults", LeagueOptions(write(tmp_path, faults=faults_of([1.0, 1.5])))).metrics
    assert struck["jobs.muster.lost"].value > 0


def test_where_nobody_would_get_on_nothing_is_measured_by_the_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path, jobs=ACME + "0,0,1200,0.5,400,8\n", f=faults_of([at / 3600 for at in range(24)]))
    found = run("faults", LeagueOptions(folder)).metrics
    assert found["jobs.bound.goodput"].value == 0
    assert "jobs.muster.of_bound" not in found
    assert "nobody would get on" in capsys.readouterr().err


def test_what_a_job_uses_of_its_time_falls_with_faults_and_is_always_a_share() -> None:
    means = (1000 * DAY_MS, DAY_MS, HOUR_MS, MINUTE_MS, 1)
    shares = [share_used(DAY_MS, HOUR_MS, mean) for mean in means]
    assert shares == sorted(shares, reverse=True)
    assert 0.98 < shares[0] < 1 - CHECKPOINT_MS / (HOUR_MS + CHECKPOINT_MS) + 0.001
    assert shares[-1] == 0
    assert share_used(0, HOUR_MS, DAY_MS) == 1


def test_servers_that_fail_are_spread_among_those_that_do_not() -> None:
    outages = Outages([Outage(0, name, 1) for name in "abcd"], {})
    assert places_of(outages, 400) == {"a": 0, "b": 100, "c": 200, "d": 300}
