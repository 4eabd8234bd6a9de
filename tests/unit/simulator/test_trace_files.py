"""Forms that are written: the canonical one without loss, SWF with what it cannot tell counted. The catalog's prices.
Files that are ten times as large, or that never end.

All files here are made up; none is taken from a trace.
"""

from __future__ import annotations

import importlib
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.errors import RejectedError
from muster.model.reason import Code
from muster.simulator.traces import table
from muster.simulator.traces.canonical import write_canonical
from muster.simulator.traces.catalog import COLUMNS, read_catalog
from muster.simulator.traces.formats import find_format, read_trace
from muster.simulator.traces.notes import NOTES
from muster.simulator.traces.parquet import write_parquet
from muster.simulator.traces.record import Record
from muster.simulator.traces.sight import SEEN
from muster.simulator.traces.summary import draw, summarise
from muster.simulator.traces.swf import write_swf
from muster.units import HOUR_MS

HEAD = ",".join(COLUMNS) + "\n"
BARE = "gcp,,A100,1,,,asia,asia-a,3.1,1.86\n"
HOSTILE = "x\n1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"

names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8)
spans = st.integers(0, 10**12)
records = st.builds(
    Record,
    id=names.filter(bool),
    submit_ms=st.just(0),
    duration_ms=spans,
    gpus=st.integers(0, 4096),
    gpu_milli=st.integers(0, 1000),
    cpu_milli=st.integers(0, 10**9),
    memory_bytes=st.integers(0, 2**50),
    tenant=names,
    user=names,
    name=names,
    priority=st.integers(-(10**6), 10**6),
    tier=names,
    deadline_ms=st.none() | spans,
    limit_ms=st.none() | spans,
    models=st.lists(names.filter(lambda name: bool(name) and "|" not in name), max_size=3).map(tuple),
    status=names,
    wait_ms=st.none() | spans,
)


def write(folder: Path, text: str) -> Path:
    path = folder / "any"
    path.write_text(text, encoding="utf-8")
    return path


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.lists(records, min_size=1, max_size=4, unique_by=lambda record: record.id))
def test_what_is_written_in_the_canonical_form_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, some: list[Record]
) -> None:
    path = tmp_path_factory.mktemp("canonical") / "any"
    with path.open("w", encoding="utf-8", newline="") as file:
        write_canonical(some, file)
    assert find_format(path) == "muster"
    assert read_trace(path).records == sorted(some, key=lambda record: record.id)


def test_swf_counts_what_it_cannot_tell_and_numbers_names(tmp_path: Path) -> None:
    some = [
        Record("a", 0, 1499, 4, tenant="t", user="ada", name="train", limit_ms=9000, status="succeeded", wait_ms=2000),
        Record("b", 5000, 10_000, 1, tenant="t", user=HOSTILE, status="failed"),
        Record("c", 6000, 10_000, 0, gpu_milli=300),
        Record("d", 7000, 10_000, 0, cpu_milli=300),
    ]
    file = io.StringIO()
    left_out = write_swf(some, file, f"here\n{HOSTILE}")
    assert left_out == {"asks for a part of a GPU": 1, "asks for no GPU": 1}
    first, second = read_trace(write(tmp_path, file.getvalue())).records
    assert (first.duration_ms, first.gpus, first.limit_ms, first.wait_ms) == (1000, 4, 9000, 2000)
    assert (first.status, second.status, second.submit_ms, second.limit_ms) == ("1", "0", 5000, None)
    assert first.tenant == second.tenant
    assert first.user != second.user
    assert "; User: 1 ada" in file.getvalue()


