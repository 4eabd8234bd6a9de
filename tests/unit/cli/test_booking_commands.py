"""`reserve`, `bookings` and `unreserve`: what they send and what they say. No server and no socket."""

from __future__ import annotations

import msgspec
import pytest
from served import Serve, Told

from muster.sdk.transport import Request
from muster.units import HOUR_MS
from muster.wire.views import BookingView, Changed, Submitted, WindowView

OPENS = 1_793_523_600_000
WINDOWS = [WindowView(OPENS, OPENS + HOUR_MS, ["a", "b", "c", "d"]), WindowView(OPENS + HOUR_MS, 0, ["a"], True, 3)]
BOOKINGS = (BookingView("nightly", "vision", 4, WINDOWS),)


@pytest.fixture
def seen(serve: Serve) -> list[Request]:
    """What a server with one booking is asked."""
    return serve({"GET /v1/bookings": BOOKINGS, "PUT": Changed(5), "POST": Submitted(1, 5), "DELETE": Changed(5)})


def test_a_booking_is_sent_with_all_its_windows(seen: list[Request], told: Told) -> None:
    words = ["--from", "2026-10-24 09:00", "--for", "2h", "--every", "day", "--times", "2", "--tz", "Europe/Berlin"]
    out = told("reserve", "nightly", "--tenant", "vision", "--nodes", "4", "--gpus", "8", *words)
    assert seen[0].path == "/v1/bookings/nightly"
    body = msgspec.json.decode(seen[0].body or b"")
    assert (body["tenant"], body["nodes"], body["gpus"]) == ("vision", 4, 8)
    first, second = body["windows"]
    assert second["opens_at_ms"] - first["opens_at_ms"] == 25 * HOUR_MS, "the clocks are put back that night"
    assert first["closes_at_ms"] - first["opens_at_ms"] == 2 * HOUR_MS
    assert out.endswith(", and once more\n")


def test_bookings_are_listed_window_by_window(seen: list[Request], told: Told) -> None:
    lines = told("bookings").splitlines()
    assert lines[0].split() == ["BOOKING", "TENANT", "STATE", "OPENS", "CLOSES", "NODES", "WHERE"]
    assert lines[1].endswith("a, b, c, 1 more")
    assert "open" in lines[2]
    assert "1 of 4: short by 3" in lines[2]
    assert seen[0].path == "/v1/bookings"


def test_a_booking_is_given_up(seen: list[Request], told: Told) -> None:
    assert told("unreserve", "nightly") == "booking nightly is given up\n"
    assert (seen[0].method, seen[0].path) == ("DELETE", "/v1/bookings/nightly")


def test_a_job_names_its_booking(seen: list[Request], told: Told) -> None:
    told("run", "-d", "--booking", "nightly", "--", "true")
    assert b'"booking":"nightly"' in (seen[0].body or b"")
