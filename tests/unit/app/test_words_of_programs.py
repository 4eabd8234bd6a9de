"""The programs behind `muster` refuse words as the command line does: one cause, one fix, exit code 2."""

from __future__ import annotations

import pytest

from muster.app.__main__ import main


@pytest.mark.parametrize(
    ("words", "cause", "fix"),
    [
        (["backup"], "the following arguments are required: file", "muster backup --help"),
        (["sim", "--nodes", "many"], "argument --nodes: invalid int value: 'many'", "muster sim --help"),
        (["trace", "paint"], "argument WORD: invalid choice: 'paint'", "muster trace --help"),
    ],
)
def test_a_wrong_word_is_named_with_its_fix(
    words: list[str], cause: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    first, last = capsys.readouterr().err.splitlines()
    assert left.value.code == 2
    assert first.startswith(f"error: {cause}")
    assert last == f"help: {fix}"