def test_offers_in_millionths_of_dollars_and_thousandths_of_devices(tmp_path: Path) -> None:
    rows = "azure,NV6,A10,0.167,6,55,eu,,0.454,0.09\n" + BARE + "aws,p4,A100,8,96,1152,us,us-1,,9.5\n"
    bare, spot, part = sorted(read_catalog(write(tmp_path, HEAD + rows)).all, key=lambda offer: -(offer.is_bare))
    assert (bare.price_micros, bare.spot_micros, bare.cpu_milli) == (3_100_000, 1_860_000, 0)
    assert (spot.gpu_milli, spot.price_micros, spot.memory_bytes) == (8000, None, 1152 * 2**30)
    assert (part.gpu_milli, part.price_micros) == (167, 454_000)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (BARE, "id was there before"),
        ("gcp,,A100,1,,,asia,asia-b,,\n", "has no price"),
        ("gcp,,A100,0,,,asia,asia-b,1,\n", "has no accelerator"),
        ("gcp,,,1,,,asia,asia-b,1,\n", "has no accelerator"),
        ("gcp,,A100,1,,,asia,asia-b,-1,\n", "Price is not an amount"),
        ("gcp,,A100,1,,,asia,asia-b,nan,\n", "Price is not finite"),
    ],
)
def test_offers_that_make_no_sense_are_left_out_with_their_line(tmp_path: Path, row: str, reason: str) -> None:
    offers = read_catalog(write(tmp_path, HEAD + BARE + row))
    assert (len(offers.all), offers.dropped, offers.lines) == (1, {reason: 1}, {reason: [3]})


def test_every_format_has_its_units_and_traps_and_only_leagues_that_there_are() -> None:
    assert {"muster", "openb-pods", "philly", "muri", "swf", "chronus", "acme", "infinitehbd", "catalog"} < set(NOTES)
    assert {league for note in NOTES.values() for league in note.leagues} == set(SEEN)


def test_a_trace_in_figures_and_in_blocks() -> None:
    some = [Record(f"{at}", at * HOUR_MS, (at + 1) * HOUR_MS, 2**at, tenant="ab"[at % 2]) for at in range(4)]
    figures = summarise(some)
    assert (figures.jobs, figures.mean_gpus, figures.median_gpus, figures.most_gpus) == (4, 3.75, 4, 8)
    assert (figures.mean_run_ms, figures.gpu_hours, figures.tenants) == (2.5 * HOUR_MS, 49.0, {"a": 2, "b": 2})
    drawn = "\n".join(draw(some, 60))
    assert "     8 │" in drawn
    assert max(len(line) for line in drawn.splitlines()) <= 60


def peak_bytes(path: Path) -> int:
    tracemalloc.start()
    assert read_trace(path).records
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_a_file_of_ten_times_the_rows_costs_ten_times_its_records_and_never_its_text(tmp_path: Path) -> None:
    remark = "; " + "nothing " * 500 + "\n"
    small, large = tmp_path / "small", tmp_path / "large"
    for path, rows in ((small, 400), (large, 4000)):
        jobs = (f"{at} {at} 0 60 4 -1 -1 -1 120 -1 1 7 2 3 -1 1 -1 -1\n{remark}" for at in range(rows))
        path.write_text("".join(jobs))
    first, second = peak_bytes(small), peak_bytes(large)
    assert second < 12 * first
    assert second < large.stat().st_size / 4, "the text is never held as a whole"
    assert second / 4000 < 1000, "bytes for a record and its id"


def test_a_file_that_never_ends_is_refused_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "1 1 0 60 4 -1 -1 -1 120 -1 1 7 2 3 -1 1 -1 -1\n"
    monkeypatch.setattr(table, "ROWS_MAX", 3)
    with pytest.raises(RejectedError, match="more than 3 lines") as many:
        read_trace(write(tmp_path, 5 * text))
    assert "line 4" in many.value.reason.subject
    monkeypatch.setattr(table, "LINE_MAX", 100)
    with pytest.raises(RejectedError, match="100 characters"):
        read_trace(write(tmp_path, text + "1 " * 200))


def test_without_the_optional_part_parquet_is_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(RejectedError) as refusal:
        write_parquet([Record("a", 0, 1, 1)], tmp_path / "out")
    assert refusal.value.reason.code == Code.NO_PARQUET
    assert not (tmp_path / "out").exists()


def test_parquet_holds_every_field(tmp_path: Path) -> None:
    found = importlib.import_module("pyarrow.parquet")
    some = [Record("a", 0, 1, 1, models=("A", "B")), Record("b", 5, 2, 0, limit_ms=7, tenant="t")]
    write_parquet(some, tmp_path / "out")
    rows = found.read_table(tmp_path / "out").to_pylist()
    assert [(row["id"], row["models"], row["limit_ms"]) for row in rows] == [("a", ["A", "B"], None), ("b", [], 7)]
