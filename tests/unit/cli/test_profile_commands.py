"""`muster profiles`: what it sends and what it says. No server and no socket."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.cli.main import run_command
from muster.model.profile import DEFAULT
from muster.sdk.transport import Reply, Request, Transport
from muster.wire.views import JobPage, ProfileView

USUAL = msgspec.structs.asdict(DEFAULT)
PROFILES = (
    ProfileView("default", 1, is_used=True, weights=USUAL),
    ProfileView("dense", 3, is_used=False, weights={**USUAL, "packing": 1200, "cost": 0}),
)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """What a server with two profiles is asked."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    asked: list[Request] = []

    def answer(_: Transport, request: Request) -> Reply:
        asked.append(request)
        value: object = JobPage([], seq=5) if request.path.startswith("/v1/jobs") else PROFILES
        return Reply(200, {"muster-seq": "5"}, msgspec.json.encode(value))

    monkeypatch.setattr(Transport, "_try", answer)
    return asked


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert run_command(list(arguments)) == code
    out, err = capsys.readouterr()
    return err if code else out


def test_profiles_are_listed(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    heads, usual, dense = (line.split() for line in told(capsys, "profiles").splitlines())
    assert heads[:5] == ["PROFILE", "VERSION", "IN", "USE", "PACKING"]
    assert usual[:4] == ["default", "1", "yes", "1000"]
    assert dense[:3] == ["dense", "3", "1200"]
    assert told(capsys, "profiles", "-o", "name") == "default\ndense\n"
    assert {request.path for request in seen} == {"/v1/profiles"}


@pytest.mark.usefixtures("seen")
def test_one_is_shown_and_two_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "profiles", "show", "dense").splitlines()
    assert [line.split() for line in lines[:2]] == [["profile:", "dense"], ["version:", "3"]]
    assert ["packing", "1200"] in [line.split() for line in lines]
    assert msgspec.json.decode(told(capsys, "profiles", "show", "dense", "-o", "json"))["version"] == 3
    rows = [line.split() for line in told(capsys, "profiles", "diff", "default", "dense").splitlines()]
    assert rows == [["TERM", "default", "dense"], ["packing", "1000", "1200"], ["cost", "50", "0"]]
    assert told(capsys, "profiles", "diff", "dense", "dense") == "dense and dense weigh alike\n"
    assert "there is no profile 'none'" in told(capsys, "profiles", "show", "none", code=2)


def test_one_is_set_term_by_term_on_top_of_the_version_that_was_seen(
    seen: list[Request], capsys: pytest.CaptureFixture[str]
) -> None:
    words = told(capsys, "profiles", "set", "dense", "packing=900", "cost=7")
    expected = "profile dense, version 4: packing 1200 → 900, cost 0 → 7; use it with `muster profiles use dense`\n"
    assert words == expected
    assert (seen[1].method, seen[1].path) == ("PUT", "/v1/profiles/dense")
    sent = {"weights": {**USUAL, "packing": 900, "cost": 7}, "of_version": 3}
    assert msgspec.json.decode(seen[1].body) == sent
    assert told(capsys, "profiles", "set", "default", "filling=5") == "profile default, version 2: filling 100 → 5\n"
    assert "version 1: cost 50 → 0" in told(capsys, "profiles", "set", "new", "cost=0")
    assert told(capsys, "profiles", "set", "dense", "cost=0") == "profile dense is so already, in version 3\n"


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize("word", ["luck=1", "packing", "=1", "packing=many", "packing=-1"])
def test_what_is_no_weight_is_told(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "packing" in told(capsys, "profiles", "set", "dense", word, code=2)


def test_one_is_used(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert "dense is in use" in told(capsys, "profiles", "use", "dense")
    assert (seen[0].method, seen[0].path) == ("POST", "/v1/profiles/dense/use")
