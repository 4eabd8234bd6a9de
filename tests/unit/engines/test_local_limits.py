"""What tasks may have: by control groups where the machine permits them, by looking elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.engines.local.ceilings import LOOK_S, Ceilings
from muster.engines.local.groups import Groups, find_groups
from muster.engines.local.layout import Key

KEY = Key(7, 1, 0)
MIB = 1 << 20
FAMILY = """
import os, sys
data = bytearray(64 << 20)
family = [os.fork(), os.fork()]
if all(family):
    print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def family() -> Iterator[int]:
    """A session of several processes that share 64 MiB; its leader's number."""
    command = [sys.executable, "-c", FAMILY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


@pytest.mark.parametrize(("most", "is_over"), [(48 * MIB, True), (128 * MIB, False)])
def test_pages_that_a_family_shares_count_once(family: int, most: int, is_over: bool) -> None:
    ceilings = Ceilings(None)
    ceilings.add(KEY, family, most, 0, now=0.0)
    assert ceilings.look(LOOK_S / 2) == []  # it is not time yet
    assert ceilings.look(LOOK_S) == ([KEY] if is_over else [])
    assert ("out of memory" in ceilings.remove(KEY)) is is_over
    assert ceilings.remove(KEY) == ""


def test_nobody_looks_at_who_asked_for_nothing() -> None:
    ceilings = Ceilings(None)
    ceilings.add(KEY, os.getpid(), 0, 4000, now=0.0)
    assert ceilings.look_at is None
    assert ceilings.remove(KEY) == ""


def fake_group(path: Path, controllers: str = "cpu memory pids") -> Path:
    """A directory that looks like a group, with the files that the system would put there."""
    path.mkdir(parents=True, exist_ok=True)
    for name in ("cgroup.procs", "memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.weight"):
        (path / name).touch()
    (path / "cgroup.kill").touch()
    for name in ("cgroup.controllers", "cgroup.subtree_control"):
        (path / name).write_text(controllers)
    (path / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")
    return path


def test_a_group_holds_a_task_to_what_it_asked_for(tmp_path: Path) -> None:
    group = fake_group(tmp_path / "place" / KEY.name)
    groups = Groups(tmp_path / "place")
    assert groups.enter(KEY.name, 4242, 64 * MIB, 2500)
    written = {path.name: path.read_text() for path in group.iterdir()}
    assert written["memory.max"] == str(64 * MIB)
    assert written["memory.swap.max"] == "0"
    assert written["cpu.weight"] == "250"
    assert written["cgroup.procs"] == "4242"
    assert not groups.leave(KEY.name)
    (group / "memory.events").write_text("oom 3\noom_kill 2\n")
    ceilings = Ceilings(groups)
    ceilings.add(KEY, 4242, 64 * MIB, 0, now=0.0)
    assert ceilings.look_at is None  # the system looks
    assert ceilings.remove(KEY) == "out of memory: the system ended it, and asked for 64Mi [M334]"


def test_a_group_that_cannot_be_made_leaves_the_looking_to_us(tmp_path: Path) -> None:
    ceilings = Ceilings(Groups(tmp_path))  # a plain directory: it has none of a group's files
    ceilings.add(KEY, os.getpid(), 1 << 50, 0, now=0.0)
    assert ceilings.look_at == LOOK_S
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("controllers", "is_found"), [("cpu memory pids", True), ("cpu pids", False), ("", False)])
def test_a_place_is_one_where_memory_can_be_bounded(tmp_path: Path, controllers: str, is_found: bool) -> None:
    fake_group(tmp_path / "delegated" / "ours", controllers)
    fake_group(tmp_path / "delegated", controllers)
    assert (find_groups(str(tmp_path / "delegated"), "ours") is not None) is is_found


def test_our_own_group_is_tried_and_then_the_top(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mounts").write_text("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice\n")
    top = tmp_path / "sys/fs/cgroup"
    assert find_groups("", "ours", tmp_path) is None
    for place in (top, top / "ours"):
        fake_group(place)
    fake_group(top / "user.slice", "cpu")
    assert find_groups("", "ours", tmp_path) is not None


def test_the_system_ends_what_is_above_its_ceiling() -> None:
    groups = find_groups("", f"muster-test-{os.getpid()}")
    if groups is None:
        pytest.skip("this machine lets us make no control group (version 2) that bounds memory")
    program = "import sys; sys.stdin.readline(); x = bytearray(256 << 20)"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as process:
        assert groups.enter(KEY.name, process.pid, 64 * MIB, 1000)
        process.communicate(b"go\n", timeout=60)
    assert process.returncode == -9
    assert groups.leave(KEY.name)
