"""Hostile words and files, through the real command line into real processes: nothing is executed that was not meant,
nothing is read that is not the job's, and every refusal has a code."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import pytest
from live import LiveHome

from muster.engines.local.layout import log_path

WORDS = [
    "$(touch SPRUNG)",
    "`touch SPRUNG`",
    "; touch SPRUNG",
    "| touch SPRUNG",
    "&& touch SPRUNG",
    "\ntouch SPRUNG\n",
    "$'\\ntouch SPRUNG'",
    "--help",
    "-c",
    "--",
    "a\u202eb",
    "*",
    "~",
    "${PATH}",
]


def test_no_shell_reads_a_word_of_a_job(live: LiveHome, tmp_path: Path) -> None:
    ran = live.muster("run", "--workdir", str(tmp_path), "--", "printf", "%s\\0", *WORDS)
    assert ran.stdout.split("\0")[:-1] == WORDS
    assert list(tmp_path.iterdir()) == []


NAMED = ("--name", "--tenant", "--tier", "--booking", "--image", "--notify", "--flavor")
NAMELESS = ("$(touch SPRUNG)", "--privileged", "-v/:/host", "../../etc", "a\u202eb", "x" * 4096, "a b")
PAIRS = [pair for pair in product(NAMED, NAMELESS) if pair != ("--image", "../../etc")]
"""An image has slashes and dots, and is one word of podman's."""


@pytest.mark.slow
@pytest.mark.parametrize(("option", "word"), PAIRS)
def test_a_word_that_is_no_name_names_nothing(live: LiveHome, option: str, word: str) -> None:
    ran = live.muster("run", f"{option}={word}", "--", "true", code=2)
    assert "error[M1" in ran.stderr
    assert "Traceback" not in ran.stderr


SCRIPTS = {
    "a name that is a command": "#SBATCH --job-name=$(touch$IFS$9SPRUNG)",
    "two flags in one": "#SBATCH --job-name=a --wrap='touch SPRUNG'",
    "an output elsewhere": "#SBATCH --output=../../../../etc/cron.d/sprung",
    "a directory that is a command": "#SBATCH --chdir=`touch SPRUNG`",
    "a variable that loads a library": "#SBATCH --export=LD_PRELOAD=/tmp/evil.so,PATH=/tmp",
    "a carriage return": "#SBATCH --job-name=a\r#SBATCH --wrap=touch",
    "a NUL": "#SBATCH --job-name=a\0b",
    "a quote that never ends": "#SBATCH --comment='",
    "a number that is none": "#SBATCH --ntasks=1e309",
    "a huge number": "#SBATCH --array=0-999999999999",
}


@pytest.mark.slow
@pytest.mark.parametrize("line", SCRIPTS.values(), ids=SCRIPTS)
def test_a_line_of_sbatch_is_read_and_never_run(live: LiveHome, tmp_path: Path, line: str) -> None:
    script = tmp_path / "job.sh"
    script.write_bytes(f"#!/bin/sh\n{line}\ntrue\n".encode())
    env = {**live.env, "PWD": str(tmp_path)}
    ran = subprocess.run(
        ["muster", "sbatch", "--test-only", "job.sh"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode in (0, 2), ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 0 or "error[M1" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["job.sh"]


@pytest.mark.parametrize("aim", ["/etc/passwd", "token"])
def test_a_log_that_became_a_link_leads_nowhere(live: LiveHome, aim: str) -> None:
    number = int(live.muster("run", "-d", "--", "echo", "mine").stdout)
    live.muster("wait", str(number))
    log = log_path(live.home.engine_root, number, 0, 1)
    log.unlink()
    log.symlink_to(aim if aim.startswith("/") else live.root / aim)
    ran = live.muster("logs", str(number))
    assert ran.stdout == ""
    log.unlink()


def test_a_directory_that_is_a_link_to_nowhere_is_an_end_with_words(live: LiveHome, tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    ran = live.muster("run", "--workdir", str(tmp_path / "gone"), "--", "true", code=126)
    job = ran.stderr.split()[1]
    said = f"exit code 126: cannot enter workdir {tmp_path / 'gone'}"
    assert said in ran.stderr
    assert said in live.muster("wait", job, code=126).stderr
    assert said in live.muster("show", job).stdout
    assert "cannot enter workdir" in live.muster("story", job).stdout


def test_the_tasks_of_an_array_that_cannot_be_started_say_why(live: LiveHome) -> None:
    ran = live.muster("run", "--array", "3", "--", "no-such-program", code=1)
    assert "failed: 3 of 3 tasks: command not found: no-such-program" in ran.stderr


@pytest.mark.parametrize(
    "words", [[b"\xff"], [b"echo", b"\xe9"], [b"--name=\xff", b"true"], [b"--env=A=\xff", b"true"]], ids=repr
)
def test_words_that_are_no_text_are_refused_in_words(live: LiveHome, words: list[bytes]) -> None:
    options = [word for word in words if word.startswith(b"--")]
    command = [word for word in words if word not in options]
    ran = subprocess.run([b"muster", b"run", *options, b"--", *command], env=live.env, capture_output=True, timeout=120)
    assert ran.returncode == 2
    assert b"error[M1" in ran.stderr
    assert b"Traceback" not in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("ls",), ("nodes",), ("why", "1"), ("doctor",), ("explain", "M201"), ("run", "--help")], ids=" ".join
)
def test_a_locale_without_utf_8_is_spoken_to_as_well_as_can_be(live: LiveHome, words: tuple[str, ...]) -> None:
    env = {**live.env, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "LANG": "C"}
    ran = subprocess.run(["muster", *words], env=env, capture_output=True, timeout=120)
    assert b"Traceback" not in ran.stderr


def test_output_of_whatever_bytes_comes_through_in_any_locale(live: LiveHome) -> None:
    env = {**live.env, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = ["muster", "run", "--", "printf", "caf\\303\\251 \\377\\000"]
    ran = subprocess.run(command, env=env, capture_output=True, timeout=120)
    assert ran.stdout == b"caf\xc3\xa9 \xff\0"
