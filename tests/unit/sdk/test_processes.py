"""A process file is believed only while the process that wrote it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from muster.sdk.home import Home
from muster.sdk.processes import Note, find_server_process, find_start_time


def write_note(home: Home, pid: int, start_time: int) -> None:
    home.process_file("leader").write_bytes(msgspec.json.encode(Note(pid, start_time)))


def own_start_time() -> int:
    started = find_start_time(os.getpid())
    assert started is not None
    return started


def test_a_living_process_is_found(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_note(home, os.getpid(), own_start_time())
    process = find_server_process(home, "leader")
    assert process is not None
    with process:
        assert process.pid == os.getpid()
        assert not process.is_over_within(0)


def test_a_recycled_pid_is_somebody_else(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_note(home, os.getpid(), own_start_time() - 1)
    assert find_server_process(home, "leader") is None


def test_no_file_and_a_damaged_file_mean_nobody(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert find_server_process(home, "leader") is None
    home.process_file("leader").write_text("not JSON")
    assert find_server_process(home, "leader") is None


def test_a_process_that_ended_is_not_found_also_before_it_is_reaped(tmp_path: Path) -> None:
    home = Home(tmp_path)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = find_start_time(child.pid)
    assert started is not None
    write_note(home, child.pid, started)
    process = find_server_process(home, "leader")
    assert process is not None
    with process:
        process.end(signal.SIGKILL)
        assert process.is_over_within(60)
        assert find_server_process(home, "leader") is None
        child.communicate()
        process.end()  # gone, and that is no error
    assert find_server_process(home, "leader") is None
