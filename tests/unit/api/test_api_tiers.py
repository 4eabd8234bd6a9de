"""Tiers over HTTP: listed in order, set, refused with their code."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_kit import Scene

from muster.units import DAY_MS, HOUR_MS


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_tiers_are_listed_in_order_and_set(scene: Scene) -> None:
    names = [tier["name"] for tier in scene.call("GET", "/v1/tiers").json]
    assert names == ["critical", "standard", "opportunistic"]
    reply = scene.call("PUT", "/v1/tiers/urgent", {"rank": 150, "longest_wait_ms": HOUR_MS})
    assert (reply.status, reply.json) == (200, {"name": "urgent", "rank": 150, "longest_wait_ms": HOUR_MS})
    assert scene.call("GET", "/v1/tiers").json[1] == reply.json


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/tiers/x", {"rank": 1}, "M101"),
        ("/v1/tiers/x", {"rank": -1, "longest_wait_ms": 1}, "M101"),
        ("/v1/tiers/..x", {"rank": 1, "longest_wait_ms": DAY_MS}, "M103"),
    ],
)
def test_what_is_wrong_is_refused(scene: Scene, path: str, body: dict[str, object], code: str) -> None:
    reply = scene.call("PUT", path, body)
    assert (reply.status, reply.json["code"]) == (422, code)


def test_a_job_names_its_tier_and_priority(scene: Scene) -> None:
    job = {"command": ["x"], "tier": "critical", "priority": 3}
    assert scene.call("POST", "/v1/jobs", job).status == 201
    shown = scene.call("GET", "/v1/jobs/1").json["spec"]
    assert (shown["tier"], shown["priority"]) == ("critical", 3)
    reply = scene.call("POST", "/v1/jobs", {"command": ["x"], "tier": "gold"})
    assert (reply.status, reply.json["code"]) == (422, "M129")
