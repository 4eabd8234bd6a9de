"""The openb adapter: units, models that may be named twice, and what is left out of files that are wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from muster.model.errors import RejectedError
from muster.simulator.traces.formats import find_format, find_traces
from muster.simulator.traces.openb import NODES, PODS, read_nodes, read_pods
from muster.units import Resources

NODE_HEAD = "sn,cpu_milli,memory_mib,gpu,model\n"
POD_HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time\n"
SHORT_HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


def write(folder: Path, text: str, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_amounts_and_models(tmp_path: Path) -> None:
    rows = "p1,12000,16,1,460,B|A|B,10,25\np2,1000,8,8,1000,,5,5\np0,500,1,0,0,A,5,6\n"
    share, whole, plain = sorted(read_pods(write(tmp_path, POD_HEAD + rows)).records, key=lambda pod: -pod.cpu_milli)
    assert (share.gpus, share.gpu_milli, share.models) == (0, 460, ("A", "B"))
    assert (share.memory_bytes, share.submit_ms, share.duration_ms) == (16 * 2**20, 10_000, 15_000)
    assert (whole.gpus, whole.gpu_milli, whole.models) == (8, 0, ())
    assert (plain.gpus, plain.gpu_milli, plain.models) == (0, 0, ()), "without a GPU no model matters"


def test_a_list_of_five_columns_is_one_too_and_formats_are_found_by_columns(tmp_path: Path) -> None:
    packed = tmp_path / "nodes"
    packed.write_bytes(gzip.compress((SHORT_HEAD + "p1,1,1,1,1000\n").encode()))
    write(tmp_path, NODE_HEAD + "n1,1,1,1,A\n", "pods.csv")
    assert (find_format(packed), find_format(tmp_path / "pods.csv")) == (PODS, NODES)
    assert [stem for stem, _ in find_traces(tmp_path, PODS)] == ["nodes"]
    assert read_pods(packed).records[0].gpus == 1


def test_nodes_without_devices_are_left_out_and_the_rest_is_by_name(tmp_path: Path) -> None:
    reading = read_nodes(write(tmp_path, NODE_HEAD + "n2,64000,2,2,P\nn1,8000,1,1,T\nc,1,1,0,\nn1,1,1,1,T\n"))
    assert [node.name for node in reading.nodes] == ["n1", "n2"]
    assert reading.nodes[1].capacity == Resources(2, 64_000, 2 * 2**20)
    assert reading.dropped == {"no GPU of a model": 1, "id was there before": 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,1,1,1,1000", "id was there before"),
        ("b,-1,1,1,1000", "cpu_milli is not a count"),
        ("b,1,1,1,0", "nothing is asked of a GPU"),
        ("b,1,1,2,500", "a share of several GPUs"),
        ("b,0,0,0,0", "nothing is asked for"),
        ("b,nan,1,1,1000", "cpu_milli is not finite"),
        ("b,1,1,0.5,1000", "num_gpu is not a count"),
    ],
)
def test_what_makes_no_sense_is_left_out_and_counted(tmp_path: Path, row: str, reason: str) -> None:
    reading = read_pods(write(tmp_path, f"{SHORT_HEAD}a,1,1,1,1000\n{row}\n"))
    assert (len(reading.records), reading.dropped) == (1, {reason: 1})


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        (SHORT_HEAD + "a,much,1,1,1000\n", 2, "not a number"),
        (SHORT_HEAD + "a,1,1,1,1000\nb,1\n", 3, "fields"),
        (SHORT_HEAD, 1, "no pod"),
        (SHORT_HEAD.replace("num_gpu", "gpus"), 1, "no column num_gpu"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(tmp_path: Path, text: str, line: int, word: str) -> None:
    with pytest.raises(RejectedError) as refusal:
        read_pods(write(tmp_path, text, "t.csv"))
    assert f"t.csv, line {line}" in refusal.value.reason.subject
    assert word in refusal.value.reason.detail


def test_a_packed_list_that_ends_in_the_middle_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress((SHORT_HEAD + "".join(f"p{n},{n},1,1,1000\n" for n in range(5000))).encode())
    path = tmp_path / "cut"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RejectedError, match="cannot be read any further"):
        read_pods(path)
