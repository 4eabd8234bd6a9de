"""What a machine says of itself in its home: written when it is in order, read as it is, refused otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.model.errors import RejectedError
from muster.model.node import PLAIN, Place, Spot, Traits
from muster.sdk.node_file import NodeFile, read_node_file, write_node_file
from muster.units import Resources

WHOLE = NodeFile("h100", "eu", "alpha", "b1", "r1", {"zone": "a", "disk": "nvme"}, ["spot", "spot", "old"])
FOUND = Resources(gpus=0, cpu_milli=2000, memory_bytes=2**30)


def test_what_is_written_is_read_and_becomes_traits(tmp_path: Path) -> None:
    path = tmp_path / "node.json"
    assert read_node_file(path).traits() == PLAIN
    write_node_file(path, WHOLE)
    assert read_node_file(path) == WHOLE
    labels = (("disk", "nvme"), ("zone", "a"))
    assert WHOLE.traits() == Traits("h100", Place("eu", "alpha", "b1", "r1"), labels, ("old", "spot"))


def test_a_spot_of_a_torus_is_written_as_people_write_it() -> None:
    assert NodeFile(torus="pod-1", torus_size="4x4x2", spot="0x3x1").traits().spot == Spot(
        "pod-1", (4, 4, 2), (0, 3, 1)
    )


@pytest.mark.parametrize("content", [NodeFile(torus="pod-1"), NodeFile(torus="pod-1", torus_size="4x4", spot="0x0x0")])
def test_half_a_spot_is_refused(content: NodeFile) -> None:
    with pytest.raises(RejectedError, match="three sides such as 4x4x2"):
        content.traits()


@pytest.mark.parametrize("text", ["{", '{"flavour": "x"}', '{"labels": ["a"]}', "\xff"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "node.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(RejectedError, match=r"node\.json"):
        read_node_file(path)


@pytest.mark.parametrize(
    "content", [NodeFile("no good"), NodeFile(cluster="a/b"), NodeFile(labels={"k": "v w"}), NodeFile(capacity="gpu=8")]
)
def test_what_makes_no_sense_is_not_written(tmp_path: Path, content: NodeFile) -> None:
    path = tmp_path / "node.json"
    with pytest.raises(RejectedError, match=r"M10[13]"):
        write_node_file(path, content)
    assert not path.exists()


@pytest.mark.parametrize(
    ("text", "capacity"),
    [
        ("", FOUND),
        ("gpus=8", Resources(8, 2000, 2**30)),
        ("gpus=8,cpus=4,memory=16Gi", Resources(8, 4000, 2**34)),
        ("cpus=0.5", Resources(0, 500, 2**30)),
    ],
)
def test_capacity_is_found_and_may_be_declared(text: str, capacity: Resources) -> None:
    assert NodeFile(capacity=text).capacity_of(FOUND) == capacity


@pytest.mark.parametrize("text", ["gpu=8", "gpus", "gpus=x", "memory=1Zi", "8"])
def test_a_capacity_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(RejectedError, match="capacity"):
        NodeFile(capacity=text).capacity_of(FOUND)
