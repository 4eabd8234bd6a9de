"""The README is true: every console block in it is run, in order, in one home, as a reader would.

Rules for whoever writes README.md:

- A block is fenced as ```console. A line that begins with `$ ` is a command, handed to `sh` as it stands; lines that
  begin with `> ` continue it. It must exit with 0.
- The other lines up to the next command are what it prints, on standard output or standard error. Each must occur in
  what it does print, in that order. `...` stands for anything, as a whole line or inside one.
- All blocks share one temporary directory, as the working directory and, under it, as MUSTER_HOME. The commands of
  this checkout come first in PATH. Job numbers count from 1.
- A block right after a line `<!-- not run -->` is left out.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from live import LiveHome

README: Final = Path(__file__).parents[2] / "README.md"
NOT_RUN: Final = "<!-- not run -->"
WRITTEN_BYTES: Final = 200
_BLOCK: Final = re.compile(r"(?P<before>[^\n]*\n)?```console\n(?P<body>.*?)^```", re.DOTALL | re.MULTILINE)


class Step(NamedTuple):
    """One command and the lines that it should print."""

    command: str
    expected: list[str]


def find_steps(text: str) -> Iterator[Step]:
    """The commands of a page, in order."""
    for block in _BLOCK.finditer(text):
        if (block["before"] or "").strip() == NOT_RUN:
            continue
        step: Step | None = None
        for line in block["body"].splitlines():
            if line.startswith("$ "):
                if step is not None:
                    yield step
                step = Step(line[2:], [])
            elif step is not None and line.startswith("> "):
                step = Step(f"{step.command}\n{line[2:]}", [])
            elif step is not None:
                step.expected.append(line)
        if step is not None:
            yield step


def find_missing(expected: list[str], printed: str) -> str | None:
    """The first piece that does not occur after the ones before it."""
    at = 0
    for line in expected:
        for piece in filter(None, (part.strip() for part in line.split("..."))):
            found = printed.find(piece, at)
            if found < 0:
                return piece
            at = found + len(piece)
    return None


def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    text = README.read_text()
    steps = list(find_steps(text))
    assert steps or len(text.encode()) <= WRITTEN_BYTES, "the README shows no command"
    live = LiveHome(tmp_path / "home")
    try:
        for step in steps:
            _run(step, live, tmp_path)
    finally:
        live.end_all()


def _run(step: Step, live: LiveHome, place: Path) -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", step.command],
        cwd=place,
        env=live.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, f"$ {step.command}\nleft with {ran.returncode}:\n{ran.stdout}"
    missing = find_missing(step.expected, ran.stdout)
    assert missing is None, f"$ {step.command}\ndoes not print {missing!r}:\n{ran.stdout}"


def test_the_rules_are_kept() -> None:
    page = (
        "words\n```console\n$ a\n> b\nx ... y\n...\n$ c\n```\n"
        "<!-- not run -->\n```console\n$ no\n```\n```sh\n$ no\n```\n"
    )
    assert list(find_steps(page)) == [Step("a\nb", ["x ... y", "..."]), Step("c", [])]


@pytest.mark.parametrize(
    ("printed", "missing"),
    [("x1 y\nmore", None), ("well x\ny", None), ("y x", "y"), ("y", "x")],
)
def test_lines_must_occur_in_order(printed: str, missing: str | None) -> None:
    assert find_missing(["x ... y", "..."], printed) == missing
