"""`login` and `logout`: what is kept, by whom it can be read, and what is refused before anything is sent."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import msgspec
import pytest
from served import Serve, Told

from muster.sdk.client import Client
from muster.sdk.home import Home
from muster.sdk.transport import Reply, Request, Transport
from muster.sdk.whereabouts import Address, Login, find_server, find_token
from muster.wire.access_views import Me
from muster.wire.views import Health, Problem

SERVER = "https://muster.example.org:8443"
REMOTE = Address("muster.example.org", 8443, is_tls=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MUSTER_TOKEN", raising=False)
    return Home(tmp_path / "home")


@pytest.fixture(autouse=True)
def trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket: whoever is named has a good certificate."""
    monkeypatch.setattr("muster.cli.login._check_trust", lambda address: None)  # noqa: ARG005 - as it is called


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_login_is_tried_and_kept_for_its_owner_alone(
    serve: Serve, told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serve({"GET /v1/me": Me("ann", [])})
    type_in(monkeypatch, "mst_1_secret\n")
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    assert told("login", "--server", SERVER) == f"logged in to {SERVER} as ann\n"
    home = Home(tmp_path / "home")
    assert home.find_login() == Login(REMOTE, "mst_1_secret")
    assert stat.S_IMODE(home.login_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert told("logout") == f"logged out of {SERVER}\n"
    assert told("logout") == "nobody was logged in\n"
    assert home.find_login() is None


def test_what_follows_speaks_to_that_server_with_that_token(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.prepare()
    home.write_address(Address("127.0.0.1", 1))
    assert (find_server(str(home.root)), find_token(str(home.root))) == (home.find_address(), home.read_token())
    home.write_login(Login(REMOTE, "mine"))
    seen: list[tuple[Address | None, str]] = []

    def answer(transport: Transport, request: Request) -> Reply:
        seen.append((transport._find_address(), transport._read_token()))
        return Reply(200, {}, b'{"status":"ok","seq":1,"leader":true,"version":"0","lag_ms":0}')

    monkeypatch.setattr(Transport, "_try", answer)
    with Client() as client:
        assert isinstance(client.health(), Health)
    monkeypatch.setenv("MUSTER_TOKEN", "once")
    with Client() as client:
        client.health()
    assert seen == [(REMOTE, "mine"), (REMOTE, "once")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--server", "http://muster.example.org"], "M329"),
        (["--server", "ftp://muster.example.org"], "https://HOST:PORT"),
        (["--server", "https://me:x@muster.example.org"], "https://HOST:PORT"),
        (["--server", "https://muster.example.org/jobs"], "https://HOST:PORT"),
        (["--server", "https://muster.example.org:99999"], "99999"),
        (["--server", SERVER, "--ca-cert", "/nowhere"], "no such file"),
        (["--server", SERVER], "no token came"),
        ([], "--server"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    home: Home, told: Told, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    type_in(monkeypatch, "\n")
    assert said in told("login", *words, code=2)
    assert not home.root.exists()


def test_a_token_that_is_not_taken_is_not_kept(home: Home, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem("x", "x", 401, "M301", "who are you", "show a token")
    monkeypatch.setattr(Transport, "_try", lambda *_: Reply(401, {}, msgspec.json.encode(problem)))
    type_in(monkeypatch, "wrong\n")
    assert "M301" in told("login", "--server", SERVER, code=2)
    assert not home.root.exists()


def test_a_home_is_of_a_server_or_of_a_client(home: Home, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    home.prepare()
    home.write_address(Address("127.0.0.1", 1))
    type_in(monkeypatch, "mst\n")
    assert "M328" in told("login", "--server", SERVER, code=2)
    home.address_file.unlink()
    home.write_login(Login(REMOTE, "mine"))
    for words in (["up"], ["down"], ["down", "--jobs"]):
        assert "M327" in told(*words, code=2)
