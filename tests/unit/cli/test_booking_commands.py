"""`reserve`, `bookings` and `unreserve`: what they send and what they say. No server and no socket."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from muster.cli.main import run_command
from muster.sdk.transport import Reply, Request, Transport
from muster.units import HOUR_MS
from muster.wire.views import BookingView, JobPage, WindowView

OPENS = 1_793_523_600_000
WINDOWS = [WindowView(OPENS, OPENS + HOUR_MS, ["a", "b", "c", "d"]), WindowView(OPENS + HOUR_MS, 0, ["a"], True, 3)]
BOOKINGS = (BookingView("nightly", "vision", 4, WINDOWS),)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Request]:
    """What a server with one booking is asked."""
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    asked: list[Request] = []

    def answer(_: Transport, request: Request) -> Reply:
        asked.append(request)
        value: object = JobPage([], seq=5) if request.path.startswith("/v1/jobs") else BOOKINGS
        return Reply(200, {"muster-seq": "5"}, msgspec.json.encode(value))

    monkeypatch.setattr(Transport, "_try", answer)
    return asked


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run_command(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_booking_is_sent_with_all_its_windows(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--from", "2026-10-24 09:00", "--for", "2h", "--every", "day", "--times", "2", "--tz", "Europe/Berlin"]
    out = told(capsys, "reserve", "nightly", "--tenant", "vision", "--nodes", "4", "--gpus", "8", *words)
    assert seen[0].path == "/v1/bookings/nightly"
    body = msgspec.json.decode(seen[0].body or b"")
    assert (body["tenant"], body["nodes"], body["gpus"]) == ("vision", 4, 8)
    first, second = body["windows"]
    assert second["opens_at_ms"] - first["opens_at_ms"] == 25 * HOUR_MS, "the clocks are put back that night"
    assert first["closes_at_ms"] - first["opens_at_ms"] == 2 * HOUR_MS
    assert out.endswith(", and 1 times more\n")


def test_bookings_are_listed_window_by_window(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, "bookings").splitlines()
    assert lines[0].split() == ["BOOKING", "TENANT", "STATE", "OPENS", "CLOSES", "NODES", "WHERE"]
    assert lines[1].endswith("a, b, c, 1 more")
    assert "open" in lines[2]
    assert "1 of 4: short by 3" in lines[2]
    assert seen[0].path == "/v1/bookings"


def test_a_booking_is_given_up(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "unreserve", "nightly") == "booking nightly is given up\n"
    assert (seen[0].method, seen[0].path) == ("DELETE", "/v1/bookings/nightly")


def test_a_job_names_its_booking(seen: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    run_command(["run", "-d", "--booking", "nightly", "--", "true"])
    assert b'"booking":"nightly"' in (seen[0].body or b"")
    capsys.readouterr()
