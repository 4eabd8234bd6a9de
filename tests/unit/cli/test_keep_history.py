"""`muster up --keep-history`: for how long jobs are remembered is said once, kept in the home, and checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.cli.failing import ServerFailedError
from muster.cli.main import run_command
from muster.cli.starting import _keep_history
from muster.model.errors import RejectedError
from muster.sdk.home import HISTORY_KEPT_MS, Home
from muster.units import DAY_MS


def test_what_is_said_is_kept_for_the_next_leader(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.read_history_ms() == HISTORY_KEPT_MS == 90 * DAY_MS
    _keep_history(home, 30 * DAY_MS, is_down=True)
    assert Home(tmp_path).read_history_ms() == 30 * DAY_MS


def test_a_server_that_runs_does_not_change_its_mind(tmp_path: Path) -> None:
    home = Home(tmp_path)
    _keep_history(home, HISTORY_KEPT_MS, is_down=False)
    with pytest.raises(ServerFailedError, match="muster down"):
        _keep_history(home, DAY_MS, is_down=False)
    assert not home.history_file.exists()


def test_what_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    assert run_command(["up", "--keep-history", "10m"]) == 2
    assert "at least 1h" in capsys.readouterr().err
    assert run_command(["up", "--keep-history", "long"]) == 2
    assert not (tmp_path / "home").exists(), "a server was begun"
    home = Home(tmp_path)
    home.history_file.write_text("for ever\n")
    with pytest.raises(RejectedError):
        home.read_history_ms()
