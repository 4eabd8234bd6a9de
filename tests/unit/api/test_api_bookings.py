"""Bookings over HTTP: made, listed with their windows, given up, refused with their code."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.model.event import BarNode
from muster.model.job import BarKind
from muster.units import HOUR_MS

FAR = 4_000_000_000_000
WINDOW = {"opens_at_ms": FAR, "closes_at_ms": FAR + HOUR_MS}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_booking_is_made_listed_and_given_up(scene: Scene) -> None:
    body = {"tenant": "vision", "nodes": 1, "windows": [WINDOW]}
    reply = scene.call("PUT", "/v1/bookings/nightly", body)
    assert reply.status == 200
    (view,) = scene.call("GET", "/v1/bookings").json
    assert (view["name"], view["tenant"], len(view["windows"][0]["nodes"])) == ("nightly", "vision", 1)
    assert scene.call("PUT", "/v1/bookings/nightly", body).json["code"] == "M155"
    assert scene.call("DELETE", "/v1/bookings/nightly").status == 200
    assert scene.call("GET", "/v1/bookings").json == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("PUT", "x", {"tenant": "t", "nodes": 1}, 422, "M101"),
        ("PUT", "x", {"tenant": "t", "nodes": 0, "windows": [WINDOW]}, 422, "M101"),
        ("PUT", "x", {"tenant": "t", "nodes": 1, "windows": []}, 422, "M101"),
        ("PUT", "x", {"tenant": "t", "nodes": 1, "windows": [{"opens_at_ms": 2, "closes_at_ms": 1}]}, 422, "M153"),
        ("PUT", "x", {"tenant": "t", "nodes": 99, "windows": [WINDOW]}, 422, "M152"),
        ("DELETE", "x", None, 404, "M154"),
    ],
)
def test_what_is_wrong_is_refused(
    scene: Scene, method: str, path: str, body: dict[str, object] | None, status: int, code: str
) -> None:
    reply = scene.call(method, f"/v1/bookings/{path}", body)
    assert (reply.status, reply.json["code"]) == (status, code)


def test_a_booking_is_given_up_only_as_it_was_seen(scene: Scene) -> None:
    booked = {"tenant": "vision", "nodes": 1, "windows": [WINDOW]}
    assert scene.call("GET", "/v1/bookings/nightly").json["code"] == "M154"
    assert scene.call("PUT", "/v1/bookings/nightly", booked, if_none_match="*").status == 200
    shown = scene.call("GET", "/v1/bookings/nightly")
    assert (shown.json["name"], shown.json["nodes"]) == ("nightly", 1)
    assert scene.call("PUT", "/v1/bookings/nightly", booked, if_none_match="*").status == 412
    scene.call("DELETE", "/v1/bookings/nightly")
    scene.call("PUT", "/v1/bookings/nightly", {**booked, "gpus": 1})
    late = scene.call("DELETE", "/v1/bookings/nightly", if_match=shown.headers["etag"])
    assert (late.status, late.json["code"]) == (412, "M319")
    tag = scene.call("GET", "/v1/bookings/nightly").headers["etag"]
    scene.follower.happen(BarNode("node-1", BarKind.DRAIN, "operator"))
    assert scene.call("GET", "/v1/bookings/nightly").headers["etag"] == tag, "which nodes it has is no part of it"
    assert scene.call("DELETE", "/v1/bookings/nightly", if_match=tag).status == 200
