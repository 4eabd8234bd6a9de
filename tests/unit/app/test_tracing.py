"""`muster trace`: what it tells and writes, and that it changes nothing when it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.app.__main__ import main
from muster.app.tracing import name_users, tell
from muster.control.batches import Item, make_batch
from muster.control.history import write_chapter
from muster.kernel.kernel import Kernel
from muster.model.event import Event, Exited, NodeSeen, Started, Submit
from muster.model.spec import Spec
from muster.simulator.chronicle import read_history
from muster.stores.memory import MemoryStore
from muster.units import Resources
from muster.world.accounting import keep_diary
from muster.world.world import World

MURI = "job_id,num_gpu,submit_time,iterations,model_name,duration,iteration_time\n"
ROWS = "0,4,1000,50,v\x1b[31mgg,9,20\n1,0,3000,7,bert,9,100\n2,8,3000,7,bert,9,100\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs"
    path.write_text(MURI + ROWS)
    return path


def test_a_file_is_told_with_its_units_traps_and_lines_left_out(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "info", str(trace)]) == 0
    told = capsys.readouterr().out
    assert "MILLISECONDS" in told
    assert "rigid sees      submit_ms, gpus\n" in told
    assert "left out        1: asks for no GPU (line 3)\n" in told
    assert main(["trace", "info", str(trace), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["figures"]["jobs"], found["lines"]) == ("muri", 2, {"asks for no GPU": [3]})


def test_names_of_others_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs"
    path.write_text("timestamp,duration,num_gpus,cluster\n2020-01-02 00:00:10,66,2,\x1b[2Jevil\n")
    assert main(["trace", "info", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("form", ["muster", "swf"])
def test_what_is_converted_is_the_same_trace(
    trace: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.gz"
    assert main(["trace", "convert", str(trace), str(target), "--to", form]) == 0
    assert "1: asks for no GPU (line 3)" in capsys.readouterr().out
    assert main(["trace", "info", str(target), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["figures"]["jobs"], found["figures"]["most_gpus"]) == (form, 2, 8)


@pytest.mark.parametrize(
    ("name", "words", "form"),
    [("a.swf.gz", (), "swf"), ("swf.csv", (), "muster"), ("a.swf", ("--to", "muster"), "muster")],
)
def test_what_is_written_is_what_the_name_says_unless_somebody_says_otherwise(
    trace: Path, tmp_path: Path, name: str, words: tuple[str, ...], form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "convert", str(trace), str(tmp_path / name), *words]) == 0
    capsys.readouterr()
    assert main(["trace", "info", str(tmp_path / name), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == form


def test_a_plot_fits_and_every_format_is_listed(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "plot", str(trace)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
    assert main(["trace", "formats"]) == 0
    assert "catalog" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["info", "nothing-there"], "M315"),
        (["convert", "{trace}", "/no/such/folder/out"], "M354"),
        (["export", "out", "--home", "no-home"], "M305"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_code(
    trace: Path, words: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", *(word.format(trace=trace) for word in words)]) == 2
    assert f"error[{code}]" in capsys.readouterr().err


def test_a_journal_is_told_as_a_trace() -> None:
    store, kernel = MemoryStore(), Kernel(World())
    diary = keep_diary(kernel.world)
    spec = Spec(("true",), name="first", ask=Resources(gpus=2), gang=2)
    batches: list[tuple[int, Event]] = [
        (1000, NodeSeen("n1", Resources(gpus=8, cpu_milli=8000))),
        (5000, Submit(spec, cause="ada")),
        (6000, Started(1, 1, 0, 2)),
        (9000, Exited(1, 1, 0, 0, 2)),
        (9500, Submit(spec)),
    ]
    for now, event in batches:
        outcome = kernel.handle([event], now)
        commit = make_batch([Item(event)], outcome, write_chapter(diary, outcome.facts)).commit
        assert commit is not None
        store.append([commit])
    reading = read_history(tell(store), name_users(store))
    (record,) = reading.records
    assert (record.gpus, record.duration_ms, record.wait_ms, record.status) == (4, 4000, 0, "succeeded")
    assert (record.user, record.name) == ("owner", "first")
    assert reading.dropped == {"is not over": 1}
