"""`muster exec` of what is not there, or cannot be run, leaves as shells do."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.cli.entering import _become
from muster.model.errors import RejectedError
from muster.sdk.tasks import TaskProcess


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskProcess:
    monkeypatch.chdir(tmp_path)  # and back, since whoever enters goes there
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "broken").write_text("neither a program nor a script")
    (tmp_path / "broken").chmod(0o755)
    return TaskProcess(1, {"PATH": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("no-such", 127, "error: command not found: no-such"),
        ("./plain/no-such", 127, "error: command not found: ./plain/no-such"),
        ("./plain", 126, "error: cannot be run (Permission denied): ./plain"),
        ("plain", 126, "error: cannot be run (Permission denied): plain"),
        ("./broken", 126, "error: cannot be run (Exec format error): ./broken"),
    ],
)
def test_what_cannot_be_run(
    command: str, code: int, said: str, process: TaskProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _become((command,), process) == code
    told = capsys.readouterr()
    assert (told.err.splitlines()[0], told.out) == (said, "")
    assert told.err.splitlines()[1].startswith("help: ")


def test_a_directory_that_is_gone_is_no_missing_command(process: TaskProcess, tmp_path: Path) -> None:
    with pytest.raises(RejectedError) as caught:
        _become(("true",), TaskProcess(1, {}, tmp_path / "gone"))
    assert caught.value.reason.subject == "directory"
