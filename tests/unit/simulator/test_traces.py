"""Adapters of published traces: units, order, what is left out and counted, and what is refused with its line.

All files here are made up; none is taken from a trace.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from muster.model.errors import RejectedError
from muster.simulator.traces.faults import Outage, read_faults
from muster.simulator.traces.formats import find_format, find_traces, read_trace

PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
MURI = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,priority\n"
CHRONUS = (
    "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,"
    "best_effort,job_type\n"
)
ACME = "job_id,arrival_time,num_iteration,iteration_computing_time,gpu_workers,gpu_per_worker\n"
PARALLEL = "u_id,user,gpu_num,cpu_num,node_num,interval,run_time,wall_time,new_status\n"
SWF_TAIL = "-1 -1 -1 120 -1 1 7 2 3 -1 1 -1 -1"


def write(folder: Path, text: str, name: str = "any.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_philly_is_sorted_and_equal_rows_are_jobs_of_their_own(tmp_path: Path) -> None:
    rows = "2020-01-02 00:00:10,66.5,2,133.0,b\n2020-01-02 00:00:00,5,1,5,a\n2020-01-02 00:00:00,5,1,5,a\n"
    reading = read_trace(write(tmp_path, PHILLY + rows))
    assert [(r.submit_ms, r.duration_ms, r.gpus, r.tenant) for r in reading.records] == [
        (0, 5000, 1, "a"),
        (0, 5000, 1, "a"),
        (10_000, 66_500, 2, "b"),
    ]
    assert reading.dropped == {}


def test_muri_is_in_milliseconds_and_the_run_time_is_iterations_times_their_time(tmp_path: Path) -> None:
    reading = read_trace(write(tmp_path, MURI + "0,4,1000,50,vgg,16,9,1,20,0\n1,8,3000,7,bert,4,9,1,100,1\n"))
    assert [(r.submit_ms, r.duration_ms, r.gpus, r.name) for r in reading.records] == [
        (0, 1000, 4, "vgg"),
        (2000, 700, 8, "bert"),
    ]


def test_chronus_is_in_minutes_and_a_deadline_counts_from_the_submit(tmp_path: Path) -> None:
    rows = "0,u,1,10,5,m,2,8,3,10,0,strict\n1,u,0,11,5,m,2,8,3,10,0,strict\n2,u,2,12,5,m,2,8,3,10,1,best\n"
    reading = read_trace(write(tmp_path, CHRONUS + rows))
    strict, best = reading.records
    assert (strict.submit_ms, strict.duration_ms, strict.tier) == (0, 120_000, "strict")
    assert strict.deadline_ms == 180_000
    assert best.deadline_ms is None
    assert reading.dropped == {"asks for no GPU": 1}


def test_acme_counts_nodes_of_gpus_and_iterations_of_half_seconds(tmp_path: Path) -> None:
    reading = read_trace(write(tmp_path, ACME + "0,0.0,208,0.5,8,8.0\n1,3,10,0.5,0,8.0\n"))
    assert [(r.duration_ms, r.gpus) for r in reading.records] == [(104_000, 64)]
    assert reading.dropped == {"asks for no GPU": 1}


def test_gen_parallel_adds_up_intervals_of_rows_that_are_left_out_too(tmp_path: Path) -> None:
    rows = "0,1,0,64,2,0,233,300,Pass\n1,1,2,0,1,5,-4,300,Pass\n2,1,2,0,1,7,11,0,Killed\n"
    reading = read_trace(write(tmp_path, PARALLEL + rows))
    assert [(r.submit_ms, r.gpus, r.limit_ms, r.status) for r in reading.records] == [
        (0, 0, 300_000, "Pass"),
        (12_000, 2, None, "Killed"),
    ]
    assert reading.dropped == {"run_time is negative": 1}


def test_swf_knows_remarks_unknowns_and_fields_behind_the_last(tmp_path: Path) -> None:
    text = f"; Version: 2\n5 100 0 60 4 {SWF_TAIL}\n6 130 0 -1 4 {SWF_TAIL}\n7 140 0 9 0 {SWF_TAIL} extra\n"
    reading = read_trace(write(tmp_path, text, "x"))
    (record,) = reading.records
    assert (record.submit_ms, record.duration_ms, record.gpus, record.limit_ms) == (0, 60_000, 4, 120_000)
    assert (record.user, record.name, record.tenant) == ("7", "3", "1")
    assert reading.dropped == {"run time is not known": 1, "asks for no processor": 1}
    assert reading.lines == {"run time is not known": [3], "asks for no processor": [4]}
    assert record.wait_ms == 0


def test_outages_in_days_that_overlap_are_one(tmp_path: Path) -> None:
    events: list[tuple[str, object, str]]
    events = [("a", 1.0, "fault_start"), ("a", 2.0, "fault_start"), ("a", 2.5, "fault_end"), ("a", 3.0, "fault_end")]
    events += [("b", 0.5, "fault_end"), ("b", 4.0, "fault_start"), ("c", "x", "fault_end")]
    items = [{"node_id": node, "event_time": at, "event_type": kind} for node, at, kind in events]
    outages = read_faults(write(tmp_path, json.dumps(items)))
    assert outages.all == [Outage(86_400_000, "a", 3 * 86_400_000)]
    assert outages.dropped == {
        "overlaps another": 1,
        "ends without a start": 1,
        "never ends": 1,
        "event_time is not a number": 1,
    }


def test_a_server_that_never_comes_back_is_no_outage_to_play(tmp_path: Path) -> None:
    items = [{"node_id": "a", "event_time": 1.0, "event_type": "fault_start"}]
    with pytest.raises(RejectedError, match=r"no outage that can be used; .*never ends"):
        read_faults(write(tmp_path, json.dumps(items)))


def test_a_format_is_found_by_columns_and_not_by_name(tmp_path: Path) -> None:
    packed = tmp_path / "swf" / "philly.swf"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress((MURI + "0,4,1000,50,vgg,16,9,1,20,0\n").encode()))
    write(tmp_path, PHILLY + "2020-01-02 00:00:10,66.5,2,133.0,b\n", "philly.csv")
    write(tmp_path, "nothing of this\n", "muri.csv")
    assert find_format(packed) == "muri"
    assert [stem for stem, _ in find_traces(tmp_path, "muri", "philly")] == ["philly", "philly-2"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("2020-01-02 00:00:10,-1,2,0,b", "duration is negative"),
        ("2020-01-02 00:00:10,nan,2,0,b", "duration is not finite"),
        ("2020-01-02 00:00:10,1e30,2,0,b", "duration is more than a hundred years"),
        ("2020-01-02 00:00:10,5,0,0,b", "asks for no GPU"),
        ("2020-01-02 00:00:10,5,1.5,0,b", "num_gpus is not a count"),
        ("yesterday,5,1,0,b", "timestamp is no date"),
    ],
)
def test_what_makes_no_sense_is_left_out_and_counted(tmp_path: Path, row: str, reason: str) -> None:
    path = write(tmp_path, PHILLY + "2020-01-02 00:00:10,1,2,0,b\n" + row + "\n")
    reading = read_trace(path)
    assert len(reading.records) == 1
    assert reading.dropped == {reason: 1}


def test_a_second_row_of_an_id_is_left_out(tmp_path: Path) -> None:
    reading = read_trace(write(tmp_path, MURI + 2 * "0,4,1000,50,vgg,16,9,1,20,0\n"))
    assert (len(reading.records), reading.dropped) == (1, {"id was there before": 1})


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        (PHILLY + "2020-01-02 00:00:10,much,2,0,b\n", 2, "not a number"),
        (PHILLY + "2020-01-02 00:00:10,5,2,0,b\n2020-01-02 00:00:10,5\n", 3, "fields"),
        (PHILLY, 1, "no job"),
        (PHILLY.replace("duration", "time"), 1, "no trace"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    with pytest.raises(RejectedError) as refusal:
        read_trace(write(tmp_path, text, "t.csv"))
    assert f"t.csv, line {line}" in refusal.value.reason.subject
    assert word in refusal.value.reason.detail


def test_a_packed_file_that_ends_in_the_middle_is_refused_where_it_ends(tmp_path: Path) -> None:
    whole = gzip.compress((PHILLY + "2020-01-02 00:00:10,5,2,0,b\n" * 20_000).encode())
    path = tmp_path / "cut"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RejectedError, match="cannot be read any further"):
        read_trace(path)
