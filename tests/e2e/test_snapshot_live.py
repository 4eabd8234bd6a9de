"""A job with a snapshot runs what was there when it was submitted, and its record says where it came from."""

from __future__ import annotations

from pathlib import Path

from live import LiveHome


def test_a_job_runs_the_tree_as_it_was(live: LiveHome, tmp_path: Path) -> None:
    tree = tmp_path / "project"
    tree.mkdir()
    (tree / "say").write_text("#!/bin/sh\necho first; basename $PWD\n")
    (tree / "say").chmod(0o755)
    (tree / "out").symlink_to("/etc/passwd")
    words = ["run", "--hold", "-d", "--snapshot", "--workdir", str(tree), "--env", "LR=3"]
    ran = live.muster(*words, "--", "./say")
    assert "1 file" in ran.stderr
    assert "left out: out: a link that leads outside" in ran.stderr
    (tree / "say").write_text("#!/bin/sh\necho second\n")
    job = ran.stdout.strip()
    live.muster("release", job)
    live.muster("wait", job)
    assert live.muster("logs", job).stdout == "first\nproject\n"
    shown = live.muster("show", job).stdout
    assert str(tree) in shown
    assert "1 left out" in shown
    assert "LR" in shown
