"""Full log disk: tasks lose their output and nothing else; the server, other jobs and the journal go on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live import LiveHome

from muster.engines.local.layout import LOGS


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[LiveHome]:
    """A server whose logs are on a disk of their own, with room for a megabyte and five files."""
    live = LiveHome(tmp_path / "home")
    live.home.prepare()
    logs = live.home.engine_root / LOGS
    logs.mkdir(parents=True)
    size = "size=1m,nr_inodes=6,mode=0700"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(logs)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting a tmpfs is not permitted here: {done.stderr.strip()}")
    try:
        live.muster("up")
        yield live
    finally:
        live.end_all()
        subprocess.run(["umount", str(logs)], check=True)


@pytest.mark.slow
def test_a_full_log_disk_costs_output_and_nothing_else(cramped: LiveHome) -> None:
    big = 'head -c 3000000 /dev/zero; echo done > "$0"; exit 5'
    mark = cramped.root / "mark"
    ran = cramped.muster("run", "-d", "--", "sh", "-c", big, str(mark))
    cramped.muster("wait", ran.stdout.strip(), code=5)
    assert mark.read_text() == "done\n", "a task died of its log"
    jobs = [cramped.muster("run", "-d", "--", "sh", "-c", f"echo {n}; exit {n}").stdout.strip() for n in range(10, 18)]
    for number, job in enumerate(jobs, 10):
        cramped.muster("wait", job, code=number)
    assert "ok" in cramped.muster("status").stdout
    assert cramped.muster("logs", jobs[-1]).stdout == "", "there was room after all, so this test shows nothing"
