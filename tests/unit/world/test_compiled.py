"""Compiled code is kept between processes, and never beyond an edit of anything that it was made from."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from muster.scheduler.placing import gang, many, single, terms
from muster.world import arena as at
from muster.world import index
from muster.world.compiled import IS_COMPILED, Entry, words_of

HEAD = "from muster.world.compiled import compiled\n"
FILES = {
    "lowest.py": "FACTOR = 2\n",
    "lower.py": HEAD + "from lowest import FACTOR\n@compiled\ndef times(x: int) -> int:\n    return FACTOR * x\n",
    "upper.py": HEAD + "from lower import times\n@compiled\ndef answer(x: int) -> int:\n    return times(x)\n",
}
PROGRAM = "import upper; print(upper.answer(10), sum(upper.answer.stats.cache_hits.values()))"


def ask(place: Path) -> tuple[int, int]:
    """The answer of a new process, and how many functions it found compiled."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_DISABLE_JIT": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=place, env=environment, capture_output=True, text=True, check=True
    )
    answer, hits = ran.stdout.split()
    return int(answer), int(hits)


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled here")
def test_an_edit_of_what_is_called_is_seen_and_nothing_else_compiles_anew(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert ask(tmp_path) == (20, 0)
    assert ask(tmp_path) == (20, 1), "what did not change is not compiled again"
    (tmp_path / "lowest.py").write_text("FACTOR = 3\n")
    assert ask(tmp_path) == (30, 0), "a number two files away"
    (tmp_path / "lower.py").write_text(FILES["lower.py"].replace("* x", "+ x"))
    assert ask(tmp_path) == (13, 0), "a function that is called"
    assert ask(tmp_path) == (13, 1)


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled here")
def test_compiled_code_uses_only_what_its_stamp_covers() -> None:
    """Numbers and compiled functions by name: a module in between would hide its edits."""
    seen = 0
    for module in (index, single, gang, many, terms):
        for function in vars(module).values():
            for name in function.py_func.__code__.co_names if hasattr(function, "py_func") else ():
                used = function.py_func.__globals__.get(name, 0)
                assert isinstance(used, int | tuple) or hasattr(used, "py_func"), name
                seen += 1
    assert seen > 100


def test_an_entry_leads_to_the_same_code() -> None:
    words = words_of(array("q", range(at.AT_MEMBERS + 64)))
    entry = Entry(single.lowest_devices)
    for count in (1, 2, 3, 2):
        assert entry.call(words, 0, count) == single.lowest_devices(words, 0, count)
    with pytest.raises(IndexError):
        entry.call(words, len(words), 1)
