"""How long a start is waited for, and what is said meanwhile; and that an end does not wait for who is silent."""

from __future__ import annotations

import fcntl
import socket
from pathlib import Path

import pytest
from served import Serve

from muster import __version__
from muster.cli import server, starting
from muster.cli.failing import ServerFailedError
from muster.cli.main import run_command
from muster.cli.server import _find_running
from muster.cli.starting import COMPILING, READY_WITHIN_S, SLOW_AFTER_S, _Patience
from muster.sdk.ear import EAR
from muster.sdk.home import Address, Home
from muster.wire.views import Health


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    made = Hands()
    monkeypatch.setattr(starting, "time", made)
    return made


def test_a_slow_start_is_told_once_and_ends(tmp_path: Path, hands: Hands, capsys: pytest.CaptureFixture[str]) -> None:
    patience = _Patience(Home(tmp_path))
    hands.now = SLOW_AFTER_S
    patience.look()
    assert not capsys.readouterr().err
    hands.now += 0.1
    for _ in range(2):
        patience.look()
    assert capsys.readouterr().err.count("not ready yet") == 1
    hands.now = READY_WITHIN_S + 0.1
    with pytest.raises(ServerFailedError, match="not ready after"):
        patience.look()


def test_a_machine_that_compiles_is_said_to_and_has_its_time(
    tmp_path: Path, hands: Hands, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path)
    patience = _Patience(home)
    with home.compile_lock_file.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(3):
            hands.now += READY_WITHIN_S
            patience.look()
    assert capsys.readouterr().err == f"{COMPILING}\n"
    hands.now += READY_WITHIN_S
    patience.look()
    hands.now += 0.1
    with pytest.raises(ServerFailedError, match="not ready after"):
        patience.look()


def test_a_server_that_is_to_end_is_not_asked_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEALTH_WITHIN_S", 0.05)
    monkeypatch.setattr("muster.sdk.transport.SILENT_AFTER_S", 0.1)
    monkeypatch.setattr(EAR, "hear", lambda words: pytest.fail(f"it waits for longer: {words}"))
    home = Home(tmp_path)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        home.write_address(Address("127.0.0.1", deaf.getsockname()[1]))
        assert _find_running(home) == []


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (__version__, ""),
        ("0.0.9", f"it is version 0.0.9, this is {__version__}: `muster down` and `muster up` start the new one\n"),
    ],
)
def test_a_server_of_another_version_is_told_of(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: str, said: str
) -> None:
    monkeypatch.setattr(server, "start_missing", lambda *_: [])
    serve({"GET /v1/health": Health("ok", True, 1, version=version)})
    assert run_command(["up"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("already up")
    assert err == said
