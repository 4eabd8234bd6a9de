"""What a shell does to a program's three streams and its directory: closed, full, left unread, removed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from live import LiveHome


def in_shell(live: LiveHome, line: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one line of bash, which fails with whatever in a pipe fails."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], env=live.env, cwd=where, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("line", ["muster explain", "muster nodes", "muster replay --from 1h"])
def test_whoever_has_read_enough_may_go(live: LiveHome, line: str) -> None:
    ran = in_shell(live, f"{line} | true")
    assert (ran.returncode, ran.stderr) == (0, "")


def test_whoever_follows_no_more_is_told_that_the_job_goes_on(live: LiveHome) -> None:
    ran = in_shell(live, "muster run -- seq 1 300000 | head -1")
    assert (ran.returncode, ran.stdout) == (141, "1\n")
    assert "detached; job " in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("line", ["muster explain", "muster run -- echo hi"])
def test_output_that_cannot_be_written_is_said(live: LiveHome, line: str) -> None:
    ran = in_shell(live, f"{line} > /dev/full")
    assert ran.returncode == 5
    assert ran.stderr.endswith("error: what this prints cannot be written: No space left on device\n")
    assert "Traceback" not in ran.stderr


def test_closed_streams_are_nowhere(live: LiveHome) -> None:
    assert in_shell(live, "muster run -- echo hi >&-").returncode == 0
    assert in_shell(live, "muster run -- echo hi <&- 2>&-").stdout == "hi\n"
    assert "there is no job in it" in in_shell(live, "muster submit - <&-").stderr


def test_a_terminal_that_lacks_signs_gets_others_and_a_program_all_of_them(live: LiveHome) -> None:
    node = in_shell(live, "muster nodes -o name").stdout.strip()
    in_shell(live, f"muster cordon {node} --reason 'gr\u00fc\u00df \u6f22'")
    people, programs = (
        subprocess.run(
            ["bash", "-c", f"muster nodes -o {output}"],
            env={**live.env, "PYTHONIOENCODING": "latin-1"},
            capture_output=True,
            timeout=120,
        )
        for output in ("wide", "csv")
    )
    in_shell(live, f"muster uncordon {node}")
    assert "gr\u00fc\u00df ?" in people.stdout.decode("latin-1")
    assert "gr\u00fc\u00df \u6f22" in programs.stdout.decode()


@pytest.mark.parametrize("line", ["muster run -- pwd", "muster submit job.yaml", "muster sbatch --wrap pwd"])
def test_a_directory_that_was_removed_is_named(live: LiveHome, tmp_path: Path, line: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    ran = in_shell(live, f"rmdir '{gone}'; {line}", gone)
    assert ran.returncode == 2
    assert "the directory you are in was removed" in ran.stderr.splitlines()[0]
