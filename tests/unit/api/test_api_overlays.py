"""Overlays over HTTP: set, listed with what is left, refused with their code, removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from api_kit import Scene

from muster.model.event import NodeSeen
from muster.model.node import Traits
from muster.units import Resources


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    traits = Traits(labels=(("feed", "a"),))
    scene.follower.happen(*(NodeSeen(f"n{number}", Resources(8, 64_000, 2**38), traits=traits) for number in range(2)))
    assert scene.call("PUT", "/v1/flavors/gpu", {"watts": 700, "core_watts": 3}).status == 200
    return scene


def test_an_overlay_is_set_shown_with_what_is_left_and_removed(scene: Scene) -> None:
    body = {"resource": "power", "budget": 12_000, "labels": ["feed=a"]}
    assert scene.call("PUT", "/v1/overlays/row-a", body).status == 200
    job = {"command": ["x"], "ask": {"gpus": 4, "cpu_milli": 1000}}
    assert scene.call("POST", "/v1/jobs", job).status == 201
    shown = {"name": "row-a", "resource": "power", "unit": "W", "budget": 12_000, "taken": 2803, "left": 9197}
    assert scene.call("GET", "/v1/overlays").json == [{**shown, "nodes": ["n0", "n1"], "labels": ["feed=a"]}]
    assert scene.call("PUT", "/v1/overlays/row-a", {**body, "budget": 2000}).status == 200
    view = scene.call("GET", "/v1/overlays/row-a").json
    assert (view["over"], view.get("left", 0), view["taken"]) == (803, 0, 2803)
    assert scene.call("DELETE", "/v1/overlays/row-a").status == 200
    assert scene.call("GET", "/v1/overlays").json == []
    reply = scene.call("DELETE", "/v1/overlays/row-a")
    assert (reply.status, reply.json["code"]) == (404, "M141")


def test_why_says_which_feed_and_with_which_numbers(scene: Scene) -> None:
    body = {"resource": "power", "budget": 6000, "nodes": ["n0", "n1"]}
    scene.call("PUT", "/v1/overlays/row-a", body)
    job = {"command": ["x"], "ask": {"gpus": 8}, "needs": {"labels": ["feed=a"]}}
    assert [scene.call("POST", "/v1/jobs", job).status for _ in range(2)] == [201, 201]
    why = scene.call("GET", "/v1/jobs/2/why").json
    assert (why["code"], why["words"]) == (
        "M219",
        "waiting for budget: overlay row-a has 400 of 6,000 W left, this needs 5,600",
    )
    reply = scene.call("POST", "/v1/jobs", {**job, "gang": 2})
    assert (reply.status, reply.json["code"]) == (422, "M142")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"resource": "power"}, 422, "M101"),
        ({"resource": "power", "budget": "much", "nodes": ["n0"]}, 422, "M101"),
        ({"resource": "power", "budget": -1, "nodes": ["n0"]}, 422, "M102"),
        ({"resource": "water", "budget": 1, "nodes": ["n0"]}, 422, "M139"),
        ({"resource": "power", "budget": 1}, 422, "M138"),
        ({"resource": "power", "budget": 1, "nodes": ["n9"]}, 404, "M124"),
    ],
)
def test_what_is_wrong_is_refused(scene: Scene, body: dict[str, Any], status: int, code: str) -> None:
    reply = scene.call("PUT", "/v1/overlays/row-a", body)
    assert (reply.status, reply.json["code"]) == (status, code)
    assert scene.call("GET", "/v1/overlays").json == []
