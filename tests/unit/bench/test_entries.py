"""What a league is played on: whatever files a folder holds, and nothing of them is passed over in silence."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from bench.league import LEAGUES, LeagueOptions, find_fault, run
from bench.leagues.entries import keep_first, keep_fitting
from bench.leagues.trial import nodes_of
from muster.model.errors import RejectedError
from muster.simulator.traces.formats import find_traces
from muster.simulator.traces.record import Reading, Record

MURI = "job_id,num_gpu,submit_time,iterations,model_name,iteration_time\n"
PHILLY = "timestamp,duration,num_gpus,cluster\n"


def write(folder: Path, text: str, name: str = "any.name") -> Path:
    (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("league", LEAGUES)
def test_a_folder_without_a_file_for_the_league_is_refused(league: str, tmp_path: Path) -> None:
    write(tmp_path, "nothing of this\n")
    with pytest.raises(RejectedError, match="holds no file of format"):
        run(league, LeagueOptions(tmp_path))


def test_a_file_that_lacks_one_column_is_told_and_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path, MURI + "0,1,1,5,m,20\n", "good.csv")
    write(tmp_path, MURI.replace("num_gpu,", "") + "0,1,5,m,20\n", "lacks.csv")
    with pytest.raises(RejectedError, match=r"lacks.csv, line 1.* lacks the column num_gpu of format muri"):
        list(find_traces(tmp_path, "muri"))
    assert [stem for stem, _ in find_traces(write(tmp_path, PHILLY), "philly")] == ["any"]


def test_rows_that_cannot_be_used_and_jobs_that_are_too_large_are_counted(tmp_path: Path) -> None:
    rows = ["0,1,1,5,m,20", "1,1000,2,5,m,20", "2,nan,3,5,m,20", "3,65,4,5,m,20", "4,64,5,5,m,20"]
    metrics = run("rigid", LeagueOptions(write(tmp_path, MURI + "\n".join(rows) + "\n"), policies=("fifo",))).metrics
    assert metrics["any.all.dropped_rows"].value == 3
    assert metrics["any.fifo.avg_jct_s"].value > 0


def test_every_file_has_a_name_of_its_own_and_none_that_of_all(tmp_path: Path) -> None:
    for name in ("a.csv", "a.csv.old", "a-2.csv", "all.csv"):
        write(tmp_path, PHILLY, name)
    assert [stem for stem, _ in find_traces(tmp_path, "philly")] == ["a-2", "a", "a-3", "all-2"]


def test_jobs_that_take_no_time_are_played_and_no_figure_is_divided_by_nothing(tmp_path: Path) -> None:
    rows = ["0,1,1,0,m,20", "1,8,1,0,m,20"]
    metrics = run("rigid", LeagueOptions(write(tmp_path, MURI + "\n".join(rows) + "\n"))).metrics
    assert metrics["any.bound.avg_jct_s"].value == metrics["any.muster.avg_jct_s"].value == 0
    assert "any.muster.over_bound" not in metrics
    assert "any.muster.over_srsf" not in metrics


def test_who_learns_has_a_goal_at_every_cost_of_a_restart(tmp_path: Path) -> None:
    rows = ["0,8,1,900,m,20", "1,64,2,90,m,20", "2,8,3,9,m,20"]
    folder = write(tmp_path, MURI + "\n".join(rows) + "\n")
    metrics = run("rigid", LeagueOptions(folder, policies=("muster", "srsf"))).metrics
    for cost, measure in (("", "avg_jct_s"), ("_cost0", "avg_jct_s_cost0"), ("_cost120", "avg_jct_s_cost120")):
        found = metrics[f"all.muster.over_srsf{cost}"]
        assert found.value == metrics[f"any.muster.{measure}"].value / metrics[f"any.srsf.{measure}"].value
        assert (found.goal, found.at_least) == (1.5, False)


def test_a_job_needs_as_many_nodes_as_its_gang() -> None:
    assert [nodes_of(gpus) for gpus in (1, 8, 9, 11, 16, 20, 60, 64)] == [1, 1, 2, 2, 2, 3, 8, 8]


def test_what_is_left_out_is_told_by_reason() -> None:
    reading = Reading([Record(f"{gpus}", gpus, 1, gpus) for gpus in (1, 8, 65)], {"twice": 2})
    assert keep_fitting("jobs", reading, 8).dropped == {"twice": 2, "larger than 8 nodes": 1}
    assert keep_first(reading, 1).dropped == {"twice": 2, "beyond the first 1": 2}
    assert keep_first(reading, 3) is reading
    with pytest.raises(RejectedError, match="no job that 2 nodes have room for"):
        keep_fitting("jobs", Reading([Record("1", 0, 1, 60)], {}), 2)


def test_nobody_is_foretold_from_nothing(tmp_path: Path) -> None:
    write(tmp_path, PHILLY + "2020-01-02 00:00:10,66.5,2,b\n", "few.csv")
    with pytest.raises(RejectedError, match="holds no file with owners and more than 200 jobs"):
        run("prediction", LeagueOptions(tmp_path))
    rows = [f"2020-01-{1 + at // 24:02} {at % 24:02}:00:00,{60 + at % 7},2,b" for at in range(300)]
    write(tmp_path, PHILLY + "\n".join(rows) + "\n", "many.csv")
    metrics = run("prediction", LeagueOptions(tmp_path, policies=("muster",))).metrics
    assert [metrics[f"{stem}.all.dropped_rows"].value for stem in ("few", "many")] == [1, 0]
    assert "many.muster.covered" in metrics
    assert metrics["many.muster.pinball_s"].goal is None
    metrics = run("prediction", LeagueOptions(tmp_path, policies=("muster", "user-mean"))).metrics
    assert metrics["many.muster.pinball_s"].goal == metrics["many.user-mean.pinball_s"].value


@pytest.mark.parametrize("league", LEAGUES)
def test_a_policy_that_a_league_does_not_have_is_named(league: str) -> None:
    def fault(policies: str, seeds: int | None = None) -> str | None:
        return find_fault(Namespace(league=league, policies=policies, seeds=seeds))

    assert fault("") is None
    assert fault("muster,bound", 3) is None
    assert "no policy guess; it has" in (fault("muster,guess") or "")
    assert "without a seed" in (fault("muster", 0) or "")
