"""Every format against every kind of bad data: refused with a line, or left out and counted, and never in silence.

Each format has a maker of good rows here; every case spoils one of them. All rows are made up.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from muster.model.errors import RejectedError
from muster.simulator.traces.canonical import COLUMNS as CANONICAL_COLUMNS
from muster.simulator.traces.catalog import COLUMNS as CATALOG_COLUMNS
from muster.simulator.traces.catalog import read_catalog
from muster.simulator.traces.faults import read_faults
from muster.simulator.traces.formats import find_format, find_traces, read_trace
from muster.simulator.traces.openb import read_nodes


class Form(NamedTuple):
    """How a file of a format is made, and in which field of a row what can go wrong."""

    name: str
    head: str
    row: Callable[[int], list[str]]
    gap: str = ","
    id_field: int | None = 0
    time_field: int | None = None
    size_field: int | None = None
    empty_size: str = "0"

    def text(self, rows: Sequence[Sequence[str]]) -> str:
        return self.head + "".join(self.gap.join(row) + "\n" for row in rows)


def _canonical(at: int) -> list[str]:
    known = {"id": f"{at}", "submit_ms": f"{at}", "duration_ms": "5", "gpus": "1", "priority": "0"}
    counts = dict.fromkeys(("gpu_milli", "cpu_milli", "memory_bytes"), "0")
    return [(known | counts).get(name, "") for name in CANONICAL_COLUMNS]


SWF_TAIL = ["-1", "-1", "-1", "120", "-1", "1", "7", "2", "3", "-1", "1", "-1", "-1"]
FORMS = [
    Form("muster", ",".join(CANONICAL_COLUMNS) + "\n", _canonical, time_field=2),
    Form("philly", "timestamp,duration,num_gpus,cluster\n",
         lambda at: [f"2020-01-{1 + at % 28:02} 00:00:{at % 60:02}", "5", "1", "a"],
         id_field=None, time_field=1, size_field=2),
    Form("muri", "job_id,num_gpu,submit_time,iterations,model_name,iteration_time\n",
         lambda at: [f"{at}", "1", f"{at}", "5", "m", "20"], time_field=2, size_field=1),
    Form("chronus", "job_id,user,num_gpu,submit_time,model_name,duration,expect_time_list,job_type\n",
         lambda at: [f"{at}", "u", "1", f"{at}", "m", "2", "3", "strict"], time_field=5, size_field=2),
    Form("acme", "job_id,arrival_time,num_iteration,iteration_computing_time,gpu_workers,gpu_per_worker\n",
         lambda at: [f"{at}", f"{at}", "8", "0.5", "1", "8"], time_field=1, size_field=4),
    Form("gen_parallel", "u_id,user,gpu_num,cpu_num,interval,run_time,wall_time,new_status\n",
         lambda at: [f"{at}", "1", "1", "2", "3", "4", "5", "Pass"], time_field=5),
    Form("swf", "; Version: 2\n",
         lambda at: [f"{at}", f"{at}", "0", "60", "4", *SWF_TAIL],
         gap=" ", time_field=1, size_field=4),
    Form("openb-pods", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n",
         lambda at: [f"p{at}", "1000", "1", "1", "1000", f"{at}", f"{at + 5}"], time_field=5),
    Form("openb-nodes", "sn,cpu_milli,memory_mib,gpu,model\n",
         lambda at: [f"n{at}", "1000", "1", "8", "A"], time_field=1, size_field=3),
    Form("catalog", ",".join(CATALOG_COLUMNS) + "\n",
         lambda at: ["c", f"m{at}", "A", "1", "8", "64", "r", "z", "1.5", "0.5"], time_field=8, size_field=3),
]  # fmt: skip
GOOD = 5


def read(path: Path) -> tuple[int, dict[str, int], dict[str, list[int]]]:
    """How much of a file can be used, what was left out, and where."""
    name = find_format(path)
    if name == "openb-nodes":
        fleet = read_nodes(path)
        return len(fleet.nodes), fleet.dropped, fleet.lines
    if name == "catalog":
        offers = read_catalog(path)
        return len(offers.all), offers.dropped, offers.lines
    reading = read_trace(path)
    return len(reading.records), reading.dropped, reading.lines


def spoil(form: Form, field: int, value: str) -> list[list[str]]:
    rows = [form.row(at) for at in range(1, GOOD + 1)]
    bad = form.row(GOOD + 1)
    bad[field] = value
    return [*rows, bad]


@pytest.fixture(params=FORMS, ids=lambda form: str(form.name))
def form(request: pytest.FixtureRequest) -> Form:
    found: Form = request.param
    return found


def only(forms: Iterable[Form]) -> pytest.MarkDecorator:
    """A test of some formats: others have no ids, so that equal rows are jobs of their own, or jobs without devices."""
    return pytest.mark.parametrize("form", list(forms), ids=lambda form: str(form.name), indirect=True)


def write(folder: Path, text: str) -> Path:
    path = folder / "any"
    path.write_text(text)
    return path


def test_good_rows_are_used_in_any_order(form: Form, tmp_path: Path) -> None:
    rows = [form.row(at) for at in range(1, GOOD + 1)]
    forward = read(write(tmp_path, form.text(rows)))
    assert find_format(tmp_path / "any") == form.name
    assert forward == (GOOD, {}, {})
    if form.name not in ("openb-nodes", "catalog", "gen_parallel", "philly"):
        first = read_trace(tmp_path / "any").records
        assert read_trace(write(tmp_path, form.text(rows[::-1]))).records == first


@pytest.mark.parametrize("value", ["-7", "nan", "inf"])
def test_times_and_amounts_that_make_no_sense_are_counted_with_their_line(
    form: Form, tmp_path: Path, value: str
) -> None:
    assert form.time_field is not None
    used, dropped, lines = read(write(tmp_path, form.text(spoil(form, form.time_field, value))))
    assert (used, sum(dropped.values())) == (GOOD, 1)
    assert list(lines.values()) == [[GOOD + 2]]


def test_what_is_no_number_is_refused_with_its_line(form: Form, tmp_path: Path) -> None:
    assert form.time_field is not None
    path = write(tmp_path, form.text(spoil(form, form.time_field, "soon")))
    with pytest.raises(RejectedError) as refusal:
        read(path)
    assert refusal.value.reason.subject == f"any, line {GOOD + 2}"


@only(form for form in FORMS if form.id_field is not None)
def test_a_second_row_of_an_id_is_counted(form: Form, tmp_path: Path) -> None:
    rows = [form.row(at) for at in (1, 2, 2)]
    used, dropped, lines = read(write(tmp_path, form.text(rows)))
    assert (used, dropped, lines) == (2, {"id was there before": 1}, {"id was there before": [4]})


@only(form for form in FORMS if form.size_field is not None)
def test_no_devices_where_there_must_be_some_is_counted(form: Form, tmp_path: Path) -> None:
    assert form.size_field is not None
    used, dropped, _ = read(write(tmp_path, form.text(spoil(form, form.size_field, "0"))))
    assert (used, sum(dropped.values())) == (GOOD, 1)


def test_a_row_that_is_cut_off_is_refused_with_its_line(form: Form, tmp_path: Path) -> None:
    rows = [form.row(1), form.row(2), form.row(3)[:3]]
    with pytest.raises(RejectedError) as refusal:
        read(write(tmp_path, form.text(rows)))
    assert refusal.value.reason.subject == "any, line 4"


def test_a_missing_column_makes_it_another_format_or_none(form: Form, tmp_path: Path) -> None:
    rows = [form.row(at)[1:] for at in (1, 2)]
    head = form.head if form.gap == " " else form.head.split(",", 1)[1]
    path = write(tmp_path, head + "".join(form.gap.join(row) + "\n" for row in rows))
    assert find_format(path) is None
    with pytest.raises(RejectedError, match="no trace of jobs in a format that is known"):
        read(path)


def test_a_packed_file_that_was_cut_is_refused_where_it_ends(form: Form, tmp_path: Path) -> None:
    rows = [form.row(at) for at in range(1, 4000)]
    packed = gzip.compress(form.text(rows).encode())
    path = tmp_path / "any"
    path.write_bytes(packed[: len(packed) * 2 // 3])
    with pytest.raises(RejectedError, match="cannot be read any further"):
        read(path)


@pytest.mark.parametrize("length", [5, 15])
def test_a_packed_file_of_which_nothing_is_left_is_not_passed_over_in_a_folder(tmp_path: Path, length: int) -> None:
    good = FORMS[2].text([FORMS[2].row(at) for at in range(1, GOOD + 1)])
    (tmp_path / "a").write_text(good)
    (tmp_path / "b").write_bytes(gzip.compress(good.encode())[:length])
    with pytest.raises(RejectedError) as refusal:
        list(find_traces(tmp_path, "muri"))
    assert refusal.value.reason.subject == "b, line 1"


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data + b"; J\xf6rg's machine\n" if data.startswith(b";") else data + b"\n\n",
    ],
    ids=["mark", "crlf", "remark"],
)
def test_marks_line_ends_and_remarks_of_other_systems_change_nothing(
    form: Form, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "any"
    path.write_bytes(change(form.text([form.row(at) for at in range(1, GOOD + 1)]).encode()))
    assert (find_format(path), read(path)) == (form.name, (GOOD, {}, {}))


@only(form for form in FORMS if form.gap == ",")
def test_a_table_may_stand_in_quotes_and_a_column_only_once(form: Form, tmp_path: Path) -> None:
    lines = [form.head.strip(), *(",".join(form.row(at)) for at in range(1, GOOD + 1))]
    quoted = ["".join(f'"{cell}",' for cell in line.split(","))[:-1] for line in lines]
    assert read(write(tmp_path, "\n".join(quoted))) == (GOOD, {}, {})
    twice = [f"{line},{line.split(',')[0]}" for line in lines]
    with pytest.raises(RejectedError, match="stands there more than once"):
        read(write(tmp_path, "\n".join(twice)))


def test_bytes_that_are_no_utf8_part_names_as_they_did(tmp_path: Path) -> None:
    path = tmp_path / "any"
    rows = [[*FORMS[1].row(at)[:-1], name] for at, name in enumerate(("J\xf6rg", "J\xe4rg"))]
    path.write_bytes(FORMS[1].text(rows).encode("latin-1"))
    assert [record.tenant for record in read_trace(path).records] == ["J\\xf6rg", "J\\xe4rg"]


def test_ten_times_the_rows_give_ten_times_the_records(form: Form, tmp_path: Path) -> None:
    used, dropped, _ = read(write(tmp_path, form.text([form.row(at) for at in range(1, 10 * GOOD + 1)])))
    assert (used, dropped) == (10 * GOOD, {})


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"node_id": "a", "event_time": -1, "event_type": "fault_start"}, "event_time is negative"),
        ({"node_id": "a", "event_time": 1e30, "event_type": "fault_end"}, "event_time is more than a hundred years"),
        ({"node_id": "a", "event_time": 1, "event_type": "fault"}, "event_type is neither start nor end"),
        ({"node_id": "a", "event_time": 10**400, "event_type": "fault_end"}, "event_time is more than a hundred years"),
        ({"node_id": "a", "event_time": 1, "event_type": ["fault"]}, "event_type is neither start nor end"),
        ({"node_id": {}, "event_time": 1, "event_type": "fault_end"}, "node_id names no server"),
        ({"node_id": "a", "event_time": 1}, "is no event"),
        ([], "is no event"),
    ],
)
def test_faults_that_make_no_sense_are_counted(tmp_path: Path, event: object, reason: str) -> None:
    good = [
        {"node_id": "b", "event_time": at, "event_type": kind} for at, kind in ((1, "fault_start"), (2, "fault_end"))
    ]
    outages = read_faults(write(tmp_path, json.dumps([*good, event])))
    assert (len(outages.all), outages.dropped) == (1, {reason: 1})


def test_faults_in_endless_brackets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="is no JSON"):
        read_faults(write(tmp_path, "[" * 200_000 + "]" * 200_000))


@only(form for form in FORMS if form.name in ("muri", "chronus", "acme", "gen_parallel", "swf"))
def test_numbers_are_one_id_however_many_zeros_they_begin_with(form: Form, tmp_path: Path) -> None:
    rows = [["7", *form.row(1)[1:]], ["007", *form.row(2)[1:]]]
    assert read(write(tmp_path, form.text(rows)))[:2] == (1, {"id was there before": 1})


def test_a_time_of_day_elsewhere_is_the_instant_that_it_is(tmp_path: Path) -> None:
    rows = ["2020-01-01 09:00:00,5,1,a", "2020-01-01T17:30:00+08:00,5,1,b", "2020-01-01T09:00:10Z,5,1,c"]
    records = read_trace(write(tmp_path, FORMS[1].head + "\n".join(rows) + "\n")).records
    assert [(record.tenant, record.submit_ms) for record in records] == [("a", 0), ("c", 10_000), ("b", 1_800_000)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_table_in_wide_letters_is_read_as_any_other(
    form: Form, tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "any"
    path.write_bytes(pack(form.text([form.row(at) for at in range(1, GOOD + 1)]).encode(encoding)))
    assert (find_format(path), read(path)) == (form.name, (GOOD, {}, {}))


@only(form for form in FORMS if form.gap == ",")
def test_a_field_that_no_table_has_is_refused_with_its_line(form: Form, tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="is no row of a table") as refusal:
        read(write(tmp_path, form.text(spoil(form, 0, "9" * 200_000))))
    assert refusal.value.reason.subject == f"any, line {GOOD + 2}"


@only(form for form in FORMS if form.size_field is not None)
def test_more_devices_than_there_can_be_are_counted(form: Form, tmp_path: Path) -> None:
    assert form.size_field is not None
    used, dropped, _ = read(write(tmp_path, form.text(spoil(form, form.size_field, "1e30"))))
    assert (used, sum(dropped.values())) == (GOOD, 1)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("chronus", {6: "-7"}, "expect_time_list is no time"),
        ("chronus", {6: "3-nan"}, "expect_time_list is not finite"),
        ("chronus", {7: "str"}, "job_type is neither strict nor soft nor best effort"),
        ("muri", {3: "-5", 5: "-20"}, "iterations is negative"),
        ("acme", {2: "-8", 3: "-0.5"}, "num_iteration is negative"),
        ("openb-pods", {5: "9", 6: "8"}, "is deleted before it is created"),
    ],
)
def test_times_that_only_look_as_if_they_made_sense_are_counted(
    tmp_path: Path, name: str, change: dict[int, str], reason: str
) -> None:
    form = next(each for each in FORMS if each.name == name)
    bad = [change.get(at, cell) for at, cell in enumerate(form.row(GOOD + 1))]
    rows = [*(form.row(at) for at in range(1, GOOD + 1)), bad]
    assert read(write(tmp_path, form.text(rows))) == (GOOD, {reason: 1}, {reason: [GOOD + 2]})


def _swf(fields: int, first: str = "") -> str:
    form = next(each for each in FORMS if each.name == "swf")
    return form.head + first + form.text([form.row(at)[:fields] for at in range(1, GOOD + 1)])


def _semicolons(form: Form) -> str:
    return form.text([form.row(1)]).replace(",", ";")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("swf", _swf(17), "lacks one of the 18 fields of format swf"),
        ("muri", _semicolons(FORMS[2]), "names the columns of format muri, but not with commas"),
        ("philly", FORMS[1].text([FORMS[1].row(1)]).replace(",", "\t"), "names the columns of format philly"),
        ("infinitehbd", '[{"node_id": "a", "event_time": 1}]', "lacks a key of format infinitehbd"),
    ],
)
def test_a_file_that_was_meant_to_be_of_a_format_is_not_passed_over_in_a_folder(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    (tmp_path / "any").write_text(text)
    (tmp_path / "other").write_text("and this was not\n")
    with pytest.raises(RejectedError, match=words) as refusal:
        list(find_traces(tmp_path, name))
    assert refusal.value.reason.subject == "any, line 1"


@pytest.mark.parametrize("first", ["1 2 3\n", " ".join(["soon"] * 18) + "\n"], ids=["short", "words"])
def test_a_spoilt_first_job_does_not_hide_a_file(tmp_path: Path, first: str) -> None:
    path = write(tmp_path, _swf(18, first))
    assert find_format(path) == "swf"
    with pytest.raises(RejectedError) as refusal:
        read(path)
    assert refusal.value.reason.subject == "any, line 2"


def test_a_file_that_nobody_can_open_is_told(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match="cannot be read"):
        read_trace(tmp_path / "gone")
