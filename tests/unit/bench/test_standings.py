"""The figures of leagues as people meet them: bounds beside results, goals, and pages that know no league."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bench.__main__ import _parse as league_words
from bench.__main__ import main
from bench.league import LEAGUES, LeagueOptions
from bench.league_page import show_league
from bench.leagues import packing, rigid
from bench.leagues.deadline import most_met
from bench.proving_ground import make_page, sections_of
from bench.published import compare, read_published
from bench.report import Metric
from bench.standings import draw_standings, goals_of, standings_of
from muster.model.errors import RejectedError
from muster.simulator.traces.record import Record
from muster.simulator.witness import Witness

METRICS: dict[str, dict[str, object]] = {
    "a.b.muster.jct": {"value": 12.0, "unit": "s", "goal": 10.0, "met": False},
    "a.b.bound.jct": {"value": 8.0, "unit": "s", "goal": None, "met": True},
    "a.b.muster.cpu": {"value": 3.0, "unit": "s", "goal": 5.0, "met": True},
    "<script>.muster.cpu": {"value": 3.0, "unit": "s"},
}
MURI = "job_id,num_gpu,submit_time,iterations,model_name,duration,iteration_time\n"


def test_a_result_stands_beside_its_bound() -> None:
    first, second = standings_of(METRICS)
    assert (first.measure, first.has_bound, second.has_bound) == ("jct", True, False)
    assert first.policies == ["bound", "muster"]
    row = first.rows["a.b"]
    assert row["muster"].over(row["bound"]) == 0.5
    assert row["muster"].over(None) is None
    assert [(name, goal.is_met) for name, goal in goals_of([first, second])] == [
        ("a.b, muster, jct (s)", False),
        ("a.b, muster, cpu (s)", True),
    ]


def test_small_charts_fit() -> None:
    lines = list(draw_standings(standings_of(METRICS), 60))
    assert lines[0] == "a.b: jct (s)"
    assert lines[1].endswith("12 (+50.0%)")
    assert all(len(line) <= 60 for line in lines)


def test_the_page_of_a_league_escapes_and_shows_both() -> None:
    page = show_league("<b>", "command", METRICS, {"one": Witness().picture()})
    assert "<script>" not in page
    assert "<b>" not in page
    assert "12 (+0.500)" in page
    assert "1 of 2" in page
    assert "Utilisation, one" in page


def test_the_proving_ground_names_what_was_played_and_what_was_not() -> None:
    result = {"command": "muster league rigid", "date": "2026-01-02", "commit": "abc", "metrics": METRICS}
    again = {**result, "commit": "def", "metrics": {"a.b.fifo.jct": {"value": 16.0, "unit": "s"}}}
    page = make_page({"rigid": [result, again]})
    assert "`muster league rigid`, 2026-01-02, abc; then `muster league rigid`, 2026-01-02, def" in page
    assert "16 (+1.000)" in page
    assert "- a.b, muster, jct (s): 12, goal 10" in page
    assert "12 (+0.500)" in page
    assert "| rigid | submit_ms, gpus |" in page
    assert f"{', '.join(name for name in LEAGUES if name != 'rigid')}: no figures" in page


def test_a_league_that_was_not_played_again_keeps_its_section() -> None:
    rigid = {"command": "muster league rigid", "date": "2026-01-02", "commit": "abc", "metrics": METRICS}
    both = make_page({"rigid": [rigid], "faults": [{**rigid, "command": "muster league faults"}]})
    again = make_page({"faults": [{**rigid, "commit": "def", "command": "muster league faults"}]}, sections_of(both))
    assert again == both.replace("`muster league faults`, 2026-01-02, abc", "`muster league faults`, 2026-01-02, def")
    assert make_page({}, sections_of(both)) == both


def test_the_page_says_how_fast_both_profiles_of_packing_are_by_the_table_on_it() -> None:
    speeds = {"default": (9000.0, 9200.5, 20000.0), "muster": (5000.0, 5100.0, 7000.0), "fgd": (1.0, 2.0, 3.0)}
    metrics = {
        f"{at}.{policy}.decisions_per_s": {"value": value, "unit": "/s CPU"}
        for policy, values in speeds.items()
        for at, value in enumerate(values)
    }
    page = make_page({"packing": [{"command": "c", "date": "d", "commit": "e", "metrics": metrics}]})
    assert "they decide 9,200 and 5,100 times in a CPU second" in page
    assert make_page({}, sections_of(page)) == page
    assert "times in a CPU second" not in make_page({})


def test_pictures_are_few_and_of_muster() -> None:
    assert LeagueOptions(Path()).find_witness("a", "muster") is None
    options = LeagueOptions(Path(), witnesses={})
    found = [options.find_witness(f"{at}", policy) for at in range(9) for policy in ("fifo", "muster")]
    assert sum(witness is not None for witness in found) == 3


def test_a_league_writes_both_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    rows = "".join(f"{at},{1 + at % 8},{at * 60_000},50,vgg,9,{6000 * (1 + at % 5)}\n" for at in range(30))
    (folder / "some.csv").write_text(MURI + rows)
    page, figures = tmp_path / "page.html", tmp_path / "figures.json"
    words = ["league", "rigid", "--traces", str(folder), "--policies", "fifo,srsf,muster"]
    assert main([*words, "--report", str(page), "--report", str(figures)]) == 0
    assert "some: avg_jct_s (s)" in capsys.readouterr().out
    found = msgspec.json.decode(figures.read_bytes())
    assert found["metrics"]["some.bound.avg_jct_s"]["value"] <= found["metrics"]["some.muster.avg_jct_s"]["value"]
    assert found["metrics"]["some.srsf.avg_jct_s"]["value"] < found["metrics"]["some.srsf.avg_jct_s_slowed"]["value"]
    assert found["pictures"]["some, muster"]["jobs"] == 30
    assert "Largest gangs, some, muster" in page.read_text()


def test_no_more_deadlines_can_be_met_than_fit_and_could_be_met_alone() -> None:
    hopeless, easy = Record("1", 0, 9000, 8, deadline_ms=8000), Record("2", 0, 4000, 8, deadline_ms=8000)
    assert most_met([hopeless, easy], 8) == 0.5
    assert most_met([replace(easy, id=f"{at}") for at in range(4)], 8) == 0.5
    assert most_met([Record("1", 0, 9000, 8)], 8) == 1.0


TABLE = "list,policy,measure,published,player,within,source\n"


def test_what_others_published_of_a_list_is_a_goal_for_who_plays_the_same_and_for_who_plays_against_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "published.csv"
    rows = ["a,srtf,jct,100,srtf,7%,p", "a,fgd,idle,4.7,fgd,0.3,p", "a,themis,jct,90,muster,,p", "b,srtf,jct,1,srtf,,p"]
    path.write_text(TABLE + "\n".join(rows) + "\n")
    played = {"a.srtf.jct": Metric(92, "s"), "a.fgd.idle": Metric(4.9, "%"), "a.muster.jct": Metric(81, "s")}
    found = compare(played, read_published(path))
    assert {name: (round(each.value, 3), each.goal, each.met) for name, each in found.items()} == {
        "a.srtf.jct_off_published": (8.0, 7.0, False),
        "a.fgd.idle_off_published": (0.2, 0.3, True),
        "a.muster.jct_of_published_themis": (0.9, 1.0, True),
    }


@pytest.mark.parametrize(
    "row", ["a,srtf,jct,-1,srtf,,p", "a,srtf,jct,1,,,p", "a,srtf,jct,1,srtf,some,p", "a,srtf,jct,nan,srtf,,p"]
)
def test_a_published_figure_that_makes_no_sense_is_refused_with_its_line(tmp_path: Path, row: str) -> None:
    path = tmp_path / "published.csv"
    path.write_text(f"{TABLE}a,sjf,jct,1,sjf,,p\n{row}\n")
    with pytest.raises(RejectedError, match="line 3"):
        read_published(path)


def test_the_table_of_published_figures_names_only_players_and_is_asked_for_and_never_looked_for() -> None:
    known = read_published(Path(__file__).parents[3] / "bench" / "published.csv")
    assert {each.player for each in known} <= {*rigid.PLAYERS, *packing.PLAYERS}
    assert {each.within for each in known if each.player == each.policy} == {7.0, 0.3, None}
    assert league_words(["league", "rigid"]).published is None
