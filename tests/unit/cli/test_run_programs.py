"""`muster run train.py`: a program in the job's directory is found there."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.cli.run import _spell_program


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("train.py", ("python3", "train.py")),
        ("prep.sh", ("sh", "prep.sh")),
        ("tool", ("./tool",)),
        ("notes.txt", ("notes.txt",)),
        ("sh", ("sh",)),
        ("missing.py", ("missing.py",)),
        ("./train.py", ("./train.py",)),
    ],
)
def test_a_program_is_spelt_as_it_can_be_run(tmp_path: Path, word: str, words: tuple[str, ...]) -> None:
    for name in ("train.py", "prep.sh", "notes.txt", "sh"):
        (tmp_path / name).write_text("")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    assert _spell_program(word, tmp_path) == words
