"""The table of commands is true, light, and every outcome has its documented exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from muster.cli.commands import COMMANDS, cli
from muster.cli.main import run_command

HEAVY = ("starlette", "uvicorn", "muster.world", "muster.kernel", "muster.api", "muster.control", "sqlite3")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_entry_leads_to_its_command(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.get_short_help_str(200).startswith(COMMANDS[name].summary.rstrip("."))


def test_the_overview_imports_no_command_and_a_listing_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from muster.cli.main import run_command; run_command({arguments});"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )
    for arguments, unwanted in ((["--help"], ("muster.cli.jobs", "http.client", *HEAVY)), (["ls"], HEAVY)):
        program = [sys.executable, "-c", code.format(arguments=arguments)]
        ran = subprocess.run(program, capture_output=True, text=True, env={"MUSTER_HOME": str(tmp_path)}, check=True)
        loaded = ran.stderr.splitlines()[-1].split()
        assert not set(unwanted) & set(loaded)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["ls"], 3, "error[M309]: no server answers at"),
        (["run", "--memory", "64GB!", "--", "x"], 2, "error[M102]: size '64GB!'"),
        (["run", "--gang", "-1", "--", "x"], 2, "error[M102]: gang '-1'"),
        (["run", "--limit", "soon", "--", "x"], 2, "error[M102]: duration 'soon'"),
        (["run", "--env", "SURELY_NOT_SET_HERE", "--", "x"], 2, "error: --env SURELY_NOT_SET_HERE"),
        (["run"], 2, "error: Missing argument"),
        (["wait", "seven"], 2, "error: Invalid value"),
        (["quota", "set", "a", "gold"], 2, "error: 'gold' is not a line"),
        (["quota", "set", "a"], 2, "error: say what to set"),
        (["qqqqq"], 2, "error: there is no command 'qqqqq'; `muster --help`"),
        (["nods"], 2, "error: there is no command 'nods'; did you mean nodes?"),
        (["tier"], 3, "error[M309]: no server answers at"),
    ],
)
def test_errors_have_one_form_and_stable_exit_codes(
    arguments: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    assert run_command(arguments) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(words)
    assert "\nhelp: " in told.err


def test_home_is_an_option_of_all_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSTER_HOME", "elsewhere")
        assert run_command(["--home", str(tmp_path / "mine"), "ls"]) == 3
    assert str(tmp_path / "mine") in capsys.readouterr().err


def test_version_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["version"]) == 0
    assert capsys.readouterr().out.startswith("muster ")
