"""Compiled code of a server: where it is kept, and that whoever serves does not compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from muster.app import warming
from muster.app.warming import CODE_FOLDER, FOLDER_VARIABLE, choose_folder, load_code
from muster.sdk.home import Home
from muster.world.compiled import IS_COMPILED, ColdError

FUNCTION = "from muster.world.compiled import compiled\n@compiled\ndef twice(x: int) -> int:\n    return 2 * x\n"
ANSWER = "import lower; print(lower.twice(3), len(lower.twice.stats.cache_hits))"
KEPT = f"""
from muster.world.compiled import ColdError, only_kept
try:
    with only_kept():
        {ANSWER}
except ColdError:
    print("cold")
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def ask(place: Path, program: str, **environ: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env=os.environ | {"NUMBA_DISABLE_JIT": "0"} | environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


def test_code_is_kept_in_the_home_where_the_source_is_somebody_else_s(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ: dict[str, str] = {}
    choose_folder(home, environ, tmp_path)
    assert not environ, "beside the source there is room"
    monkeypatch.setattr("os.access", lambda *_: False)  # who runs the tests may write everywhere
    choose_folder(Home(tmp_path / "none"), environ, tmp_path)
    assert not environ, "a home that is not there is not begun with code"
    choose_folder(home, environ, tmp_path)
    assert environ == {FOLDER_VARIABLE: str(home.root / CODE_FOLDER)}
    environ = {FOLDER_VARIABLE: "/chosen"}
    choose_folder(home, environ, tmp_path)
    assert environ == {FOLDER_VARIABLE: "/chosen"}


def test_what_is_kept_is_loaded_and_nothing_is_started(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_compile_apart", lambda: pytest.fail("nothing was to be compiled"))
    ran: list[str] = []
    load_code(home, lambda: ran.append("one"), lambda: ran.append("other"))
    assert ran == ["one", "other"]
    assert not home.compile_lock_file.exists()


def test_what_is_not_kept_is_compiled_by_another_process_and_then_loaded(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[str] = []

    def part() -> None:
        if not kept:
            raise ColdError

    monkeypatch.setattr(warming, "_compile_apart", lambda: kept.append("compiled"))
    load_code(home, part)
    load_code(home, part)
    assert kept == ["compiled"]


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled here")
def test_only_what_is_kept_is_taken_by_whoever_says_so(tmp_path: Path) -> None:
    (tmp_path / "lower.py").write_text(FUNCTION)
    assert ask(tmp_path, KEPT) == "cold"
    assert ask(tmp_path, ANSWER) == "6 0"
    assert ask(tmp_path, KEPT) == "6 1"


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled here")
def test_with_no_place_to_keep_code_it_is_compiled_each_time(tmp_path: Path) -> None:
    (tmp_path / "lower.py").write_text(FUNCTION)
    nowhere = "from numba.core import caching; caching.CacheImpl._locator_classes = []; "
    assert ask(tmp_path, nowhere + ANSWER) == "6 0"
    assert ask(tmp_path, nowhere + ANSWER) == "6 0"
